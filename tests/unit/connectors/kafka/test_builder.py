"""The builder of a Kafka source: what it takes, and what it refuses before Kafka is asked."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eventide.common import SimpleStringSchema, Types
from eventide.connectors.kafka._cluster import Cluster
from eventide.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from eventide.errors import ProgramError

ROOT = Path(__file__).parents[4]


def minimal() -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers("localhost:9092")
        .set_topics("orders", "returns")
        .set_value_only_deserializer(SimpleStringSchema())
    )


class Nothing(KafkaRecordDeserializationSchema):
    """Neither of the two methods."""


def test_a_minimal_source_reads_without_an_end_and_gives_timestamps_and_no_watermarks() -> None:
    source = minimal().build()
    assert repr(source) == "KafkaSource(orders, returns at localhost:9092)"
    assert source.get_produced_type() == Types.STRING()
    assert (source.is_bounded(), source.may_end()) == (False, False)
    assert (source.gives_timestamps(), source.gives_watermarks(), source.holds_when_new()) == (True, False, True)
    assert source.side_outputs() == {}


def test_a_bounded_source_ends_and_one_with_stops_alone_may_end() -> None:
    latest = KafkaOffsetsInitializer.latest()
    bounded, stops = minimal().set_bounded(latest).build(), minimal().set_unbounded(latest).build()
    assert (bounded.is_bounded(), bounded.may_end()) == (True, True)
    assert (stops.is_bounded(), stops.may_end()) == (False, True)


def test_a_compiled_pattern_keeps_its_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "_patiently", lambda self, what, ask, take: ["Orders-1", "other"])
    monkeypatch.setattr(Cluster, "_described", lambda self, names, with_internal: dict.fromkeys(names))
    builder = KafkaSource.builder().set_bootstrap_servers("a").set_topic_pattern(re.compile("orders-.*", re.IGNORECASE))
    source = pickle.loads(pickle.dumps(builder.set_value_only_deserializer(SimpleStringSchema()).build()))
    assert repr(source) == "KafkaSource(the pattern 'orders-.*' at a)"
    assert [*Cluster(source._settings).topics(source._settings.subscription)] == ["Orders-1"]


def test_what_was_built_stays_as_it_was_and_travels() -> None:
    builder = minimal()
    source = builder.build()
    builder.set_bootstrap_servers("elsewhere:9092")
    assert repr(pickle.loads(pickle.dumps(source))) == "KafkaSource(orders, returns at localhost:9092)"


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: KafkaSource.builder().set_topics("a").build(), "set_bootstrap_servers"),
        (lambda: KafkaSource.builder().set_bootstrap_servers("a").build(), "what to read"),
        (lambda: KafkaSource.builder().set_bootstrap_servers("a").set_topics("a").build(), "how records are read"),
        (lambda: minimal().set_topic_pattern("a.*"), "reads orders, returns already; it cannot read the pattern 'a.*'"),
        (lambda: minimal().set_partitions({KafkaTopicPartition("a", 0)}), "reads orders, returns already"),
        (lambda: KafkaSource.builder().set_topics(), "needs the names of topics"),
        (lambda: KafkaSource.builder().set_topic_pattern("("), "needs a regular expression, not '('"),
        (lambda: KafkaSource.builder().set_partitions([("a", 0)]), "needs a set of KafkaTopicPartition"),
        (lambda: minimal().set_starting_offsets("earliest"), "set_starting_offsets needs a KafkaOffsetsInitializer"),
        (lambda: minimal().set_bounded(5), "set_bounded needs a KafkaOffsetsInitializer"),
        (lambda: minimal().set_value_only_deserializer(str), "values are read by a DeserializationSchema"),
        (lambda: minimal().set_deserializer(SimpleStringSchema()), "set_value_only_deserializer"),
        (lambda: minimal().set_deserializer(Nothing()), "Nothing needs deserialize(record) or deserialize_batch"),
        (lambda: minimal().set_property("isolation.level", "all").build(), "read_committed or read_uncommitted"),
        (lambda: minimal().set_property("a", None), "a property has a name and a value"),
        (lambda: minimal().set_property("interceptor.classes", "x").build(), "interceptor.classes"),
        (
            lambda: minimal().set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build(),
            "committed_offsets(NONE) needs a consumer group: set_group_id",
        ),
    ],
)
def test_a_source_that_cannot_be_is_refused(build: Callable[[], object], said: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(said)):
        build()


def test_topics_may_come_as_a_list() -> None:
    builder = KafkaSource.builder().set_bootstrap_servers("a").set_value_only_deserializer(SimpleStringSchema())
    assert repr(builder.set_topics(["x", "y"]).build()) == "KafkaSource(x, y at a)"  # type: ignore[arg-type]


def test_a_program_that_only_describes_a_source_loads_no_client_library() -> None:
    program = (
        "import sys\n"
        "from eventide.common import SimpleStringSchema\n"
        "from eventide.datastream.connectors.kafka import KafkaSource\n"
        "KafkaSource.builder().set_bootstrap_servers('a').set_topics('b')"
        ".set_value_only_deserializer(SimpleStringSchema()).build()\n"
        "print([name for name in sys.modules if name.startswith(('confluent_kafka', 'pyarrow'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
