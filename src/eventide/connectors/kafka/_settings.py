"""Settings of a Kafka source, from its builder."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from eventide.connectors.kafka._offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from eventide.connectors.kafka._properties import ConnectorOptions
from eventide.connectors.kafka._records import KafkaRecordDeserializationSchema

READ_COMMITTED = "read_committed"


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which partitions are read: those of some topics, of all whose names fit a pattern, or some alone."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()

    def named_topics(self) -> Collection[str]:
        """The topics that it names; a pattern names none."""
        return dict.fromkeys([*self.topics, *(partition.topic for partition in self.partitions)])

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"the pattern {self.pattern!r}"
        return ", ".join(self.topics) or ", ".join(map(str, self.partitions))


@dataclass(frozen=True, slots=True)
class KafkaSourceSettings:
    """All that the builder of a Kafka source was told, checked.

    Args:
        properties: Those of librdkafka; the servers are among them, and passwords, so they are not shown.
        options: What the properties say to the connector.
        subscription: Which partitions are read.
        deserializer: What makes elements of records.
        starting: Where partitions start.
        stopping: Where they stop; None if they do not.
        is_bounded: Whether the partitions are those of the start, and the input is known to end.
        group_id: The group that is told of what has been handled, and whose offsets may be a start.
        fails_on_data_loss: Whether it is an error that records are gone before they were read.
    """

    properties: dict[str, str] = field(hash=False, repr=False)
    options: ConnectorOptions
    subscription: Subscription
    deserializer: KafkaRecordDeserializationSchema
    starting: KafkaOffsetsInitializer
    stopping: KafkaOffsetsInitializer | None = None
    is_bounded: bool = False
    group_id: str | None = None
    fails_on_data_loss: bool = True

    @property
    def servers(self) -> str:
        """Where Kafka is asked for."""
        return self.properties["bootstrap.servers"]

    @property
    def reads_committed(self) -> bool:
        """Whether records of open and of aborted transactions are left out; as in Flink, they are not by default."""
        return self.properties.get("isolation.level", "").lower() == READ_COMMITTED
