"""Lines of the JVM on standard error, and which of them come through."""

from __future__ import annotations

import os

from eventide.spark.session.make import _pass_on

STOPPED = """\
Traceback (most recent call last):
  File "/venv/pyspark/daemon.py", line 265, in manager
    code = worker(sock, authenticated)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/venv/pyspark/daemon.py", line 87, in worker
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe
"""
OF_THE_USER = """\
Traceback (most recent call last):
  File "/program/main.py", line 7, in price
    return table[key]
           ~~~~~^^^^^
KeyError: 'a'
    an indented line that a function prints
"""


def passed_on(said: str) -> str:
    (reading, writing), (seen, console) = os.pipe(), os.pipe()
    with os.fdopen(writing, "w") as jvm:
        jvm.write(said)
    _pass_on(reading, console)
    os.close(console)
    with os.fdopen(seen) as terminal:
        return terminal.read()


def test_workers_that_find_nobody_to_write_to_say_nothing_of_it() -> None:
    assert passed_on(STOPPED) == ""


def test_what_the_program_and_its_functions_say_comes_through() -> None:
    assert passed_on(OF_THE_USER + STOPPED + "done\n") == OF_THE_USER + "done\n"
