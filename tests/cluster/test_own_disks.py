"""Nothing of a job lies on the disk of its driver, or of an executor, alone."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cluster.disturbed import Disturbed, of_files
from tests.cluster.own_disks import can_have_own_disks, with_own_disk
from tests.spark import killed_job
from tests.spark.test_kill import check

from eventide.testing import SparkCluster

OTHER_MACHINES = {"spark.shuffle.readHostLocalDisk": "false"}
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
    undisturbed = {job: tmp_path / job for job in killed_job.JOBS}
    for job, place in undisturbed.items():
        killed_job.main(job, str(place / "checkpoint"), str(place / "output"), str(shared / "input"))
    killed = {job: shared / job for job in killed_job.JOBS}
    with SparkCluster(memory="1g", started_by=started_by) as cluster:
        for job, place in killed.items():
            disturbed = Disturbed(
                cluster,
                job,
                *of_files(job, str(place), str(shared / "input")),
                dice,
                {"SETTINGS": json.dumps(OTHER_MACHINES)},
                started_by,
            )
            disturbed.run(dice.sample(["executor", "driver"], 2))
        seen_here = [path for worker in range(2) for path in cluster.folder(worker).rglob("*")]
        assert seen_here == [], "workers have disks of their own"
    check(spark, killed, undisturbed)
