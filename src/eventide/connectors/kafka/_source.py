"""The Kafka source, in which each partition is a split and offsets are positions; and its builder."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Generic, Self

from eventide.api.source import Beginning, Counted, PartRange, Source, shared_out
from eventide.common.ms import MAX_MS
from eventide.common.serialization import DeserializationSchema
from eventide.common.type_variables import T, T_co
from eventide.common.typeinfo import TypeInformation
from eventide.connectors.kafka._cluster import Cluster, KnownPartitions
from eventide.connectors.kafka._offsets import (
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    Subscription,
    needs_group,
    specified,
    starting_offsets,
)
from eventide.connectors.kafka._properties import ConnectorOptions, KafkaSourceSettings, as_text, librdkafka_properties
from eventide.connectors.kafka._reading import Lost, borrowed, read_ranges
from eventide.connectors.kafka._records import LOST, Decoder, KafkaRecordDeserializationSchema, check_deserializer
from eventide.errors import ProgramError
from eventide.storage import Folder

_SERVERS, _GROUP, _PREFIX = "bootstrap.servers", "group.id", "client.id.prefix"
_FOLDER = "partitions"
_ISOLATION = {"read_committed", "read_uncommitted"}


class KafkaSource(Source[T_co]):
    """Reads Kafka topics; made with :meth:`builder`. PyFlink: ``KafkaSource``.

    Each partition is a split, with its own watermark. Elements have the timestamps of their records, which are their
    event time unless the strategy has an assigner. Offsets are kept in the job's checkpoint; the offsets committed to
    the group are only for monitoring.

    It needs the package confluent-kafka, which comes with the extra ``kafka``.

    >>> from eventide.common import SimpleStringSchema
    >>> source = (
    ...     KafkaSource.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_topics("orders")
    ...     .set_group_id("shop")
    ...     .set_starting_offsets(KafkaOffsetsInitializer.earliest())
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .build()
    ... )
    >>> source, source.get_produced_type(), source.is_bounded()
    (KafkaSource(orders at localhost:9092), STRING, False)
    """

    def __init__(self, settings: KafkaSourceSettings) -> None:
        self._settings = settings
        self._cluster: Cluster | None = None
        self._partitions: KnownPartitions | None = None
        self._storage: str | None = None

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Start without settings."""
        return KafkaSourceBuilder()

    def splits(self) -> list[str]:
        return self._known().listing()

    def parts(self, known: Mapping[str, int | None]) -> list[str]:
        """The partitions; new ones are discovered every ``partition.discovery.interval.ms``.

        Raises:
            DataError: if a topic does not exist, or a topic that was read has been deleted.
            StateError: if one was recreated.
        """
        return self._known().listing(known)

    def beginnings(self, parts: Sequence[str]) -> dict[str, Beginning]:
        """The start and stop offsets of new partitions, and the ids of their topics.

        Partitions that did not exist when the job first started are read from their beginning, as in Flink. Partitions
        that Kafka did not have for a time continue at their positions, if that is not an error.
        """
        known, cluster, settings = self._known(), self._asked(), self._settings
        places = {part: KafkaTopicPartition.of_name(part) for part in parts}
        starts = {places[part]: at for part, at in known.left_at(parts).items()}
        new = [part for part in parts if places[part] not in starts]
        first = [places[part] for part in new if known.is_of_the_start(part)]
        later = [places[part] for part in new if not known.is_of_the_start(part)]
        starts |= starting_offsets(settings.starting, first, cluster)
        starts |= starting_offsets(KafkaOffsetsInitializer.earliest(), later, cluster)
        stops: Mapping[KafkaTopicPartition, int] = {}
        if settings.stopping is not None:
            stops = specified(settings.stopping, list(places.values()), cluster)
        return {
            part: Beginning(
                starts[place], max(starts[place], stops[place]) if place in stops else None, known.identity(place.topic)
            )
            for part, place in places.items()
        }

    def for_job(
        self, operator: str, storage: str | None, job_parameters: Mapping[str, str] | None = None
    ) -> KafkaSource[T_co]:
        """A copy of this source that records in ``storage`` the partitions at the first start of the job."""
        source = copy(self)
        source._storage, source._cluster, source._partitions = storage, None, None
        return source

    def resume(self, identities: Mapping[str, str]) -> None:
        self._known().resume(identities)

    def initial_position(self, split: str) -> int:
        return self.beginnings([split])[split].start

    def latest_position(self, split: str) -> int:
        return self.ends([split])[split]

    def ends(self, parts: Collection[str]) -> dict[str, int]:
        places = {part: KafkaTopicPartition.of_name(part) for part in parts}
        ends = self._asked().end_offsets(list(places.values()))
        return {part: ends[place] for part, place in places.items()}

    def positions_at(
        self, timestamp_ms: int, positions: Mapping[str, int], column: str | None = None
    ) -> dict[str, int] | None:
        """The offsets after the last records up to a time, by the timestamps of records only; one request."""
        if column is not None:
            return None
        if timestamp_ms < 0:
            return dict(positions)  # no record in Kafka is as old
        places = {part: KafkaTopicPartition.of_name(part) for part in positions}
        ends = self.ends(positions)
        if timestamp_ms == MAX_MS:
            return ends
        found = self._asked().offsets_for_times(dict.fromkeys(places.values(), timestamp_ms + 1))
        return {part: max(at, found.get(places[part], ends[part])) for part, at in positions.items()}

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """The ends of partitions, or positions within the limit of rows, of which each partition gets an equal part.

        Offsets are counted as rows; some may have no record, which is only found when they are read.

        Raises:
            DataError: if a partition ends before its position.
        """
        ends = self._known().ends(positions)
        self._see(ends)
        left = {part: ends[part] - position for part, position in positions.items()}
        taken = left if max_rows is None else shared_out(left, max_rows)
        return {part: position + taken[part] for part, position in positions.items()}

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        for _, items in self.read_together([PartRange(split, start, end)]):
            yield from items

    def reads_together(self) -> bool:
        """True, because a task waits for all its partitions at once."""
        return True

    def may_be_away(self) -> bool:
        """True, because its brokers may not answer while those of other sources do."""
        return True

    def read_together(self, ranges: Sequence[PartRange]) -> Iterator[tuple[str, Iterable[Any]]]:
        """The elements of several partitions, as they arrive.

        Raises:
            DataError: if a record cannot be read, or records are gone and that is an error.
        """
        settings = self._settings
        wanted = {KafkaTopicPartition.of_name(way.part): (way.start, way.end) for way in ranges}
        decoder = Decoder(settings.deserializer)
        with borrowed(settings.properties, settings.group_id, settings.options.client_id_prefix) as reader:
            for partition, given in read_ranges(reader, wanted, settings.servers, settings.options.patience_ms / 1_000):
                part = str(partition)
                if not isinstance(given, Lost):
                    yield part, decoder.items(partition, given)
                elif settings.fails_on_data_loss:
                    raise given.as_error(partition)
                else:
                    decoder.counts[LOST] += given.end - given.start
        if decoder.counts and ranges:
            counted = {name: ["count", number] for name, number in decoder.counts.items()}
            yield ranges[0].part, [Counted(counted)]

    def commit(self, positions: Mapping[str, int]) -> None:
        """Commit to the group, if there is one, without waiting for an answer."""
        if self._settings.group_id is not None and self._settings.options.commits_offsets:
            self._asked().commit({KafkaTopicPartition.of_name(part): at for part, at in positions.items()})

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = self._partitions = None

    def is_bounded(self) -> bool:
        return self._settings.is_bounded

    def may_end(self) -> bool:
        return self._settings.stopping is not None

    def has_ended(self, split: str, position: int) -> bool:
        """False, because only an offset to stop at ends a partition."""
        return False

    def gives_timestamps(self) -> bool:
        return True

    def gives_watermarks(self) -> bool:
        return False

    def get_produced_type(self) -> TypeInformation:
        return self._settings.deserializer.get_produced_type()

    def _asked(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._settings)
        return self._cluster

    def _known(self) -> KnownPartitions:
        if self._partitions is None:
            self._partitions = KnownPartitions(self._settings, self._asked(), self._memory())
        return self._partitions

    def _memory(self) -> Folder | None:
        if self._storage is None or self._settings.is_bounded:
            return None
        with suppress(ProgramError):  # Arrow does not reach the checkpoint
            return Folder(
                f"{self._storage}/{_FOLDER}", "delete it: partitions that are not read yet begin as in a new job"
            )
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cluster": None, "_partitions": None}

    def __repr__(self) -> str:
        return f"KafkaSource({self._settings.subscription} at {self._settings.servers})"


@dataclass
class KafkaSourceBuilder(Generic[T_co]):
    """Builds a :class:`KafkaSource`; each step changes the builder and returns it. PyFlink: ``KafkaSourceBuilder``.

    It needs servers, a subscription (:meth:`set_topics`, :meth:`set_topic_pattern` or :meth:`set_partitions`), and a
    deserializer (:meth:`set_value_only_deserializer` or :meth:`set_deserializer`). By default, it reads all partitions
    from their beginning, and does not end.
    """

    _properties: dict[str, str] = field(default_factory=dict, repr=False)
    _subscription: Subscription | None = None
    _starting: KafkaOffsetsInitializer = field(default_factory=KafkaOffsetsInitializer.earliest)
    _stopping: KafkaOffsetsInitializer | None = None
    _is_bounded: bool = False
    _deserializer: KafkaRecordDeserializationSchema[T_co] | None = None
    _fails_on_data_loss: bool = True

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """Set the servers of Kafka: hosts and ports, separated by commas."""
        return self.set_property(_SERVERS, bootstrap_servers)

    def set_group_id(self, group_id: str) -> Self:
        """Set the group: its offsets are committed with each micro-batch, for monitoring, and may be start offsets.

        A job always continues from its checkpoint, never from these offsets.
        """
        return self.set_property(_GROUP, group_id)

    def set_topics(self, *topics: str) -> Self:
        """Read all partitions of some topics, which must exist when the job starts.

        Raises:
            ProgramError: There are no topics, or another subscription is set already.
        """
        names = tuple(dict.fromkeys(one for given in topics for one in ([given] if isinstance(given, str) else given)))
        if not names or not all(isinstance(name, str) and name for name in names):
            raise ProgramError(f"set_topics needs the names of topics, not {topics!r}")
        return self._subscribe(Subscription(topics=names))

    def set_topic_pattern(self, topic_pattern: str | re.Pattern[str]) -> Self:
        """Read all partitions of all topics whose whole name matches a regular expression of Python.

        New topics are discovered every ``partition.discovery.interval.ms``. Kafka's internal topics are ignored.

        Raises:
            ProgramError: It is not a regular expression, or another subscription is set already.
        """
        try:
            pattern = re.compile(topic_pattern)
        except (re.error, TypeError) as error:
            raise ProgramError(
                f"set_topic_pattern needs a regular expression, not {topic_pattern!r}: {error}"
            ) from error
        return self._subscribe(Subscription(pattern=pattern))

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> Self:
        """Read only some partitions.

        Raises:
            ProgramError: They are not partitions, or another subscription is set already.
        """
        chosen = tuple(partitions)
        if not chosen or not all(isinstance(partition, KafkaTopicPartition) for partition in chosen):
            raise ProgramError(
                f"set_partitions needs a set of KafkaTopicPartition(topic, partition), not {partitions!r}"
            )
        return self._subscribe(Subscription(partitions=tuple(sorted(set(chosen)))))

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Set the start offsets of partitions that exist at the first start of the job; by default, their beginning.

        Raises:
            ProgramError: It is not a :class:`KafkaOffsetsInitializer`.
        """
        self._starting = _initializer("set_starting_offsets", starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Stop at some offsets, and end the stream with the last of them; in all else it is unbounded.

        Raises:
            ProgramError: It is not a :class:`KafkaOffsetsInitializer`.
        """
        self._stopping = _initializer("set_unbounded", stopping_offsets_initializer)
        self._is_bounded = False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Stop at some offsets, and end the stream with the last of them, without partition discovery.

        The offsets are found once, when the job first starts, and kept in the checkpoint.

        Raises:
            ProgramError: It is not a :class:`KafkaOffsetsInitializer`.
        """
        self._stopping = _initializer("set_bounded", stopping_offsets_initializer)
        self._is_bounded = True
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema[T]) -> KafkaSourceBuilder[T]:
        """Set the schema that makes elements from values; keys and headers are ignored.

        Raises:
            ProgramError: It is not a ``DeserializationSchema``.
        """
        return self.set_deserializer(KafkaRecordDeserializationSchema.value_only(deserialization_schema))

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema[T]) -> KafkaSourceBuilder[T]:
        """Set the deserializer that makes elements from whole records. Not in PyFlink; Flink's Java API has it.

        Raises:
            ProgramError: It is not a :class:`KafkaRecordDeserializationSchema`.
        """
        builder: KafkaSourceBuilder[Any] = self
        builder._deserializer = check_deserializer(record_deserializer)
        return builder

    def set_client_id_prefix(self, prefix: str) -> Self:
        """Set the prefix of the names of clients, for the brokers' logs and quotas."""
        return self.set_property(_PREFIX, prefix)

    def set_property(self, key: str, value: str) -> Self:
        """Set a property: of librdkafka, of the Java client, or of Flink's connector.

        Properties of the Java client that have another name in librdkafka are translated when the source is built.

        Raises:
            ProgramError: It is not text, a number or a boolean.
        """
        self._properties[key] = as_text(key, value)
        return self

    def set_properties(self, props: Mapping[str, str]) -> Self:
        """Set several properties; see :meth:`set_property`.

        Raises:
            ProgramError: One is not text, a number or a boolean.
        """
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def set_fail_on_data_loss(self, fail_on_data_loss: bool) -> Self:
        """Set whether records that are gone before they were read are an error; by default they are. Not in PyFlink.

        If not, the job continues with the available records, and counts the skipped offsets as ``numRecordsLost``: of
        records that Kafka deleted because of their age, and of deleted topics. A partition that ends before its
        position, and a topic that was recreated, are always errors.
        """
        self._fails_on_data_loss = bool(fail_on_data_loss)
        return self

    def build(self) -> KafkaSource[T_co]:
        """The source.

        Raises:
            ProgramError: A setting is missing, or a property has no equivalent here.
        """
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
                raise ProgramError(f"{initializer!r} needs a consumer group: set_group_id('...')")
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
