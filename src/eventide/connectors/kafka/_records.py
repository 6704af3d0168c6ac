"""Kafka records, and their conversion to elements: as columns if a schema can, else one by one."""

from __future__ import annotations

from abc import ABC
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eventide.api.source import TimestampedBatch, Unreadable
from eventide.api.windows import TimestampedValue
from eventide.common.serialization import DeserializationSchema
from eventide.common.type_variables import T, T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.connectors.kafka._offsets import KafkaTopicPartition
from eventide.connectors.kafka.library import library
from eventide.errors import ProgramError, check_is

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import Message

_T = TypeVar("_T")

LOST = "numRecordsLost"
"""The number of offsets that were gone before they were read."""

LEFT_OUT = "numRecordsWithoutElement"
"""The number of records without an element, such as tombstones."""

_SECOND = itemgetter(1)


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """A record in Kafka. Kafka: ``ConsumerRecord``.

    Args:
        topic: The topic.
        partition: The number of the partition.
        offset: The offset in the partition.
        timestamp: Milliseconds since the epoch, UTC: when it was created, or written, as the topic is configured.
        key: The key's bytes; None if there is none.
        value: The value's bytes; None for a tombstone.
        headers: Names and bytes, in their order; a name may be repeated.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class KafkaRecordDeserializationSchema(ABC, Generic[T_co]):
    """Makes elements from whole records, for :meth:`KafkaSourceBuilder.set_deserializer`.

    A user-defined one has :meth:`deserialize`, for one record at a time; or, for speed, :meth:`deserialize_batch`, for
    many records as columns. It declares the type of its elements with :meth:`get_produced_type`.

    Flink: ``KafkaRecordDeserializationSchema`` of the Java API; PyFlink has none.

    >>> class KeyAndOffset(KafkaRecordDeserializationSchema):
    ...     def deserialize(self, record):
    ...         return record.key.decode(), record.offset
    ...     def get_produced_type(self):
    ...         return Types.TUPLE([Types.STRING(), Types.LONG()])
    >>> KeyAndOffset().deserialize(ConsumerRecord("orders", 0, 7, 1_000, b"wren", b"{}"))
    ('wren', 7)
    """

    def deserialize(self, record: ConsumerRecord) -> T_co | None:
        """Return the element in a record; None to skip the record."""
        raise NotImplementedError(f"{type(self).__name__} needs deserialize(record) or deserialize_batch(records)")

    def deserialize_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the elements of many records of one partition, a row for each of them, with the columns of their type.

        Args:
            records: The columns ``topic``, ``partition``, ``offset``, ``timestamp`` (milliseconds), ``key``, ``value``
                and ``headers`` (a list of structs of ``key`` and ``value``).
        """
        raise NotImplementedError(f"{type(self).__name__} needs deserialize(record) or deserialize_batch(records)")

    def get_produced_type(self) -> TypeInformation[T_co]:
        """Return the type of the elements; by default any object, pickled."""
        return Types.PICKLED_BYTE_ARRAY()

    @staticmethod
    def value_only(value_deserialization_schema: DeserializationSchema[T]) -> KafkaRecordDeserializationSchema[T]:
        """Return a deserializer of the values of records by a schema.

        Raises:
            ProgramError: It is not a ``DeserializationSchema``.
        """
        needs = "values are read by a DeserializationSchema, such as SimpleStringSchema()"
        check_is(value_deserialization_schema, DeserializationSchema, needs)
        return ValueOnly(value_deserialization_schema)


@dataclass(frozen=True, slots=True)
class ValueOnly(KafkaRecordDeserializationSchema[T_co]):
    """Deserializer of records by a schema of their values."""

    schema: DeserializationSchema[T_co]

    def deserialize(self, record: ConsumerRecord) -> T_co | None:
        return self.schema.deserialize(record.value)  # type: ignore[arg-type]

    def get_produced_type(self) -> TypeInformation[T_co]:
        return self.schema.get_produced_type()


def sees_batches(deserializer: KafkaRecordDeserializationSchema) -> bool:
    """Whether the deserializer makes elements from many records at once."""
    return type(deserializer).deserialize_batch is not KafkaRecordDeserializationSchema.deserialize_batch


def check_deserializer(deserializer: object) -> KafkaRecordDeserializationSchema:
    """Return a deserializer of records, checked.

    Raises:
        ProgramError: if it is not a deserializer, or has neither of the two methods.
    """
    if not isinstance(deserializer, KafkaRecordDeserializationSchema):
        raise ProgramError(
            "records are read by a KafkaRecordDeserializationSchema, and values alone with "
            f"set_value_only_deserializer; not by {deserializer!r}"
        )
    if type(deserializer).deserialize is KafkaRecordDeserializationSchema.deserialize and not sees_batches(
        deserializer
    ):
        raise ProgramError(f"{type(deserializer).__name__} needs deserialize(record) or deserialize_batch(records)")
    return deserializer


class Decoder:
    """Converts the messages of partitions to items of a source; ``counts`` has the skipped ones."""

    def __init__(self, deserializer: KafkaRecordDeserializationSchema) -> None:
        self._deserializer = deserializer
        self.counts: Counter[str] = Counter()
        produced = self._deserializer.get_produced_type()
        if isinstance(self._deserializer, ValueOnly) and not (produced.is_pickled or produced.has_exponents):
            self.items: Callable[[KafkaTopicPartition, list[Message]], Iterator[Any]] = self._columns_of_values
        elif sees_batches(self._deserializer):
            self.items = self._batches
        else:
            self.items = self._elements

    def _columns_of_values(self, partition: KafkaTopicPartition, messages: list[Message]) -> Iterator[Any]:
        schema = self._deserializer.schema  # type: ignore[attr-defined]

        def read(some: list[Message]) -> pa.Array:
            return schema.deserialize_all(_values(some))

        for item in self._sorted_out(partition, messages, read):
            if isinstance(item, Unreadable):
                yield item
                continue
            some, column = item
            timestamps = _timestamps(some)
            if column.null_count:
                self.counts[LEFT_OUT] += column.null_count
                there = column.is_valid()
                column, timestamps = column.filter(there), timestamps.filter(there)
            if len(column):
                yield TimestampedBatch(_as_rows(column), timestamps)

    def _batches(self, partition: KafkaTopicPartition, messages: list[Message]) -> Iterator[Any]:
        def read(some: list[Message]) -> pa.RecordBatch:
            rows = self._deserializer.deserialize_batch(as_batch(partition, some))
            if len(rows) != len(some):
                raise ProgramError(
                    f"{type(self._deserializer).__name__}.deserialize_batch gave {len(rows)} rows for {len(some)} "
                    "records; it must give a row for each, so that it is known which timestamp it has"
                )
            return rows

        for item in self._sorted_out(partition, messages, read):
            yield item if isinstance(item, Unreadable) else TimestampedBatch(item[1], _timestamps(item[0]))

    def _elements(self, partition: KafkaTopicPartition, messages: list[Message]) -> Iterator[Any]:
        deserializer = self._deserializer
        for message in messages:
            try:
                if isinstance(deserializer, ValueOnly):
                    element = deserializer.schema.deserialize(message.value())  # type: ignore[arg-type]
                else:
                    element = deserializer.deserialize(as_record(message))
            except ProgramError:
                raise
            except Exception as error:
                yield unreadable(partition, message, error)
                continue
            if element is None:
                self.counts[LEFT_OUT] += 1
            else:
                yield TimestampedValue(element, message.timestamp()[1])

    def _sorted_out(
        self, partition: KafkaTopicPartition, messages: list[Message], read: Callable[[list[Message]], _T]
    ) -> Iterator[tuple[list[Message], _T] | Unreadable]:
        """Read messages at once; if one of them cannot be read, read halves, down to that one."""
        try:
            found = read(messages)
        except ProgramError:
            raise  # not the fault of a record
        except Exception as error:
            if len(messages) == 1:
                yield unreadable(partition, messages[0], error)
                return
        else:
            yield messages, found
            return
        middle = len(messages) // 2
        yield from self._sorted_out(partition, messages[:middle], read)
        yield from self._sorted_out(partition, messages[middle:], read)


def unreadable(partition: KafkaTopicPartition, message: Message, error: Exception) -> Unreadable:
    """Describe a message that cannot be read."""
    _, timestamp = message.timestamp()
    return Unreadable(error, message.value(), str(partition), message.offset(), message.key(), timestamp)


def as_record(message: Any) -> ConsumerRecord:
    """Return a message of the library as a record."""
    return ConsumerRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


def as_batch(partition: KafkaTopicPartition, messages: list[Any]) -> pa.RecordBatch:
    """Messages of one partition as columns."""
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers = [[{"key": key, "value": value} for key, value in one.headers() or ()] for one in messages]
    return pa.record_batch(
        {
            "topic": pa.repeat(partition.topic, len(messages)),
            "partition": pa.repeat(pa.scalar(partition.partition, pa.int32()), len(messages)),
            "offset": pa.array([one.offset() for one in messages], pa.int64()),
            "timestamp": _timestamps(messages),
            "key": pa.array([one.key() for one in messages], pa.binary()),
            "value": pa.array(_values(messages), pa.binary()),
            "headers": pa.array(headers, pa.list_(header)),
        }
    )


def _values(messages: list[Message]) -> list[bytes | None]:
    return list(map(library().Message.value, messages))


def _timestamps(messages: list[Message]) -> pa.Array:
    import pyarrow as pa

    return pa.array(list(map(_SECOND, map(library().Message.timestamp, messages))), pa.int64())


def _as_rows(column: pa.Array) -> pa.RecordBatch:
    import pyarrow as pa

    is_struct = pa.types.is_struct(column.type)
    return pa.RecordBatch.from_struct_array(column) if is_struct else pa.record_batch({"value": column})
