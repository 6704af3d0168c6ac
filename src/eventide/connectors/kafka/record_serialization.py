"""How elements become records of Kafka (PyFlink: ``KafkaRecordSerializationSchema``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from eventide.common.serialization import SerializationSchema
from eventide.connectors.kafka._topics import checked_topic
from eventide.errors import ProgramError

Headers = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]
Partition = Callable[[Any, bytes | None, bytes | None, str, Sequence[int]], int]


class KafkaTopicSelector(ABC):
    """Says into which topic an element goes. PyFlink: ``KafkaTopicSelector``."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the name of the topic for an element."""


class KafkaPartitioner(ABC):
    """Says into which partition of its topic a record goes. Flink: ``KafkaPartitioner``; PyFlink has none.

    Without one, records go where the producer of Java puts them: by their key, or anywhere if they have none.
    """

    @abstractmethod
    def partition(
        self, record: Any, key: bytes | None, value: bytes | None, target_topic: str, partitions: Sequence[int]
    ) -> int:
        """Return one of the partitions.

        Args:
            record: The element.
            key: The bytes of its key, if it has one.
            value: The bytes of its value.
            target_topic: The topic.
            partitions: The partitions that the topic has, in order.
        """


class HeaderProvider(ABC):
    """Says which headers a record has. Flink: ``HeaderProvider``; PyFlink has none."""

    @abstractmethod
    def get_headers(self, input: Any) -> Headers:
        """Return the headers of an element: names with bytes, with text for its UTF-8, or with None.

        They may come as pairs, among which a name may stand more than once, or as a mapping.
        """


@dataclass(frozen=True)
class KafkaRecordSerializationSchema:
    """Form of an element in Kafka: topic, partition, key, value, headers; made with :meth:`builder`.

    The timestamp of a record is the event timestamp of its element, where it has one that is not before 1970; else it
    is the time at which it is sent. The first millisecond of 1970 counts as none, too: the client library has no other
    word for that. PyFlink: ``KafkaRecordSerializationSchema``.

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

    topic: str | KafkaTopicSelector
    value_serializer: SerializationSchema
    key_serializer: SerializationSchema | None = None
    partitioner: KafkaPartitioner | None = None
    header_provider: HeaderProvider | None = None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Start without a topic."""
        return KafkaRecordSerializationSchemaBuilder()


@dataclass(frozen=True)
class _Draft:
    topic: str | KafkaTopicSelector | None = None
    value_serializer: SerializationSchema | None = None
    key_serializer: SerializationSchema | None = None
    partitioner: KafkaPartitioner | None = None
    header_provider: HeaderProvider | None = None


class KafkaRecordSerializationSchemaBuilder:
    """Builds a :class:`KafkaRecordSerializationSchema`; each step changes the builder and returns it.

    A topic and the serializer of values must be set. PyFlink: ``KafkaRecordSerializationSchemaBuilder``.
    """

    def __init__(self) -> None:
        self._draft = _Draft()

    def set_topic(self, topic: str) -> Self:
        """Set the topic of all records.

        Raises:
            ProgramError: It cannot be the name of a topic.
        """
        return self._with(topic=checked_topic(topic))

    def set_topic_selector(self, topic_selector: Callable[[Any], str] | KafkaTopicSelector) -> Self:
        """Set what gives the topic for each element: a function of it, or a selector.

        Raises:
            ProgramError: It is neither.
        """
        return self._with(topic=_as(KafkaTopicSelector, _SelectedBy, topic_selector, "set_topic_selector"))

    def set_key_serialization_schema(self, key_serialization_schema: SerializationSchema) -> Self:
        """Set what makes the key of a record from its element; without one, records have no key.

        Raises:
            ProgramError: It is no serialization schema.
        """
        return self._with(key_serializer=_checked_schema(key_serialization_schema, "set_key_serialization_schema"))

    def set_value_serialization_schema(self, value_serialization_schema: SerializationSchema) -> Self:
        """Set what makes the value of a record from its element; None is the value that deletes its key.

        Raises:
            ProgramError: It is no serialization schema.
        """
        found = _checked_schema(value_serialization_schema, "set_value_serialization_schema")
        return self._with(value_serializer=found)

    def set_partitioner(self, partitioner: Partition | KafkaPartitioner) -> Self:
        """Set what chooses the partition of each record: a partitioner, or a function with its arguments.

        Raises:
            ProgramError: It is neither.
        """
        return self._with(partitioner=_as(KafkaPartitioner, _PartitionedBy, partitioner, "set_partitioner"))

    def set_header_provider(self, header_provider: Callable[[Any], Headers] | HeaderProvider) -> Self:
        """Set what gives the headers of each record: a function of the element, or a provider.

        Raises:
            ProgramError: It is neither.
        """
        return self._with(header_provider=_as(HeaderProvider, _HeadersBy, header_provider, "set_header_provider"))

    def build(self) -> KafkaRecordSerializationSchema:
        """The schema.

        Raises:
            ProgramError: There is no topic, or nothing that makes values.
        """
        draft = self._draft
        if draft.topic is None:
            raise ProgramError("records need a topic: call set_topic(...) or set_topic_selector(...)")
        if draft.value_serializer is None:
            raise ProgramError("records need a value: call set_value_serialization_schema(...)")
        return KafkaRecordSerializationSchema(
            draft.topic, draft.value_serializer, draft.key_serializer, draft.partitioner, draft.header_provider
        )

    def _with(self, **changes: Any) -> Self:
        self._draft = replace(self._draft, **changes)
        return self


@dataclass(frozen=True)
class _SelectedBy(KafkaTopicSelector):
    function: Callable[[Any], str]

    def apply(self, data: Any) -> str:
        return self.function(data)


@dataclass(frozen=True)
class _PartitionedBy(KafkaPartitioner):
    function: Partition

    def partition(
        self, record: Any, key: bytes | None, value: bytes | None, target_topic: str, partitions: Sequence[int]
    ) -> int:
        return self.function(record, key, value, target_topic, partitions)


@dataclass(frozen=True)
class _HeadersBy(HeaderProvider):
    function: Callable[[Any], Headers]

    def get_headers(self, input: Any) -> Headers:
        return self.function(input)


def _as(kind: type, wrapper: Callable[[Any], Any], given: Any, where: str) -> Any:
    if isinstance(given, kind):
        return given
    if callable(given):
        return wrapper(given)
    raise ProgramError(f"{where} takes a {kind.__name__} or a function, not {given!r}")


def _checked_schema(given: Any, where: str) -> SerializationSchema:
    if isinstance(given, SerializationSchema):
        return given
    raise ProgramError(f"{where} takes a SerializationSchema, such as SimpleStringSchema(), not {given!r}")
