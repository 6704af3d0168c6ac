"""A partition between the driver and an executor, which works on unseen: the output is that of an undisturbed job."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.cluster.disturbed import GIVEN_UP, IMPATIENT, Disturbed, of_files
from support.namespaces import Namespace, namespace
from support.spark import killed_job
from support.spark.undisturbed import PROGRAMS, check
from support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

SHORT_S, LONG_S = 4, 30


@pytest.fixture(scope="module")
def place() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


@pytest.fixture(scope="module")
def divided(place: Namespace) -> Iterator[SparkCluster]:
    """A cluster of two workers, of which the first is at the other end of a link."""
    with SparkCluster(host=place.gateway, distant={0: place}) as running:
        yield running


class Partitioned(Disturbed):
    """A job on a cluster, which is cut off from one of its workers while it works."""

    place: Namespace

    def _kill_link(self, seconds: float) -> None:
        self.place.cut()
        try:
            time.sleep(seconds)
        finally:
            self.place.restore()

    def _kill_short_link(self, _: int) -> None:
        self._kill_link(SHORT_S)

    def _kill_long_link(self, _: int) -> None:
        self._kill_link(LONG_S)


def test_a_partition_changes_nothing_of_the_output_however_long_it_is(
    spark: SparkSession,
    divided: SparkCluster,
    place: Namespace,
    tmp_path: Path,
    pytestconfig: pytest.Config,
    injected: Counter[str],
) -> None:
    """A cut that Spark does not notice, and one after which the executor returns though it was given up."""
    job, folder = "bounded", tmp_path / "input"
    killed_job.write_input(folder)
    quiet, cut = (tmp_path / name / job for name in ("quiet", "cut"))
    PROGRAMS[job].main(job, str(quiet / "checkpoint"), str(quiet / "output"), str(folder))
    settings = {"SETTINGS": json.dumps({**IMPATIENT, "spark.driver.host": place.gateway})}
    dice = random.Random(pytestconfig.getoption("--seed"))
    disturbed = Partitioned(divided, "partition", *of_files(job, str(cut), str(folder)), dice, settings)
    disturbed.place = place
    disturbed.run(["short_link", "long_link"])
    assert GIVEN_UP in divided.said("master"), "the cut was too short: the worker was not given up"
    check(spark, {job: cut}, {job: quiet})
    injected["partitions"] += 2
