"""A job whose files, checkpoint, logs, output and savepoint are in a store gives what it gives on a local disk."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.spark.checkpoint.files import CheckpointFiles
from support.cluster import disturbed
from support.cluster.disturbed import Disturbed, of_files
from support.cluster.drivers import PATIENCE_S, ended, started
from support.spark import killed_job
from support.spark.undisturbed import PROGRAMS, check
from support.spark_cluster import SparkCluster
from support.stores import saved_driver
from support.stores.copies import got, lines, put
from support.stores.store import Store

pytestmark = [pytest.mark.spark, pytest.mark.store]

SAVED = Path(saved_driver.__file__)
KILLED_DRIVER = Path(disturbed.__file__).with_name("killed_driver.py")


def test_jobs_in_a_store_give_what_they_give_on_disk_whatever_is_killed(
    spark: SparkSession,
    cluster: SparkCluster,
    store_for_jobs: Store,
    tmp_path: Path,
    pytestconfig: pytest.Config,
    injected: Counter[str],
) -> None:
    """Every kind of job, each with an executor and the driver killed; `--kills=5` five times."""
    dice, variables = random.Random(pytestconfig.getoption("--seed")), store_for_jobs.written(tmp_path)
    killed_job.write_input(tmp_path / "input")
    undisturbed = {job: tmp_path / "undisturbed" / job for job in PROGRAMS}
    for job, place in undisturbed.items():
        PROGRAMS[job].main(job, str(place / "checkpoint"), str(place / "output"), str(tmp_path / "input"))
    read = f"{store_for_jobs.location}/killed/input"
    put(tmp_path / "input", read)
    for series in range(pytestconfig.getoption("--kills")):
        there = f"{store_for_jobs.location}/killed/{series}"
        for job in PROGRAMS:
            killed = Disturbed(cluster, job, *of_files(job, f"{there}/{job}", read), dice, variables)
            killed.run(dice.sample(["executor", "driver"], 2))
            injected["parts of a cluster killed"] += 2
        copied = got(there, tmp_path / f"killed-{series}")

        def said(job: str, there: str = there) -> dict[str, Any]:
            of_the_store = json.dumps(command(variables, "why", f"{there}/{job}/checkpoint"))
            as_on_disk: dict[str, Any] = json.loads(of_the_store.replace(read, str(tmp_path / "input")))
            return as_on_disk

        check(spark, {job: copied / job for job in PROGRAMS}, undisturbed, said)
        for job in PROGRAMS:
            looked_at = command(variables, "checkpoint", f"{there}/{job}/checkpoint")
            assert looked_at["location"] == f"{there}/{job}/checkpoint"
            assert looked_at["committed"]["number"] > 5
            assert len(said(job)["operators"]) > 1


def test_of_two_drivers_of_one_job_one_goes_on(
    spark: SparkSession, cluster: SparkCluster, store_for_jobs: Store, tmp_path: Path, injected: Counter[str]
) -> None:
    with _twice("two", spark, cluster, store_for_jobs, tmp_path) as job:
        job.start()
        job.wait_for(2)
        job.start()
        ended_well = job.ended()
    assert ended_well == [False, True], "the younger one goes on"
    injected["second drivers"] += 1


def test_a_driver_that_stalls_while_another_one_takes_over_stops(
    spark: SparkSession,
    cluster: SparkCluster,
    store_for_jobs: Store,
    tmp_path: Path,
    pytestconfig: pytest.Config,
    injected: Counter[str],
) -> None:
    """With SIGSTOP and SIGCONT, at a random moment of a micro-batch; `--seed=` repeats it."""
    moments = random.Random(f"{pytestconfig.getoption('--seed')} stall {store_for_jobs.location}")
    with _twice("stalled", spark, cluster, store_for_jobs, tmp_path) as job:
        older = job.start()
        planned = job.wait_for(moments.randrange(3))
        time.sleep(moments.uniform(0, 2))
        os.killpg(older.pid, signal.SIGSTOP)
        job.start()
        job.wait_for(planned + 2)
        time.sleep(moments.uniform(0, 2))
        os.killpg(older.pid, signal.SIGCONT)
        assert job.ended() == [False, True]
    injected["suspended"] += 1


class _Twice:
    """A job in a store that several drivers work on at once."""

    def __init__(self, place: str, cluster: SparkCluster, variables: Mapping[str, str], folder: Path) -> None:
        self.program, self.checkpoint = of_files("bounded", place, f"{place}/input")
        self.drivers: list[subprocess.Popen[str]] = []
        self._cluster, self._folder = cluster, folder
        # Or the second driver waits for the cores of the first.
        self._variables = {**variables, "SETTINGS": json.dumps({"spark.cores.max": "1"})}

    def start(self) -> subprocess.Popen[str]:
        with self._said(len(self.drivers)).open("wb") as errors:
            driver = started(KILLED_DRIVER, self._cluster, *self.program, variables=self._variables, errors=errors)
        self.drivers.append(driver)
        return driver

    def wait_for(self, batch: int) -> int:
        """Wait until a micro-batch is planned; return the number of the last one."""
        deadline = time.monotonic() + PATIENCE_S
        while (planned := max(CheckpointFiles(self.checkpoint).planned(), default=-1)) < batch:
            assert self.drivers[-1].poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return planned

    def ended(self) -> list[bool]:
        """Wait for the end of each driver; return whether it ended well, or else because of another one."""
        for driver in self.drivers:
            driver.communicate(timeout=PATIENCE_S)
        ended_well = [driver.returncode == 0 for driver in self.drivers]
        for number, is_well in enumerate(ended_well):
            said = self._said(number).read_text()
            assert is_well or "let only one run at a time use a checkpoint" in said, said[-2_000:]
        return ended_well

    def _said(self, driver: int) -> Path:
        return self._folder / f"driver-{driver}"


@contextmanager
def _twice(name: str, spark: SparkSession, cluster: SparkCluster, store: Store, tmp_path: Path) -> Iterator[_Twice]:
    """Prepare a job in a store; after the block, compare what it has left with that of an undisturbed one."""
    variables, undisturbed, place = store.written(tmp_path), tmp_path / "undisturbed", f"{store.location}/{name}"
    killed_job.write_input(tmp_path / "input")
    killed_job.main("bounded", str(undisturbed / "checkpoint"), str(undisturbed / "output"), str(tmp_path / "input"))
    put(tmp_path / "input", f"{place}/input")
    job = _Twice(place, cluster, variables, tmp_path)
    try:
        yield job
    finally:
        for driver in job.drivers:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.communicate()
    copied = got(place, tmp_path / "copied")
    of_the_store = json.dumps(command(variables, "why", job.checkpoint))
    as_on_disk = of_the_store.replace(f"{place}/input", str(tmp_path / "input"))
    check(spark, {"bounded": copied}, {"bounded": undisturbed}, lambda _: json.loads(as_on_disk))


def test_a_job_goes_on_from_a_savepoint_in_a_store_with_other_subtasks(
    spark: SparkSession, cluster: SparkCluster, store_for_jobs: Store, tmp_path: Path
) -> None:
    variables = store_for_jobs.written(tmp_path)
    killed_job.write_input(tmp_path / "input")
    saved_driver.main(*(str(tmp_path / name) for name in ("checkpoint", "output", "input")), "2")

    place = f"{store_for_jobs.location}/saved"
    files = sorted((tmp_path / "input").glob("*/*.parquet"), key=lambda file: (file.name, file.parent.name))
    earlier, later = files[: len(files) // 2 // 2 * 2], files[len(files) // 2 // 2 * 2 :]
    for some, parallelism, begun in ((earlier, "2", ()), (later, "3", (f"{place}/savepoint",))):
        for file in some:
            put(file, f"{place}/input/{file.parent.name}/{file.name}")
        where = f"{place}/checkpoint-{parallelism}", f"{place}/output-{parallelism}", f"{place}/input"
        ended(SAVED, cluster, *where, parallelism, *begun, variables=variables)
        if not begun:
            command(variables, "savepoint", where[0], f"{place}/savepoint")
    outputs = [got(f"{place}/output-{parallelism}", tmp_path / parallelism) for parallelism in "23"]
    assert all(lines(output) for output in outputs)
    assert sorted(line for output in outputs for line in lines(output)) == lines(tmp_path / "output")


def command(variables: Any, *arguments: str) -> dict[str, Any]:
    """Return the answer of the command line."""
    path = os.pathsep.join(entry for entry in sys.path if entry.endswith("src"))
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    said = subprocess.run(
        [sys.executable, "-m", "eventide", *arguments, "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode in (0, 1), said.stderr
    found: dict[str, Any] = json.loads(said.stdout)
    return found
