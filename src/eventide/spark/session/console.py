"""The standard error of the JVM of a session that is made here, without messages that help no user."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NOISE = re.compile(
    r"Streaming TransformWithStateIn\w+ Python worker|Starting Streaming TransformWithStateIn\w+"
    r"|WARNING: Using incubator modules|Setting default log level|To adjust logging level"
    r"|Setting Spark log level|Using Spark's default log4j profile|Picked up JAVA_TOOL_OPTIONS"
    # When a query is stopped, its workers have no reader, and Spark reports errors that mean nothing.
    r'|  File ".*pyspark/daemon\.py", line \d+, in (?:manager|worker)$'
    r'|Exception in thread "stream execution thread for .* java\.lang\.StackOverflowError$'
    r"|\tat java\.base/java\.util\.regex\.Pattern"
)
_REST_OF_NOISE = re.compile(r"\s*$| {4}\S| +[~^]+$|BrokenPipeError: |ConnectionResetError: ")
_TRACEBACK = "Traceback (most recent call last):\n"


@contextmanager
def quiet_jvm() -> Iterator[None]:
    """Have the JVM that starts inside this block write its standard error through a filter.

    Spark's Python workers tell of every stateful query that they start, on the JVM's standard error, and no setting
    turns that off. Everything else, what user functions print among it, comes through as it is.
    """
    reading, writing = os.pipe()
    console = os.dup(2)
    sys.stderr.flush()
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=_pass_on, args=(reading, console), name="eventide jvm stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(console, 2)


def _pass_on(reading: int, console: int) -> None:
    is_noise, held = False, ""
    with os.fdopen(reading, "r", errors="replace", buffering=1) as lines:
        for line in lines:
            if line == _TRACEBACK:
                held += line  # its next line names the query
                continue
            is_noise = bool(_NOISE.match(line) or (is_noise and _REST_OF_NOISE.match(line)))
            if not is_noise:
                os.write(console, (held + line).encode())
            held = ""
