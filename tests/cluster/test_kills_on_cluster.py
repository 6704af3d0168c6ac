"""Whatever is killed of a cluster, at whatever moment: the output is that of a job that was left alone."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.testing import KafkaBroker
from support import kafka_to_kafka_job
from support.cluster.disturbed import VICTIMS, Disturbed, of_files
from support.kafka_sinks import by_key, disordered
from support.kafka_topics import contents, new_topic, produce
from support.spark import killed_job
from support.spark.undisturbed import PROGRAMS, check
from support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def test_whatever_is_killed_of_a_cluster_the_output_is_that_of_an_undisturbed_job(
    spark: SparkSession,
    cluster: SparkCluster,
    tmp_path: Path,
    pytestconfig: pytest.Config,
    injected: Counter[str],
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
            disturbed = Disturbed(cluster, job, *of_files(job, str(place), str(folder)), dice)
            disturbed.run(dice.sample(VICTIMS, len(VICTIMS)))
        check(spark, killed, undisturbed)
        injected["parts of a cluster killed"] += len(VICTIMS) * len(killed)


EAGER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "10ms",
    "spark.sql.adaptive.enabled": "true",
    "spark.task.maxFailures": "8",
}
"""Spark starts a second attempt of tasks that take a little longer than others, and changes plans as it runs them."""


def test_neither_do_second_attempts_of_tasks_and_plans_that_change(
    spark: SparkSession, cluster: SparkCluster, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    dice, job = random.Random(pytestconfig.getoption("--seed")), "bounded"
    folder = tmp_path / "input"
    killed_job.write_input(folder)
    places = {name: tmp_path / name for name in ("undisturbed", "eager")}
    undisturbed, eager = places["undisturbed"], places["eager"]
    PROGRAMS[job].main(job, str(undisturbed / "checkpoint"), str(undisturbed / "output"), str(folder))
    program, checkpoint = of_files(job, str(eager), str(folder))
    disturbed = Disturbed(cluster, "eager", program, checkpoint, dice, {"SETTINGS": json.dumps(EAGER)})
    disturbed.run(["executor", "executor"])
    check(spark, {job: eager}, {job: undisturbed})
    injected["parts of a cluster killed"] += 2


class Decommissioned(Disturbed):
    """A job on a cluster, executors of which are told to leave while it works: they finish their tasks first."""

    def _kill_executor(self, worker: int) -> None:
        for executor in self._cluster.executors(worker):
            os.kill(executor, signal.SIGPWR)


LEAVING = {
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.task.maxFailures": "8",
}


def test_nor_do_executors_that_are_decommissioned(
    spark: SparkSession, cluster: SparkCluster, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    dice, job = random.Random(pytestconfig.getoption("--seed")), "bounded"
    folder = tmp_path / "input"
    killed_job.write_input(folder)
    undisturbed, left = (tmp_path / name for name in ("undisturbed", "left"))
    PROGRAMS[job].main(job, str(undisturbed / "checkpoint"), str(undisturbed / "output"), str(folder))
    program, checkpoint = of_files(job, str(left), str(folder))
    before = _decommissioned(cluster)
    disturbed = Decommissioned(cluster, "left", program, checkpoint, dice, {"SETTINGS": json.dumps(LEAVING)})
    disturbed.run(["executor", "executor"])
    check(spark, {job: left}, {job: undisturbed})
    assert _decommissioned(cluster) >= before + 2
    injected["executors decommissioned"] += 2


def _decommissioned(cluster: SparkCluster) -> int:
    """The number of executors that say in their logs that they were decommissioned."""
    logs = [path.read_text() for worker in range(2) for path in cluster.folder(worker).glob("app-*/*/stderr")]
    return sum("Decommission executor" in log for log in logs)


@pytest.mark.kafka
@pytest.mark.usefixtures("spark")
def test_nor_does_it_matter_to_what_is_read_of_topics_and_written_to_topics(
    broker: KafkaBroker, cluster: SparkCluster, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    """Windows and a join between topics, exactly once."""
    dice = random.Random(pytestconfig.getoption("--seed"))
    orders, payments = (new_topic(broker, partitions=2) for _ in range(2))
    for seed, topic in enumerate((orders, payments)):
        produce(broker, topic, disordered(random.Random(seed)))

    def program(name: str) -> tuple[list[str], str]:
        for topic in (f"{name}-windows", f"{name}-pairs"):
            broker.create_topic(topic, 3)
        checkpoint = str(tmp_path / name)
        return [broker.bootstrap_servers, name, checkpoint, orders, payments], checkpoint

    def written(name: str) -> list[dict[bytes, list[bytes]]]:
        return [by_key(contents(broker, f"{name}-{kind}")) for kind in ("windows", "pairs")]

    undisturbed = f"undisturbed-{orders}"
    kafka_to_kafka_job.main(*program(undisturbed)[0])
    assert all(len(of_key) > 5 for of_topic in written(undisturbed) for of_key in of_topic.values())
    for series in range(pytestconfig.getoption("--kills")):
        killed = f"killed-{series}-{orders}"
        arguments, checkpoint = program(killed)
        disturbed = Disturbed(cluster, "topics", [kafka_to_kafka_job.__file__, *arguments], checkpoint, dice)
        disturbed.run(dice.sample(VICTIMS, len(VICTIMS)))
        assert written(killed) == written(undisturbed)
        injected["parts of a cluster killed"] += len(VICTIMS)
