"""A machine of a cluster, or an executor alone, stands still for longer than Spark waits, and goes on later.

The output is that of an undisturbed job.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from support.cluster.disturbed import GIVEN_UP, IMPATIENT, Disturbed, of_files
from support.spark import killed_job
from support.spark.undisturbed import PROGRAMS, check
from support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

PAUSE_S, ENDED_S = 30, 15


class Stalled(Disturbed):
    """A job on a cluster, processes of which are suspended while it works."""

    resumed = 0

    def _kill_executor(self, worker: int) -> None:
        """Suspend the executor and its Python: the worker ends it, when Spark has given it up."""
        executors = [psutil.Process(one) for one in self._cluster.executors(worker)]
        self._suspend([one.pid for one in executors])
        _, left = psutil.wait_procs(executors, ENDED_S)
        assert executors
        assert not left, "the pause was too short: the executor was not given up"

    def _kill_machine(self, worker: int) -> None:
        """Suspend the worker too: then the executor works on afterwards, though it was given up."""
        executors = self._cluster.executors(worker)
        self._suspend([psutil.Process(executors[0]).ppid(), *executors])
        self.resumed += sum(map(psutil.pid_exists, executors))

    def _suspend(self, roots: list[int]) -> None:
        found = [one for root in roots for one in (psutil.Process(root), *psutil.Process(root).children(True))]
        processes = {one.pid for one in found}
        _send(processes, signal.SIGSTOP)
        try:
            time.sleep(PAUSE_S)
        finally:
            _send(processes, signal.SIGCONT)


def _send(processes: set[int], sent: signal.Signals) -> None:
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, sent)


def test_what_stands_still_for_longer_than_spark_waits_changes_nothing_of_the_output(
    spark: SparkSession, cluster: SparkCluster, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    job, folder = "bounded", tmp_path / "input"
    killed_job.write_input(folder)
    quiet, stalled = (tmp_path / name / job for name in ("quiet", "stalled"))
    PROGRAMS[job].main(job, str(quiet / "checkpoint"), str(quiet / "output"), str(folder))
    dice, settings = random.Random(pytestconfig.getoption("--seed")), {"SETTINGS": json.dumps(IMPATIENT)}
    given_up = cluster.said("master").count(GIVEN_UP)
    disturbed = Stalled(cluster, "stalled", *of_files(job, str(stalled), str(folder)), dice, settings)
    disturbed.run(["executor", "machine"])
    assert disturbed.resumed > 0, "the executor did not live on after the pause"
    assert cluster.said("master").count(GIVEN_UP) > given_up, "the pause was too short: the worker was not given up"
    check(spark, {job: stalled}, {job: quiet})
    injected["parts of a cluster suspended"] += 2
