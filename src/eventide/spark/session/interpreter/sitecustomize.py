"""Has the Python processes of Spark import PySpark from where it is installed, and not from a zip file.

Spark puts the zip file of PySpark that it brings along before all else on the path of its Python processes. Python
compiles what it imports from there again each time, which takes each process half a second. The installed PySpark that
the zip file is a part of has the same modules, compiled.

Python imports a module of this name at its start. Another one, which this one would hide, is run too.
"""

import importlib.machinery
import importlib.util
import os
import sys

_ZIP_FILES = os.path.join("pyspark", "python", "lib")


def _leave_out_zip_files() -> None:
    for folder in {os.path.dirname(path) for path in sys.path if path.endswith(".zip")}:
        packages = folder.removesuffix(os.sep + _ZIP_FILES)
        if packages != folder and packages in sys.path and os.path.exists(os.path.join(packages, "py4j")):
            sys.path[:] = [path for path in sys.path if os.path.dirname(path) != folder]


def _run_the_hidden_one() -> None:
    elsewhere = [path for path in sys.path if path != os.path.dirname(__file__)]
    hidden = importlib.machinery.PathFinder.find_spec(__name__, elsewhere)
    if hidden is not None and hidden.loader is not None:
        module = importlib.util.module_from_spec(hidden)
        sys.modules[__name__] = module
        hidden.loader.exec_module(module)


_leave_out_zip_files()
_run_the_hidden_one()
