"""One of the jobs of tests/spark/killed_job.py on the cluster that the variable MASTER names.

python killed_driver.py bounded|function CHECKPOINT OUTPUT INPUT
"""

from __future__ import annotations

import sys
from pathlib import Path

from session import environment_on_cluster

PROGRAM = Path(__file__).parents[1] / "spark" / "killed_job.py"

if __name__ == "__main__":
    sys.path.append(str(PROGRAM.parent))
    import killed_job

    environment_on_cluster().add_python_file(str(PROGRAM))
    killed_job.main(*sys.argv[1:])
