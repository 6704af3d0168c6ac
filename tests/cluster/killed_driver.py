"""A job of tests/spark/killed_job.py or killed_states.py on the cluster that the variable MASTER names.

python killed_driver.py bounded|function|states CHECKPOINT OUTPUT INPUT
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from session import environment_on_cluster

PROGRAMS = Path(__file__).parents[1] / "spark"

if __name__ == "__main__":
    name = "killed_states" if sys.argv[1] == "states" else "killed_job"
    sys.path.append(str(PROGRAMS))
    program = importlib.import_module(name)
    environment_on_cluster().add_python_file(str(PROGRAMS / f"{name}.py"))
    program.main(*sys.argv[1:])
