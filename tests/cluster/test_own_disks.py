"""Nothing of a job lies on the disk of its driver, or of an executor, alone."""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.cluster.disturbed import Disturbed, of_files
from support.cluster.drivers import PATIENCE_S, started
from support.cluster.own_disks import can_have_own_disks, with_own_disk
from support.spark import killed_job
from support.spark.undisturbed import PROGRAMS, check
from support.spark_cluster import SparkCluster

OTHER_MACHINES = {"SETTINGS": json.dumps({"spark.shuffle.readHostLocalDisk": "false"})}
"""Executors have one address here and different disks, which real machines have not."""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.cluster,
    pytest.mark.skipif(not can_have_own_disks(), reason="only root can give processes disks of their own"),
]


@pytest.fixture
def shared() -> Iterator[Path]:
    """The one folder that all of them see."""
    with tempfile.TemporaryDirectory(prefix="eventide-shared-") as folder:
        yield Path(folder)


def test_a_driver_with_an_empty_disk_goes_on_where_another_died(
    spark: SparkSession, shared: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Every kind of job, on a cluster whose parts share the folder of the checkpoint and no other."""
    dice, started_by = random.Random(pytestconfig.getoption("--seed")), with_own_disk(shared)
    killed_job.write_input(shared / "input")
    undisturbed = {job: tmp_path / job for job in PROGRAMS}
    for job, place in undisturbed.items():
        PROGRAMS[job].main(job, str(place / "checkpoint"), str(place / "output"), str(shared / "input"))
    killed = {job: shared / job for job in PROGRAMS}
    with SparkCluster(memory="1g", started_by=started_by) as cluster:
        for job, place in killed.items():
            disturbed = Disturbed(
                cluster,
                job,
                *of_files(job, str(place), str(shared / "input")),
                dice,
                OTHER_MACHINES,
                started_by,
            )
            disturbed.run(dice.sample(["executor", "driver"], 2))
        seen_here = [path for worker in range(2) for path in cluster.folder(worker).rglob("*")]
        assert seen_here == [], "workers have disks of their own"
    check(spark, killed, undisturbed)


def test_state_that_lies_on_a_disk_that_is_gone_is_said_to_be() -> None:
    """Without a location for the checkpoint, it is a folder of the driver's machine, and each executor has its own."""
    started_by = with_own_disk()
    with SparkCluster(memory="1g", started_by=started_by) as cluster:
        program = Path(__file__).parents[1] / "support" / "cluster" / "temporary_checkpoint.py"
        driver = started(program, cluster, variables=OTHER_MACHINES, started_by=started_by)
        try:
            assert driver.stdout is not None
            assert "and no other machine of the cluster finds the job's state there" in driver.stdout.readline()
            assert driver.stdout.readline() == "has begun\n"
            for worker in range(2):
                cluster.kill_worker(worker)
            cluster.start()
            said, _ = driver.communicate(timeout=PATIENCE_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
        assert said.startswith("failed: an executor cannot find what the job has stored: there is no file:")
