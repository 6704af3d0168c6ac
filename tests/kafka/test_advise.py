"""A topic is measured up to its present end: by a field of its values, or by the timestamps of its records."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eventide.advisor import Topic, advise
from eventide.errors import DataError, ProgramError
from eventide.testing import KafkaBroker
from support.kafka_topics import new_topic, produce

pytestmark = pytest.mark.kafka

START_MS = 1_600_000_000_000
MINUTE = 60_000
ROWS = 600
BEHIND_MS = np.random.default_rng(2).integers(0, 9_000, ROWS)


@pytest.fixture(scope="module")
def topic(broker: KafkaBroker) -> str:
    """Four partitions: two in turn, one of which is 40 minutes behind, one of three records, and one of none."""
    topic = new_topic(broker, 4)
    written = [(START_MS + i * 1_000, i % 2, int(BEHIND_MS[i]) + i % 2 * 40 * MINUTE) for i in range(ROWS)]
    written += [(START_MS + i * 1_000, 2, 0) for i in range(3)]
    # By partition, so that the order in which records were written is in their timestamps alone.
    produce(
        broker,
        topic,
        (
            {"value": json.dumps({"at": at - behind, "x": 1}).encode(), "timestamp": at, "partition": partition}
            for at, partition, behind in sorted(written, key=lambda record: record[1])
        ),
    )
    produce(
        broker, topic, [{"value": b'{"x": 1}', "timestamp": START_MS, "partition": 2}, {"value": None, "partition": 2}]
    )
    return topic


def test_the_event_time_is_a_field_of_json_and_arrival_is_the_timestamp_of_the_record(
    broker: KafkaBroker, topic: str
) -> None:
    advice = advise(Topic(broker.bootstrap_servers, topic), time="at")
    found = advice.disorder
    assert {name.rpartition("-")[2]: split.rows for name, split in found.splits.items()} == {"0": 300, "1": 300, "2": 3}
    assert (found.nulls, found.has_clock) == (2, True)
    assert [name.rpartition("-")[2] for name in found.silent] == ["3"]
    times = START_MS + np.arange(0, ROWS, 2) * 1_000 - BEHIND_MS[::2]
    expected = np.maximum.accumulate(times) - times
    first = next(split for name, split in found.splits.items() if name.endswith("-0"))
    assert first.most_behind_ms == expected.max()
    assert 40 * MINUTE - 10_000 < advice.wait_ms < 40 * MINUTE + 10_000
    assert advice.idleness_ms is not None
    assert advice.drift_ms is not None


def test_without_a_field_the_timestamps_of_the_records_are_the_event_times(broker: KafkaBroker, topic: str) -> None:
    advice = advise(Topic(broker.bootstrap_servers, topic))
    assert advice.disorder.rows == ROWS + 5
    assert "with_timestamp_assigner" not in advice.code
    first = next(split for name, split in advice.disorder.splits.items() if name.endswith("-0"))
    assert first.most_behind_ms == 0


def test_what_cannot_be_measured_is_said(broker: KafkaBroker, topic: str) -> None:
    with pytest.raises(ProgramError, match="leave out split_by and order_by"):
        advise(Topic(broker.bootstrap_servers, topic), time="at", split_by="x")
    with pytest.raises(DataError, match="the column 'nothing' is null in all"):
        advise(Topic(broker.bootstrap_servers, topic), time="nothing")
