"""Whole records of Kafka, and what makes elements of them."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from eventide.common.serialization import DeserializationSchema
from eventide.common.type_variables import T, T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """A record as it lies in Kafka. Kafka: ``ConsumerRecord``.

    Args:
        topic: The topic.
        partition: The number of the partition.
        offset: The place in the partition.
        timestamp: Milliseconds since the epoch, UTC: of its making, or of its writing, as the topic says.
        key: The key's bytes; None if there is none.
        value: The value's bytes; None for a tombstone.
        headers: Names and bytes, in their order; a name may come more than once.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class KafkaRecordDeserializationSchema(ABC, Generic[T_co]):
    """Makes elements of whole records: give one to :meth:`KafkaSourceBuilder.set_deserializer`.

    One of your own has :meth:`deserialize`, which sees one record at a time; or, for speed, :meth:`deserialize_batch`,
    which sees many as columns. It says with :meth:`get_produced_type` what its elements are.

    Flink: ``KafkaRecordDeserializationSchema`` of the Java API; PyFlink has it not.

    >>> class KeyGroupPartitioner(KafkaRecordDeserializationSchema):
    ...     def deserialize(self, record):
    ...         return record.key.decode(), record.offset
    ...     def get_produced_type(self):
    ...         return Types.TUPLE([Types.STRING(), Types.LONG()])
    >>> KeyGroupPartitioner().deserialize(ConsumerRecord("orders", 0, 7, 1_000, b"wren", b"{}"))
    ('wren', 7)
    """

    def deserialize(self, record: ConsumerRecord) -> T_co | None:
        """Return the element in a record; None where there is none, so that it is left out."""
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
        """Return one for which a record is its value: each element is what this schema makes of it.

        Raises:
            ProgramError: It is no ``DeserializationSchema``.
        """
        if not isinstance(value_deserialization_schema, DeserializationSchema):
            raise ProgramError(
                "values are read by a DeserializationSchema, such as SimpleStringSchema(), "
                f"not by {value_deserialization_schema!r}"
            )
        return ValueOnly(value_deserialization_schema)


@dataclass(frozen=True, slots=True)
class ValueOnly(KafkaRecordDeserializationSchema[T_co]):
    """What a schema of values makes of them."""

    schema: DeserializationSchema[T_co]

    def deserialize(self, record: ConsumerRecord) -> T_co | None:
        """Return what is in the value."""
        return self.schema.deserialize(record.value)  # type: ignore[arg-type]

    def get_produced_type(self) -> TypeInformation[T_co]:
        """Return the type of the schema."""
        return self.schema.get_produced_type()


def sees_batches(deserializer: KafkaRecordDeserializationSchema) -> bool:
    """Whether it makes elements of many records at once."""
    return type(deserializer).deserialize_batch is not KafkaRecordDeserializationSchema.deserialize_batch


def check_deserializer(deserializer: object) -> KafkaRecordDeserializationSchema:
    """What was given for a deserializer of records.

    Raises:
        ProgramError: if it is none, or has neither of the two methods.
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
