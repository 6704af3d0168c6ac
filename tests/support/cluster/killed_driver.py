"""A job on the cluster that the variable MASTER names.

python killed_driver.py PROGRAM ARGUMENTS...

calls main(ARGUMENTS...) of a program that makes its environment of the session that is there.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from session import environment_on_cluster

if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    sys.path.append(str(Path(program).parent))
    environment_on_cluster().add_python_file(program)
    importlib.import_module(Path(program).stem).main(*arguments)
