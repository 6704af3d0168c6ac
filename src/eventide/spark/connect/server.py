"""Spark Connect: whether sessions are of that kind, and what is asked where their server runs.

The server has a file system, an interpreter and a working folder of its own. What lies there is not opened here: a
small Spark task does it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, is_remote

from eventide import __version__
from eventide.errors import ProgramError
from eventide.pickling.pickles import dumps, loads, register
from eventide.spark.failures import in_our_words

T = TypeVar("T")

_ANSWER = "answer BINARY"
_NOT_THERE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def over_connect() -> bool:
    """Whether this process is a client of Spark Connect; then all its sessions are."""
    return bool(is_remote())


def refuse_over_connect(what: str) -> None:
    """Refuse what only works where Spark is in the program's own process.

    Raises:
        ProgramError: over Spark Connect.
    """
    if over_connect():
        raise ProgramError(
            f"{what} brings nothing to a server of Spark Connect, which is another process with a Python of its own: "
            f"install what the program needs where the server runs, or start the server with it on its PYTHONPATH "
            f"(PYSPARK_PYTHON says which Python it uses)"
        )


def check_server(spark: SparkSession) -> None:
    """See whether the server can run a job.

    Raises:
        ProgramError: if its Python has no eventide, or another version than this process.
    """
    version = ask(spark, _version)
    if version != __version__:
        raise ProgramError(
            f"the server of this Spark Connect session has eventide {version}, and the program eventide {__version__}; "
            "a job needs the same on both sides"
        )


def _version() -> str:
    return __version__


def ask(spark: SparkSession, question: Callable[[], T], classes: Iterable[type] = ()) -> T:
    """Call a function in one task of Spark's, and return what it returns there.

    Args:
        spark: the session.
        question: any function that pickles, as does what it returns.
        classes: those of eventide's own of what it returns.

    Raises:
        EventideError: the error of the function, where it raised one.
        ProgramError: if the server's Python has no module of the function's.
    """

    def answer() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"answer": pa.array([dumps(question())], pa.binary())})

    [said] = ask_for_rows(spark, answer, _ANSWER).column("answer")
    register(classes)
    answered: T = loads(said.as_py())
    return answered


def there(spark: SparkSession, call: Callable[[], T], classes: Iterable[type] = ()) -> T:
    """Call a function where Spark is: in this process, or over Spark Connect at the server, as :func:`ask` does."""
    return ask(spark, call, classes) if over_connect() else call()


def ask_for_rows(spark: SparkSession, question: Callable[[], Iterable[pa.RecordBatch]], schema: str) -> pa.Table:
    """Ask a function that gives record batches, of which there may be many."""

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from question()

    with in_our_words():
        try:
            return spark.range(0, 1, 1, 1).mapInArrow(answer, schema).toArrow()
        except PySparkException as error:
            if (missing := _NOT_THERE.search(str(error))) is None:
                raise
            raise ProgramError(
                f"the Python of the Spark Connect server has no module {missing[1]!r}: install the same there as here, "
                "eventide among it, or start the server with PYSPARK_PYTHON and PYTHONPATH that lead to it"
            ) from error
