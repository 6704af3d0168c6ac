"""The builder of Kafka sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Self

from eventide.common.serialization import DeserializationSchema
from eventide.common.type_variables import T, T_co
from eventide.connectors.kafka._offsets import KafkaOffsetsInitializer, KafkaTopicPartition, needs_group
from eventide.connectors.kafka._properties import ConnectorOptions, as_text, librdkafka_properties
from eventide.connectors.kafka._records import KafkaRecordDeserializationSchema, check_deserializer
from eventide.connectors.kafka._settings import KafkaSourceSettings, Subscription
from eventide.errors import ProgramError

if TYPE_CHECKING:
    from eventide.connectors.kafka._source import KafkaSource

_SERVERS, _GROUP, _PREFIX = "bootstrap.servers", "group.id", "client.id.prefix"
_ISOLATION = {"read_committed", "read_uncommitted"}


@dataclass
class KafkaSourceBuilder(Generic[T_co]):
    """Builds a :class:`KafkaSource`; each step changes the builder and returns it. PyFlink: ``KafkaSourceBuilder``.

    Needed are servers, what to read (:meth:`set_topics`, :meth:`set_topic_pattern` or :meth:`set_partitions`), and what
    makes elements of records (:meth:`set_value_only_deserializer` or :meth:`set_deserializer`). Without more, it reads
    all partitions from their beginning, and does not end.
    """

    _properties: dict[str, str] = field(default_factory=dict)
    _subscription: Subscription | None = None
    _starting: KafkaOffsetsInitializer = field(default_factory=KafkaOffsetsInitializer.earliest)
    _stopping: KafkaOffsetsInitializer | None = None
    _is_bounded: bool = False
    _deserializer: KafkaRecordDeserializationSchema[T_co] | None = None
    _fails_on_data_loss: bool = True

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """Set where Kafka is: hosts and ports, with commas between them."""
        return self.set_property(_SERVERS, bootstrap_servers)

    def set_group_id(self, group_id: str) -> Self:
        """Set the group: its offsets are committed with each micro-batch, for monitoring, and may be a start.

        The job never goes on from them, but from its checkpoint.
        """
        return self.set_property(_GROUP, group_id)

    def set_topics(self, *topics: str) -> Self:
        """Read all partitions of some topics, which must be there when the job starts.

        Raises:
            ProgramError: There are none, or something else is to be read already.
        """
        names = tuple(dict.fromkeys(one for given in topics for one in ([given] if isinstance(given, str) else given)))
        if not names or not all(isinstance(name, str) and name for name in names):
            raise ProgramError(f"set_topics needs the names of topics, not {topics!r}")
        return self._subscribe(Subscription(topics=names))

    def set_topic_pattern(self, topic_pattern: str | re.Pattern[str]) -> Self:
        """Read all partitions of all topics whose whole name fits a regular expression, which is Python's.

        Topics may come later: they are looked for every ``partition.discovery.interval.ms``. Those that Kafka has for
        itself are left out.

        Raises:
            ProgramError: It is no regular expression, or something else is to be read already.
        """
        try:
            pattern = re.compile(topic_pattern)
        except (re.error, TypeError) as error:
            raise ProgramError(
                f"set_topic_pattern needs a regular expression, not {topic_pattern!r}: {error}"
            ) from error
        return self._subscribe(Subscription(pattern=pattern.pattern))

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> Self:
        """Read some partitions alone.

        Raises:
            ProgramError: They are none, or something else is to be read already.
        """
        chosen = tuple(partitions)
        if not chosen or not all(isinstance(partition, KafkaTopicPartition) for partition in chosen):
            raise ProgramError(
                f"set_partitions needs a set of KafkaTopicPartition(topic, partition), not {partitions!r}"
            )
        return self._subscribe(Subscription(partitions=tuple(sorted(set(chosen)))))

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Set where partitions start that are there when the job first starts; by default, at their beginning.

        Raises:
            ProgramError: It is no :class:`KafkaOffsetsInitializer`.
        """
        self._starting = _initializer("set_starting_offsets", starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Stop at some offsets, and with the last of them end the stream; else it is like one that does not end.

        Raises:
            ProgramError: It is no :class:`KafkaOffsetsInitializer`.
        """
        self._stopping = _initializer("set_unbounded", stopping_offsets_initializer)
        self._is_bounded = False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Stop at some offsets, and with the last of them end the stream; new partitions are not looked for.

        The offsets are found once, when the job first starts, and kept in the checkpoint.

        Raises:
            ProgramError: It is no :class:`KafkaOffsetsInitializer`.
        """
        self._stopping = _initializer("set_bounded", stopping_offsets_initializer)
        self._is_bounded = True
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema[T]) -> KafkaSourceBuilder[T]:
        """Set what makes elements of values; keys and headers do not matter.

        Raises:
            ProgramError: It is no ``DeserializationSchema``.
        """
        return self.set_deserializer(KafkaRecordDeserializationSchema.value_only(deserialization_schema))

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema[T]) -> KafkaSourceBuilder[T]:
        """Set what makes elements of whole records. Not in PyFlink; Flink's Java API has it.

        Raises:
            ProgramError: It is no :class:`KafkaRecordDeserializationSchema`.
        """
        builder: KafkaSourceBuilder[Any] = self
        builder._deserializer = check_deserializer(record_deserializer)
        return builder

    def set_client_id_prefix(self, prefix: str) -> Self:
        """Set what the names of clients begin with, as the brokers' logs and quotas see them."""
        return self.set_property(_PREFIX, prefix)

    def set_property(self, key: str, value: str) -> Self:
        """Set a property: of librdkafka, of the Java client, or of Flink's connector.

        Those of the Java client that have another name in librdkafka are translated, when the source is built.

        Raises:
            ProgramError: It is not text, or a number or truth value to be written as text.
        """
        self._properties[key] = as_text(key, value)
        return self

    def set_properties(self, props: Mapping[str, str]) -> Self:
        """Set several properties; see :meth:`set_property`.

        Raises:
            ProgramError: One is not text, or a number or truth value to be written as text.
        """
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def set_fail_on_data_loss(self, fail_on_data_loss: bool) -> Self:
        """Say whether it is an error that records are gone before they were read; it is by default. Not in PyFlink.

        If not, the job goes on with what is there, and counts how many offsets it passed over, as ``numRecordsLost``:
        of records that Kafka has deleted because of their age, and of topics that were deleted. A partition that ends
        before what has been read, and a topic that was made anew, are errors in any case.
        """
        self._fails_on_data_loss = bool(fail_on_data_loss)
        return self

    def build(self) -> KafkaSource[T_co]:
        """The source.

        Raises:
            ProgramError: Something is missing, or a property has no counterpart here.
        """
        from eventide.connectors.kafka._source import KafkaSource

        properties = librdkafka_properties(self._properties)
        if not properties.get(_SERVERS):
            raise ProgramError("a Kafka source needs servers: set_bootstrap_servers('host:9092')")
        if self._subscription is None:
            raise ProgramError(
                "a Kafka source needs to know what to read: set_topics, set_topic_pattern or set_partitions"
            )
        if self._deserializer is None:
            raise ProgramError(
                "a Kafka source needs to know how records are read: set_value_only_deserializer or set_deserializer"
            )
        isolation = properties.setdefault("isolation.level", "read_uncommitted").lower()
        if isolation not in _ISOLATION:
            raise ProgramError(f"isolation.level is read_committed or read_uncommitted, not {isolation!r}")
        group = properties.pop(_GROUP, None) or None
        for initializer in (self._starting, self._stopping):
            if group is None and initializer is not None and needs_group(initializer):
                raise ProgramError(f"{initializer!r} are those of a group: set_group_id('...')")
        return KafkaSource(
            KafkaSourceSettings(
                properties,
                ConnectorOptions.of(self._properties),
                self._subscription,
                self._deserializer,
                self._starting,
                self._stopping,
                self._is_bounded,
                group,
                self._fails_on_data_loss,
            )
        )

    def _subscribe(self, subscription: Subscription) -> Self:
        if self._subscription is not None:
            raise ProgramError(f"this source reads {self._subscription} already; it cannot read {subscription} too")
        self._subscription = subscription
        return self


def _initializer(where: str, initializer: object) -> KafkaOffsetsInitializer:
    if not isinstance(initializer, KafkaOffsetsInitializer):
        raise ProgramError(f"{where} needs a KafkaOffsetsInitializer, not {initializer!r}")
    return initializer
