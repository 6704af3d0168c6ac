"""Kafka topics as a sink, and the conversion of elements to records (PyFlink: ``KafkaSink``)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Self, overload

from eventide._absent import says_what_is_absent
from eventide.common.serialization import SerializationSchema
from eventide.common.type_variables import T, T_contra
from eventide.common.typeinfo import TypeInformation
from eventide.connectors.kafka._properties import as_text, librdkafka_properties
from eventide.connectors.sink import DeliveryGuarantee, Sink
from eventide.errors import DataError, ProgramError, check_is

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_PREFIX = 64_000
_TAKES_A_SCHEMA = "takes a SerializationSchema, such as SimpleStringSchema()"

Headers = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]
Partition = Callable[[Any, bytes | None, bytes | None, str, Sequence[int]], int]

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@says_what_is_absent
@dataclass(frozen=True)
class KafkaSink(Sink[T_contra]):
    """Writes elements as records of Kafka topics; made with :meth:`builder`. PyFlink: ``KafkaSink``.

    - ``EXACTLY_ONCE``: all records of a micro-batch, and its number, are written in one transaction, so that a reader
      of committed records (``isolation.level=read_committed``) sees each record once, even after failures and
      repetitions. The records of a micro-batch go through the driver.
    - ``AT_LEAST_ONCE``: Spark's tasks write their records, and end when Kafka has them. A micro-batch, or a task, that
      is repeated writes them again.
    - ``NONE``, the default as in Flink: here, the same as ``AT_LEAST_ONCE``.

    >>> from eventide.common import SimpleStringSchema
    >>> lines = KafkaRecordSerializationSchema.builder().set_topic("lines")
    >>> sink = (
    ...     KafkaSink.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_record_serializer(lines.set_value_serialization_schema(SimpleStringSchema()).build())
    ...     .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    ...     .set_transactional_id_prefix("lines-of-the-job")
    ...     .build()
    ... )
    >>> sink.delivery_guarantee.name, sink.transactional_id_prefix
    ('EXACTLY_ONCE', 'lines-of-the-job')
    """

    bootstrap_servers: str
    record_serializer: KafkaRecordSerializationSchema[T_contra]
    delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    transactional_id_prefix: str | None = None
    properties: dict[str, str] = field(default_factory=dict, repr=False)  # there are passwords among them

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Start without settings."""
        return KafkaSinkBuilder()

    @property
    def is_exactly_once(self) -> bool:
        """Whether records are written in transactions."""
        return self.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE


class KafkaSinkBuilder(Generic[T_contra]):
    """Builds a :class:`KafkaSink`; each step changes the builder and returns it. PyFlink: ``KafkaSinkBuilder``."""

    def __init__(self) -> None:
        self._given: dict[str, Any] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """Set the brokers: hosts and ports, separated by commas."""
        return self._with(bootstrap_servers=bootstrap_servers)

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema[T]) -> KafkaSinkBuilder[T]:
        """Set the serializer that makes records from elements.

        Raises:
            ProgramError: It is not a :class:`KafkaRecordSerializationSchema`.
        """
        needs = "set_record_serializer takes the result of KafkaRecordSerializationSchema.builder()...build()"
        check_is(record_serializer, KafkaRecordSerializationSchema, needs)
        builder: KafkaSinkBuilder[Any] = self._with(record_serializer=record_serializer)
        return builder

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """Set how often a record reaches its topic if a job fails in between; by default ``NONE``.

        Raises:
            ProgramError: It is not a :class:`DeliveryGuarantee`.
        """
        check_is(delivery_guarantee, DeliveryGuarantee, "set_delivery_guarantee takes a DeliveryGuarantee")
        return self._with(delivery_guarantee=delivery_guarantee)

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> Self:
        """Set the name of this sink's transactions, and of the consumer group that keeps its progress.

        ``EXACTLY_ONCE`` needs it. It must stay the same over restarts of the job, and must be unique in the cluster.

        Raises:
            ProgramError: It is empty, or longer than 64,000 bytes in UTF-8.
        """
        if not transactional_id_prefix or len(transactional_id_prefix.encode()) > _LONGEST_PREFIX:
            raise ProgramError(
                f"a transactional id prefix has 1 to {_LONGEST_PREFIX:,} bytes, not {transactional_id_prefix!r:.100}"
            )
        return self._with(transactional_id_prefix=transactional_id_prefix)

    def set_property(self, key: str, value: str) -> Self:
        """Set a property of the producer: one of librdkafka, or one of Java's producer with the same meaning.

        Raises:
            ProgramError: It is a property of Java without an equivalent; the error says what to set instead.
        """
        if key == "transactional.id":
            raise ProgramError("transactional.id is made of a prefix: call set_transactional_id_prefix(...)")
        return self._with(properties={**self._given.get("properties", {}), key: as_text(key, value)})

    def build(self) -> KafkaSink[T_contra]:
        """The sink.

        Raises:
            ProgramError: The servers or the serializer are not set, or the prefix that ``EXACTLY_ONCE`` needs.
        """
        properties = self._given.get("properties", {})
        servers = self._given.get("bootstrap_servers") or properties.get("bootstrap.servers")
        if not servers:
            raise ProgramError("a KafkaSink needs brokers: call set_bootstrap_servers(...)")
        if "record_serializer" not in self._given:
            raise ProgramError("a KafkaSink needs a record serializer: call set_record_serializer(...)")
        sink: KafkaSink[T_contra] = KafkaSink(**{**self._given, "bootstrap_servers": servers})
        if sink.is_exactly_once and sink.transactional_id_prefix is None:
            raise ProgramError(
                "EXACTLY_ONCE needs a name of this sink's own in the cluster, which stays the same when the job is "
                "restarted: call set_transactional_id_prefix(...)"
            )
        librdkafka_properties(properties)  # refuses what has no counterpart
        return sink

    def _with(self, **changes: object) -> Self:
        self._given |= changes
        return self


class KafkaTopicSelector(ABC, Generic[T_contra]):
    """Selects the topic of an element. PyFlink: ``KafkaTopicSelector``."""

    @abstractmethod
    def apply(self, data: T_contra) -> str:
        """Return the name of the topic for an element."""


class KafkaPartitioner(ABC, Generic[T_contra]):
    """Selects the partition of a record. Flink: ``KafkaPartitioner``; PyFlink has none.

    Without one, partitions are chosen as by the Java producer: by the key, or any partition without a key.
    """

    @abstractmethod
    def partition(
        self, record: T_contra, key: bytes | None, value: bytes | None, target_topic: str, partitions: Sequence[int]
    ) -> int:
        """Return one of the partitions.

        Args:
            record: The element.
            key: The bytes of its key, if it has one.
            value: The bytes of its value.
            target_topic: The topic.
            partitions: The partitions of the topic, in order.
        """


class HeaderProvider(ABC, Generic[T_contra]):
    """Provides the headers of a record. Flink: ``HeaderProvider``; PyFlink has none."""

    @abstractmethod
    def get_headers(self, input: T_contra) -> Headers:
        """Return the headers of an element: names with bytes, with text, which becomes UTF-8, or with None.

        They may be pairs, in which a name may be repeated, or a mapping.
        """


@dataclass(frozen=True)
class KafkaRecordSerializationSchema(Generic[T_contra]):
    """Form of an element in Kafka: topic, partition, key, value, headers; made with :meth:`builder`.

    The timestamp of a record is that of its element, if it has one that is not before 1970; else it is the time of
    sending. The first millisecond of 1970 also counts as no timestamp, as in the client library. PyFlink:
    ``KafkaRecordSerializationSchema``.

    >>> from eventide.common import SimpleStringSchema
    >>> schema = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic("flights")
    ...     .set_value_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    >>> schema.topic
    'flights'
    """

    topic: str | KafkaTopicSelector[T_contra] | Callable[[Any], str]
    value_serializer: SerializationSchema[T_contra]
    key_serializer: SerializationSchema[T_contra] | None = None
    partitioner: KafkaPartitioner[T_contra] | Partition | None = None
    header_provider: HeaderProvider[T_contra] | Callable[[Any], Headers] | None = None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Start without a topic."""
        return KafkaRecordSerializationSchemaBuilder()


class KafkaRecordSerializationSchemaBuilder(Generic[T_contra]):
    """Builds a :class:`KafkaRecordSerializationSchema`; each step changes the builder and returns it.

    A topic and the serializer of values must be set. A type checker takes the type of the elements from this
    serializer, or from a later step whose argument accepts fewer elements.

    PyFlink: ``KafkaRecordSerializationSchemaBuilder``.
    """

    def __init__(self) -> None:
        self._given: dict[str, Any] = {}

    def set_topic(self, topic: str) -> Self:
        """Set the topic of all records.

        Raises:
            ProgramError: It cannot be the name of a topic.
        """
        return self._with(topic=checked_topic(topic))

    @overload
    def set_topic_selector(self, topic_selector: KafkaTopicSelector[T_contra] | Callable[[Any], str]) -> Self: ...

    @overload
    def set_topic_selector(self, topic_selector: KafkaTopicSelector[T]) -> KafkaRecordSerializationSchemaBuilder[T]: ...

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder[Any]:
        """Set the topic of each element by a function of it, or by a selector.

        Raises:
            ProgramError: It is neither.
        """
        return self._with(topic=_checked_function(topic_selector, KafkaTopicSelector, "set_topic_selector"))

    @overload
    def set_key_serialization_schema(self, key_serialization_schema: SerializationSchema[T_contra]) -> Self: ...

    @overload
    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema[T]
    ) -> KafkaRecordSerializationSchemaBuilder[T]: ...

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder[Any]:
        """Set the schema that makes the key of a record from its element; by default, records have no key.

        Raises:
            ProgramError: It is not a serialization schema.
        """
        check_is(key_serialization_schema, SerializationSchema, f"set_key_serialization_schema {_TAKES_A_SCHEMA}")
        return self._with(key_serializer=key_serialization_schema)

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema[T]
    ) -> KafkaRecordSerializationSchemaBuilder[T]:
        """Set the schema that makes the value of a record from its element; the value None deletes its key.

        Raises:
            ProgramError: It is not a serialization schema.
        """
        check_is(value_serialization_schema, SerializationSchema, f"set_value_serialization_schema {_TAKES_A_SCHEMA}")
        builder: KafkaRecordSerializationSchemaBuilder[Any] = self._with(value_serializer=value_serialization_schema)
        return builder

    @overload
    def set_partitioner(self, partitioner: KafkaPartitioner[T_contra] | Partition) -> Self: ...

    @overload
    def set_partitioner(self, partitioner: KafkaPartitioner[T]) -> KafkaRecordSerializationSchemaBuilder[T]: ...

    def set_partitioner(self, partitioner: KafkaPartitioner | Partition) -> KafkaRecordSerializationSchemaBuilder[Any]:
        """Set the partitioner of records, or a function with its arguments.

        Raises:
            ProgramError: It is neither.
        """
        return self._with(partitioner=_checked_function(partitioner, KafkaPartitioner, "set_partitioner"))

    @overload
    def set_header_provider(self, header_provider: HeaderProvider[T_contra] | Callable[[Any], Headers]) -> Self: ...

    @overload
    def set_header_provider(self, header_provider: HeaderProvider[T]) -> KafkaRecordSerializationSchemaBuilder[T]: ...

    def set_header_provider(
        self, header_provider: HeaderProvider | Callable[[Any], Headers]
    ) -> KafkaRecordSerializationSchemaBuilder[Any]:
        """Set the headers of each record by a function of the element, or by a provider.

        Raises:
            ProgramError: It is neither.
        """
        return self._with(header_provider=_checked_function(header_provider, HeaderProvider, "set_header_provider"))

    def build(self) -> KafkaRecordSerializationSchema[T_contra]:
        """The schema.

        Raises:
            ProgramError: There is no topic, or no serializer of values.
        """
        if "topic" not in self._given:
            raise ProgramError("records need a topic: call set_topic(...) or set_topic_selector(...)")
        if "value_serializer" not in self._given:
            raise ProgramError("records need a value: call set_value_serialization_schema(...)")
        return KafkaRecordSerializationSchema(**self._given)

    def _with(self, **changes: object) -> Self:
        self._given |= changes
        return self


def checked_topic(name: object) -> str:
    """Return the name of a topic, if Kafka allows it.

    Raises:
        ProgramError: if Kafka does not allow it.
    """
    if isinstance(name, str) and _TOPIC.fullmatch(name) and name not in {".", ".."}:
        return name
    raise ProgramError(
        f"{name!r} cannot be the name of a Kafka topic: names have 1 to 249 letters, digits, '.', '_' and '-'"
    )


class RecordEncoder:
    """Makes records from elements: value and timestamp, and what the serializer sets of key, topic, partition, headers.

    Args:
        serializer: the user's description of topic, key, value, partition and headers.
        partitions_of: returns the partitions of a topic, for a partitioner.
    """

    def __init__(
        self, serializer: KafkaRecordSerializationSchema, partitions_of: Callable[[str], Sequence[int]]
    ) -> None:
        self._serializer = serializer
        self._partitions_of = partitions_of

    def encode(
        self, elements: pa.Array | list[Any], timestamps: pa.Array | list[int | None], type_info: TypeInformation
    ) -> pa.RecordBatch:
        """The records of some elements, in their order.

        Args:
            elements: a column, which is encoded as a whole if the serializer can, or Python objects.
            timestamps: their event times in milliseconds, None for an element without one.
            type_info: their type.

        Raises what a function or a user-defined serializer raises; a note at it says which element it was.
        """
        import pyarrow as pa

        serializer = self._serializer
        rows = _SerializedElements(elements, type_info)
        columns: dict[str, pa.Array] = {
            "value": rows.serialized(serializer.value_serializer),
            "timestamp": _sent_timestamps(timestamps),
        }
        if serializer.key_serializer is not None:
            columns["key"] = rows.serialized(serializer.key_serializer)
        if not isinstance(topic := serializer.topic, str):
            select = topic.apply if isinstance(topic, KafkaTopicSelector) else topic
            columns["topic"] = pa.array(rows.each(_checked(select)), pa.string())
        if (chooses := serializer.partitioner) is not None:
            choose = chooses.partition if isinstance(chooses, KafkaPartitioner) else chooses
            columns["partition"] = pa.array(self._partitions(choose, rows, columns), pa.int32())
        if (provider := serializer.header_provider) is not None:
            give = provider.get_headers if isinstance(provider, HeaderProvider) else provider
            columns["headers"] = pa.array(rows.each(lambda element: _pairs(give(element))), _header_type())
        return pa.record_batch(columns)

    def _partitions(self, choose: Partition, rows: _SerializedElements, columns: Mapping[str, pa.Array]) -> list[int]:
        import pyarrow as pa

        count = len(columns["value"])
        keys = iter(columns.get("key", pa.nulls(count)).to_pylist())
        values = iter(columns["value"].to_pylist())
        fixed: list[str] = [str(self._serializer.topic)] * count
        topics = iter(columns["topic"].to_pylist() if "topic" in columns else fixed)
        known: dict[str, Sequence[int]] = {}

        def partition(element: object) -> int:
            topic = next(topics)
            if topic not in known:
                known[topic] = self._partitions_of(topic)
            chosen = choose(element, next(keys), next(values), topic, known[topic])
            if chosen not in known[topic]:
                raise DataError(
                    f"the partitioner chose {chosen!r}, and the partitions of {topic} are {[*known[topic]]}"
                )
            return int(chosen)

        return rows.each(partition)


def _checked_function(given: object, kind: type, where: str) -> object:
    if isinstance(given, kind) or callable(given):
        return given
    raise ProgramError(f"{where} takes a {kind.__name__} or a function, not {given!r}")


class _SerializedElements:
    """Elements in their given form, and one by one if needed."""

    def __init__(self, elements: pa.Array | list[Any], type_info: TypeInformation) -> None:
        self._elements = elements
        self._type_info = type_info
        self._values = elements if isinstance(elements, list) else None

    def serialized(self, schema: SerializationSchema) -> pa.Array:
        """The bytes of the elements by a schema."""
        import pyarrow as pa

        if isinstance(self._elements, list):
            return pa.array(self.each(schema.serialize), pa.binary())
        return schema.serialize_column(self._elements, self._type_info)

    def each(self, function: Callable[[Any], Any]) -> list[Any]:
        """Return the results of a function for all elements."""
        if self._values is None:
            self._values = self._type_info.from_arrow(self._elements)
        results: list[Any] = []
        try:
            for value in self._values:
                results.append(function(value))
        except Exception as error:
            error.add_note(f"The element was {self._values[len(results)]!r:.500}")
            raise
        return results


def _checked(select: Callable[[Any], str]) -> Callable[[Any], str]:
    known: set[str] = set()

    def topic(element: object) -> str:
        name = select(element)
        if name not in known:
            known.add(checked_topic(name))
        return name

    return topic


def _pairs(headers: Headers | None) -> list[tuple[str, bytes | None]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]


def _sent_timestamps(timestamps: pa.Array | list[int | None]) -> pa.Array:
    """The timestamps of records: none for a missing timestamp, or one before 1970, as in Flink."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pa.array(timestamps, pa.int64())
    return pc.if_else(pc.less(found, 0), pa.scalar(None, pa.int64()), found)


def _header_type() -> pa.DataType:
    import pyarrow as pa

    return pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
