"""Whatever is killed of a cluster, at whatever moment: the output is that of a job that was left alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cluster.disturbed import VICTIMS, Disturbed
from tests.spark import killed_job
from tests.spark.test_kill import PROGRAMS, check

from eventide.testing import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def test_whatever_is_killed_of_a_cluster_the_output_is_that_of_an_undisturbed_job(
    spark: SparkSession, cluster: SparkCluster, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Every kind of job, each with an executor, a worker, the driver and the master killed; `--kills=5` five times."""
    dice = random.Random(pytestconfig.getoption("--seed"))
    folder = tmp_path / "input"
    killed_job.write_input(folder)
    undisturbed = {job: tmp_path / "undisturbed" / job for job in PROGRAMS}
    for job, place in undisturbed.items():
        PROGRAMS[job].main(job, str(place / "checkpoint"), str(place / "output"), str(folder))
    for series in range(pytestconfig.getoption("--kills")):
        killed = {job: tmp_path / f"killed-{series}" / job for job in PROGRAMS}
        for job, place in killed.items():
            Disturbed(cluster, job, str(place), str(folder), dice).run(dice.sample(VICTIMS, len(VICTIMS)))
        check(spark, killed, undisturbed)
