"""Settings of a session while a query starts, or a batch job runs; and what a JVM's standard error lets through."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from eventide.spark.session.make import (
    DISK_FILE_MANAGER,
    FILE_MANAGER,
    REPORTS,
    SHUFFLE_PARTITIONS,
    _pass_on,
    settings_for_start,
    shuffle_partitions,
)


class Conf(dict[str, str]):
    """The settings of a session, which may be set and not."""

    def set(self, name: str, value: str) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        self.pop(name, None)


class Session:
    def __init__(self, **settings: str) -> None:
        self.conf = Conf({SHUFFLE_PARTITIONS: "200", **settings})


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


def held(spark: Any, parallelism: int, **more: Any) -> str:
    with settings_for_start(spark, parallelism, **more):
        return str(spark.conf[SHUFFLE_PARTITIONS])


def waits(future: Future[str]) -> bool:
    return not wait([future], 0.1).done


def test_a_session_is_as_before_when_the_query_has_started(pool: ThreadPoolExecutor) -> None:
    spark: Any = Session()
    before = dict(spark.conf)
    assert held(spark, 4) == "4"
    with pytest.raises(OSError, match="disk"), settings_for_start(spark, 4):
        raise OSError("disk")
    assert {name: spark.conf[name] for name in before} == before


def test_who_wants_the_same_does_not_wait_for_a_batch_job_and_who_wants_others_does(pool: ThreadPoolExecutor) -> None:
    spark: Any = Session()
    with settings_for_start(spark, 4):
        assert pool.submit(held, spark, 4).result(timeout=30) == "4"
        others = pool.submit(held, spark, 2)
        assert waits(others)
        assert spark.conf[SHUFFLE_PARTITIONS] == "4"
    assert others.result(timeout=30) == "2"
    assert spark.conf[SHUFFLE_PARTITIONS] == "200"


def test_settings_stay_until_the_last_who_needs_them_is_done(pool: ThreadPoolExecutor) -> None:
    spark: Any = Session()
    begun, over = threading.Event(), threading.Event()

    def job() -> None:
        with settings_for_start(spark, 4):
            begun.set()
            over.wait(30)

    with settings_for_start(spark, 4):
        other = pool.submit(job)
        begun.wait(30)
    assert spark.conf[SHUFFLE_PARTITIONS] == "4"
    over.set()
    other.result(timeout=30)
    assert spark.conf[SHUFFLE_PARTITIONS] == "200"


def test_a_function_of_a_batch_job_may_start_a_job_with_other_settings(pool: ThreadPoolExecutor) -> None:
    spark: Any = Session()
    with settings_for_start(spark, 4):
        with settings_for_start(spark, 2):
            assert spark.conf[SHUFFLE_PARTITIONS] == "2"
            assert waits(same := pool.submit(held, spark, 4))
        assert spark.conf[SHUFFLE_PARTITIONS] == "4"
        assert same.result(timeout=30) == "4"


@pytest.mark.parametrize(
    ("offsets_bytes", "before", "reports"),
    [
        (0, "1000", "1000"),
        (5_000, "1000", "1000"),
        (110_000, "1000", "152"),
        (110_000, "100", "100"),  # what the user has set is not raised
        (5_000_000, "1000", "10"),
    ],
)
def test_spark_keeps_fewer_reports_of_progress_where_they_are_large(
    offsets_bytes: int, before: str, reports: str
) -> None:
    spark: Any = Session(**{REPORTS: before})
    with settings_for_start(spark, 2, offsets_bytes=offsets_bytes):
        assert spark.conf[REPORTS] == reports
    assert spark.conf[REPORTS] == before


@contextmanager
def in_s3(spark: Any) -> Iterator[str | None]:
    with settings_for_start(spark, 2, "s3a://bucket/checkpoint"):
        yield spark.conf.get(FILE_MANAGER)


def test_how_checkpoints_are_written_is_for_a_disk_and_what_the_user_chose_stays() -> None:
    ours: Any = Session(**{FILE_MANAGER: DISK_FILE_MANAGER})
    with in_s3(ours) as manager:
        assert manager is None
    assert ours.conf[FILE_MANAGER] == DISK_FILE_MANAGER
    theirs: Any = Session(**{FILE_MANAGER: "theirs"})
    with in_s3(theirs) as manager:
        assert manager == "theirs"


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


def test_workers_that_find_no_reader_say_nothing_of_it() -> None:
    assert passed_on(STOPPED) == ""


def test_what_the_program_and_its_functions_say_comes_through() -> None:
    assert passed_on(OF_THE_USER + STOPPED + "done\n") == OF_THE_USER + "done\n"


@pytest.mark.parametrize(
    ("master", "parallelism", "partitions"),
    [("local[2]", 2, 2), ("local[2]", 8, 8), ("local[2]", 16, 8), ("local[2]", 200, 8), ("local[2]", 60, 10),
     ("local[2]", 13, 13), ("spark://host:7077", 200, 200), ("local-cluster[2,1,1024]", 200, 200)],
)  # fmt: skip
def test_subtasks_share_partitions_in_equal_numbers_where_one_machine_has_all_tasks(
    master: str, parallelism: int, partitions: int
) -> None:
    spark: Any = Session()
    spark.sparkContext = SimpleNamespace(master=master, defaultParallelism=2)
    assert shuffle_partitions(spark, parallelism) == partitions
