"""From topic to topic through savepoints: each record is there once, whatever the parallelism was."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.errors import StateError
from eventide.spark.checkpoint.savepoint import take_savepoint
from eventide.testing import KafkaBroker
from support.kafka_topics import contents, new_topic, produce

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill]

JOB = Path(__file__).parents[1] / "support" / "kafka_to_kafka_job.py"
BEGIN_MS = 1_700_000_000_000
PARALLELISM = (3, 2, 1, 5)
ROWS_OF_LIFE = 1_500


def events(life: int, side: int) -> Iterator[dict[str, Any]]:
    """The events of a topic before a life: 100 in a second, in two partitions, out of order within the bound."""
    numbers = random.Random(f"{life} {side}")
    for n in range(life * ROWS_OF_LIFE, (life + 1) * ROWS_OF_LIFE):
        value = b'{"user":"user-%d","n":%d}' % (numbers.randrange(9), n)
        yield {"value": value, "partition": n % 2, "timestamp": BEGIN_MS + 10 * n + numbers.randrange(1_500)}


def expected(orders: list[dict[str, Any]], payments: list[dict[str, Any]]) -> tuple[Counter[Any], Counter[Any]]:
    """The windows that are complete at the end, and the pairs."""
    watermark = min(max(e["timestamp"] for e in orders if e["partition"] == p) for p in (0, 1)) - 2_001
    sums: dict[tuple[str, int], list[int]] = {}
    for order in orders:
        end = order["timestamp"] // 5_000 * 5_000 + 5_000
        if end - 1 <= watermark:
            content = json.loads(order["value"])
            sums.setdefault((content["user"], end), []).append(content["n"])
    windows = Counter((user, sum(found), len(found)) for (user, _), found in sums.items())
    by_user: dict[str, list[tuple[int, int]]] = {}
    for payment in payments:
        content = json.loads(payment["value"])
        by_user.setdefault(content["user"], []).append((payment["timestamp"], content["n"]))
    pairs: Counter[Any] = Counter()
    for order in orders:
        content = json.loads(order["value"])
        for timestamp, n in by_user.get(content["user"], ()):
            if -1_000 <= timestamp - order["timestamp"] <= 2_000:
                pairs[content["user"], content["n"], n] += 1
    return windows, pairs


def test_a_job_goes_on_under_another_parallelism_with_its_transactions(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path
) -> None:
    """The first is killed in mid work, and finishes what it began; each begins with the savepoint of the one before."""
    topics, name = [new_topic(broker, 2), new_topic(broker, 2)], f"results-{uuid.uuid4().hex[:12]}"
    results = [f"{name}-windows", f"{name}-pairs"]
    for topic in results:
        broker.create_topic(topic, 3)
    read: list[list[dict[str, Any]]] = [[], []]
    for life, parallelism in enumerate(PARALLELISM):
        for side, topic in enumerate(topics):
            some = [*events(life, side)]
            read[side] += some
            produce(broker, topic, some)
        checkpoint, before = tmp_path / f"checkpoint-{life}", tmp_path / f"saved-{life - 1}"
        arguments = [broker.bootstrap_servers, name, str(checkpoint), *topics, str(parallelism)]
        command = [sys.executable, str(JOB), *arguments, *([str(before)] if life else [])]
        if life == 0:
            kill_in_mid_work(command, checkpoint, tmp_path / "log")
            with pytest.raises(StateError, match="has begun micro-batch"):
                take_savepoint(spark, str(checkpoint), str(tmp_path / "saved-0"))
        with (tmp_path / "log").open("ab") as log:
            code = subprocess.run(command, check=False, stdout=log, stderr=log).returncode
        assert code == 0, (tmp_path / "log").read_text()[-3_000:]
        take_savepoint(spark, str(checkpoint), str(tmp_path / f"saved-{life}"))
    windows, pairs = ([json.loads(m.value() or b"") for m in contents(broker, topic)] for topic in results)
    assert (
        Counter((found["user"], found["total"], found["orders"]) for found in windows),
        Counter((found["user"], found["order"], found["payment"]) for found in pairs),
    ) == expected(*read)


def kill_in_mid_work(command: list[str], checkpoint: Path, log: Path) -> None:
    """Kill a job when it has planned a third micro-batch, and has not committed it."""
    with log.open("ab") as said:
        life = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
    deadline = time.monotonic() + 300
    while not (checkpoint / "offsets" / "2").exists() and life.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(life.pid, signal.SIGKILL)
    life.wait()
    assert (checkpoint / "offsets" / "2").exists(), log.read_text()[-3_000:]
    assert not (checkpoint / "commits" / "2").exists()
