"""Spark's own connector for Kafka: a job that reads a topic with it begins where a savepoint stood."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.connector import connector
from eventide.spark.checkpoint.savepoint import take_savepoint
from eventide.testing import KafkaBroker
from support.kafka_topics import new_topic, produce

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

JOB = Path(__file__).parents[1] / "support" / "kafka_data_frame_job.py"
BEGIN_MS = 1_700_000_000_000
BOUND_MS = 500


def records(numbers: range) -> Iterator[dict[str, Any]]:
    """A hundred a second, in two partitions, out of order within the bound."""
    dice = random.Random(numbers.start)
    for n in numbers:
        timestamp = BEGIN_MS + 10 * n + dice.randrange(BOUND_MS)
        yield {"value": str(n).encode(), "partition": n % 2, "timestamp": timestamp}


def expected(read: list[dict[str, Any]]) -> Counter[str]:
    """The windows that are complete after them."""
    watermark = min(max(r["timestamp"] for r in read if r["partition"] == p) for p in (0, 1)) - BOUND_MS - 1
    sums: Counter[tuple[int, int]] = Counter()
    for record in read:
        n = int(record["value"])
        sums[n % 3, record["timestamp"] // 1_000 * 1_000 + 1_000] += n
    return Counter(f"{key} {end} {total}" for (key, end), total in sums.items() if end - 1 <= watermark)


@pytest.mark.long
def test_a_topic_is_read_on_from_where_a_savepoint_stood(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic, read, found = new_topic(broker, 2), [], Counter[str]()
    jars = ",".join(map(str, connector()[1]))
    for life, parallelism in enumerate((2, 3)):
        some = [*records(range(life * 1_500, (life + 1) * 1_500))]
        read += some
        produce(broker, topic, some)
        output, checkpoint = tmp_path / f"output-{life}", str(tmp_path / f"checkpoint-{life}")
        saved = [str(tmp_path / "saved")] if life else []
        arguments = [jars, broker.bootstrap_servers, topic, str(output), checkpoint, str(parallelism), *saved]
        command = [sys.executable, str(JOB), *arguments]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr[-3_000:]
        found.update(line for file in output.glob("*.txt") for line in file.read_text().splitlines())
        assert found == expected(read)
        if not saved:
            take_savepoint(spark, checkpoint, str(tmp_path / "saved"))
