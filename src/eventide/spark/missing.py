"""Missing parts of a Python process of Spark's, or of Spark itself, in one sentence, from what Spark says of it."""

from __future__ import annotations

import os
import re
import shutil
import sys

from pyspark.sql import is_remote

from eventide.spark.takes_modules import is_local, session_that_is_there, why_it_takes_none

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<module>[^']+)'")
_NO_PYTHON = re.compile(r'Cannot run program "(?P<program>[^"]*python[^"/]*)".*?error=(2|13)\b', re.DOTALL)
"""It is not there, or must not be run; that memory is short, say, passes."""
_NO_PACKAGE = re.compile(r"PACKAGE_NOT_INSTALLED\] (?P<package>\S+)")
_OTHER_PYTHON = re.compile(r"different version: (?P<there>[\d.]+) than that in driver: (?P<here>[\d.]+)")
_NO_CLASS = re.compile(r"ClassNotFoundException: Class (?P<name>org\.apache\.hadoop\.fs\.\S+) not found")
_NO_FILE_SYSTEM = re.compile(r'No (Abstract)?FileSystem (configured )?for scheme:? "?(?P<scheme>[\w+.-]+)')
_EXECUTOR = re.compile(r"\((?P<host>\S+) executor (?P<name>\S+)\)")
_TASK = re.compile(r"/pyspark/worker\.py|An exception was thrown from the Python worker")
"""The module of an executor's Python process, and the beginning of Spark's message about its failure.

A session that the user makes leaves PySpark's own lines out of a traceback that has others.
"""
_PLANNER = re.compile(r"/pyspark/sql/(worker|streaming)/\w+\.py|\[PYTHON_DATA_SOURCE_ERROR\]")
"""The module of the Python process that plans beside the driver, and Spark's name for its failure."""

_SAME_EVERYWHERE = (
    "say with env.set_python_executable(...), or with PYSPARK_PYTHON before the session is made, which interpreter is "
    "there on every machine, the driver's included"
)
_SAME_AT_SERVER = "start the server of Spark Connect with PYSPARK_PYTHON naming one that is there on every machine"

_JARS = (
    "name the package that has it in spark.jars.packages before the session is made: for S3, "
    "org.apache.hadoop:hadoop-aws in the version of PySpark's own Hadoop"
)


def what_is_missing(text: str) -> str | None:
    """A sentence, where something is missing: what, where, and what to do; None for another failure.

    >>> what_is_missing('Cannot run program "/opt/python": error=2, No such file').partition(";")[0]
    "beside the driver, where sources are planned, there is no Python interpreter '/opt/python'"
    """
    another = _another_python()
    where, same = _where(text), another or (_SAME_AT_SERVER if is_remote() else _SAME_EVERYWHERE)
    is_of_spark = _TASK.search(text) is not None or _PLANNER.search(text) is not None
    if is_of_spark and (found := _NO_MODULE.search(text)):
        return f"{where}, Python finds no module {found['module']!r}; {another or _advice(found['module'])}"
    if is_of_spark and (found := _NO_PACKAGE.search(text)):
        return f"{where}, Python finds no package {found['package']}; {another or _advice(found['package'])}"
    if found := _OTHER_PYTHON.search(text):
        return f"{where}, Python is {found['there']}, and the program runs in {found['here']}; {same}"
    if found := _NO_PYTHON.search(text):
        return f"{where}, there is no Python interpreter {found['program']!r}; {same}"
    if found := _NO_CLASS.search(text):
        return f"Spark has no class {found['name']}, which opens a location of the program's; {_JARS}"
    if found := _NO_FILE_SYSTEM.search(text):
        return f"Spark knows no file system for {found['scheme']}://; {_JARS}. S3 is s3a:// there"
    return None


def _where(text: str) -> str:
    if found := _EXECUTOR.search(text):
        return f"on the executor {found['name']} ({found['host']})"
    return "on an executor" if _TASK.search(text) else "beside the driver, where sources are planned"


def _another_python() -> str | None:
    """Name the Python that a session starts, and how to set the program's instead; None if both are one.

    A session that the user makes starts the first ``python3`` on the path, which is another one than the program's
    where its virtual environment is not activated.
    """
    session = None if is_remote() else session_that_is_there()
    if session is None or not is_local(str(session.conf.get("spark.master", ""))):
        return None
    named = session.sparkContext.pythonExec
    there = shutil.which(named) or named
    if os.path.dirname(there) == os.path.dirname(sys.executable):
        return None
    return (
        f"the workers of this Spark session run in {there}, and the program runs in {sys.executable}: before the "
        "session is made, set os.environ['PYSPARK_PYTHON'] = sys.executable in the program, or start it with "
        f"PYSPARK_PYTHON={sys.executable}"
    )


def _advice(module: str) -> str:
    if is_remote():
        return (
            "install it where the server of Spark Connect runs, or bring it along with env.add_python_file(...) if it "
            "is a module of the program"
        )
    session = session_that_is_there()
    if session is not None and (why := why_it_takes_none(session)) is not None:
        return why
    if module.partition(".")[0] == "eventide":
        return (
            "install eventide on every machine, or let get_execution_environment(Configuration.from_dict("
            "{'spark.master': ...})) make the session, which brings it along"
        )
    return (
        "bring it along with env.add_python_file(...) if it is a module of the program, and with "
        "env.set_python_requirements(...) if it is an installed package"
    )
