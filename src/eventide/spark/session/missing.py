"""Missing parts of a Python process of Spark's, or of Spark itself, in one sentence, from what Spark says of it."""

from __future__ import annotations

import os
import re
import shutil
import sys

from pyspark.sql import is_remote

from eventide.spark.session.python_files import is_local, session_that_is_there, why_it_takes_none

_SAME_EVERYWHERE = (
    "say with env.set_python_executable(...), or with PYSPARK_PYTHON before the session is made, which interpreter is "
    "there on every machine, the driver's included"
)
_SAME_AT_SERVER = "start the server of Spark Connect with PYSPARK_PYTHON naming one that is there on every machine"
_JARS = (
    "name the package that has it in spark.jars.packages before the session is made: for S3, "
    "org.apache.hadoop:hadoop-aws in the version of PySpark's own Hadoop"
)

_NOT_FOUND = {
    r"ModuleNotFoundError: No module named '([^']+)'": r"Python finds no module '\1'",
    r"PACKAGE_NOT_INSTALLED\] (\S+)": r"Python finds no package \1",
}
_OTHER_PYTHON = {
    r"different version: ([\d.]+) than that in driver: ([\d.]+)": r"Python is \1, and the program runs in \2",
    # It is not there, or must not be run; that memory is short, say, passes.
    r'(?s)Cannot run program "([^"]*python[^"/]*)".*?error=(?:2|13)\b': r"there is no Python interpreter '\1'",
}
_NO_JAR = {
    r"ClassNotFoundException: Class (org\.apache\.hadoop\.fs\.\S+) not found": (
        rf"Spark has no class \1, which opens a location of the program's; {_JARS}"
    ),
    r'No (?:Abstract)?FileSystem (?:configured )?for scheme:? "?([\w+.-]+)': (
        rf"Spark knows no file system for \1://; {_JARS}. S3 is s3a:// there"
    ),
}
"""Spark's words for each missing part, and the sentence for it."""

_EXECUTOR = re.compile(r"\((?P<host>\S+) executor (?P<name>\S+)\)")
_TASK = re.compile(r"/pyspark/worker\.py|An exception was thrown from the Python worker")
"""The module of an executor's Python process, and the beginning of Spark's message about its failure.

A session that the user makes leaves PySpark's own lines out of a traceback that has others.
"""
_PLANNER = re.compile(r"/pyspark/sql/(worker|streaming)/\w+\.py|\[PYTHON_DATA_SOURCE_ERROR\]")
"""The module of the Python process that plans beside the driver, and Spark's name for its failure."""


def what_is_missing(text: str) -> str | None:
    """A sentence, where something is missing: what, where, and what to do; None for another failure.

    >>> what_is_missing('Cannot run program "/opt/python": error=2, No such file').partition(";")[0]
    "beside the driver, where sources are planned, there is no Python interpreter '/opt/python'"
    """
    is_of_spark = _TASK.search(text) is not None or _PLANNER.search(text) is not None
    for says, lack in (_NOT_FOUND if is_of_spark else {}).items():
        if found := re.search(says, text):
            return f"{_where(text)}, {found.expand(lack)}; {_another_python() or _advice(found[1])}"
    for says, lack in _OTHER_PYTHON.items():
        if found := re.search(says, text):
            same = _SAME_AT_SERVER if is_remote() else _SAME_EVERYWHERE
            return f"{_where(text)}, {found.expand(lack)}; {_another_python() or same}"
    for says, lack in _NO_JAR.items():
        if found := re.search(says, text):
            return found.expand(lack)
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
