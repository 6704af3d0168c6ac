"""Elements as records of Kafka, many at once, in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eventide.common.serialization import SerializationSchema
from eventide.common.typeinfo import TypeInformation
from eventide.connectors.kafka._topics import checked_topic
from eventide.connectors.kafka.record_serialization import (
    KafkaRecordSerializationSchema,
    KafkaTopicSelector,
)
from eventide.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


class RecordEncoder:
    """Makes records of elements: value and timestamp, and of key, topic, partition and headers what a serializer fills.

    Args:
        serializer: what the user has said of topic, key, value, partition and headers.
        partitions_of: gives the partitions of a topic, for a partitioner.
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
            elements: as a column, which is encoded as a whole where the serializer can, or as they are.
            timestamps: their event times in milliseconds, None for an element without one.
            type_info: their type.

        Raises what a function or a user-defined serializer raises; a note at it says which element it was.
        """
        import pyarrow as pa

        serializer = self._serializer
        rows = _Rows(elements, type_info)
        columns: dict[str, pa.Array] = {
            "value": rows.serialized(serializer.value_serializer),
            "timestamp": _sent_timestamps(timestamps),
        }
        if serializer.key_serializer is not None:
            columns["key"] = rows.serialized(serializer.key_serializer)
        if isinstance(serializer.topic, KafkaTopicSelector):
            columns["topic"] = pa.array(rows.each(_checked(serializer.topic.apply)), pa.string())
        if serializer.partitioner is not None:
            columns["partition"] = pa.array(self._partitions(rows, columns), pa.int32())
        if serializer.header_provider is not None:
            headers = rows.each(lambda element: _pairs(serializer.header_provider.get_headers(element)))  # type: ignore[union-attr]
            columns["headers"] = pa.array(headers, _header_type())
        return pa.record_batch(columns)

    def _partitions(self, rows: _Rows, columns: Mapping[str, pa.Array]) -> list[int]:
        import pyarrow as pa

        count = len(columns["value"])
        choose = self._serializer.partitioner.partition  # type: ignore[union-attr]
        keys = iter(columns.get("key", pa.nulls(count)).to_pylist())
        values = iter(columns["value"].to_pylist())
        fixed: list[str] = [str(self._serializer.topic)] * count
        topics = iter(columns["topic"].to_pylist() if "topic" in columns else fixed)
        known: dict[str, Sequence[int]] = {}

        def partition(element: Any) -> int:
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


class _Rows:
    """Elements in the form in which they came, and one by one where that is needed."""

    def __init__(self, elements: pa.Array | list[Any], type_info: TypeInformation) -> None:
        self._elements = elements
        self._type_info = type_info
        self._values = elements if isinstance(elements, list) else None

    def serialized(self, schema: SerializationSchema) -> pa.Array:
        """The bytes that a schema makes of them."""
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

    def topic(element: Any) -> str:
        name = select(element)
        if name not in known:
            known.add(checked_topic(name))
        return name

    return topic


def _pairs(headers: Any) -> list[tuple[str, bytes | None]]:
    pairs: Iterable[tuple[str, Any]] = headers.items() if isinstance(headers, Mapping) else headers or ()
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]


def _sent_timestamps(timestamps: pa.Array | list[int | None]) -> pa.Array:
    """Timestamps as records have them: none where there is none, or one before 1970, as in Flink."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pa.array(timestamps, pa.int64())
    return pc.if_else(pc.less(found, 0), pa.scalar(None, pa.int64()), found)


def _header_type() -> pa.DataType:
    import pyarrow as pa

    return pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
