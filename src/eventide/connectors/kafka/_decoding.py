"""Messages as elements: as columns where a schema can, and sorted out where one of them cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from eventide.api.source import TimestampedBatch, Unreadable
from eventide.api.windows import TimestampedValue
from eventide.connectors.kafka._offsets import KafkaTopicPartition
from eventide.connectors.kafka._records import ConsumerRecord, ValueOnly, sees_batches
from eventide.connectors.kafka._settings import KafkaSourceSettings
from eventide.connectors.kafka.library import library
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

_T = TypeVar("_T")

LOST = "numRecordsLost"
"""How many offsets were gone before they were read."""

LEFT_OUT = "numRecordsWithoutElement"
"""How many records have no element in them, such as tombstones."""

_SECOND = itemgetter(1)


class Decoder:
    """Makes what a source yields of the messages of its partitions; ``counts`` has what it leaves out."""

    def __init__(self, settings: KafkaSourceSettings) -> None:
        self._deserializer = settings.deserializer
        self.counts: Counter[str] = Counter()
        is_pickled = self._deserializer.get_produced_type().is_pickled
        if isinstance(self._deserializer, ValueOnly) and not is_pickled:
            self.items: Callable[[KafkaTopicPartition, list[Any]], Iterator[Any]] = self._columns_of_values
        elif sees_batches(self._deserializer):
            self.items = self._batches
        else:
            self.items = self._elements

    def _columns_of_values(self, partition: KafkaTopicPartition, messages: list[Any]) -> Iterator[Any]:

        schema = self._deserializer.schema  # type: ignore[attr-defined]

        def read(some: list[Any]) -> pa.Array:
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

    def _batches(self, partition: KafkaTopicPartition, messages: list[Any]) -> Iterator[Any]:
        def read(some: list[Any]) -> pa.RecordBatch:
            rows = self._deserializer.deserialize_batch(as_batch(partition, some))
            if len(rows) != len(some):
                raise ProgramError(
                    f"{type(self._deserializer).__name__}.deserialize_batch gave {len(rows)} rows for {len(some)} "
                    "records; it must give a row for each, so that it is known which timestamp it has"
                )
            return rows

        for item in self._sorted_out(partition, messages, read):
            yield item if isinstance(item, Unreadable) else TimestampedBatch(item[1], _timestamps(item[0]))

    def _elements(self, partition: KafkaTopicPartition, messages: list[Any]) -> Iterator[Any]:
        values_only = isinstance(self._deserializer, ValueOnly)
        read: Any = self._deserializer.schema.deserialize if values_only else self._deserializer.deserialize  # type: ignore[attr-defined]
        for message in messages:
            try:
                element = read(message.value() if values_only else as_record(message))
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
        self, partition: KafkaTopicPartition, messages: list[Any], read: Callable[[list[Any]], _T]
    ) -> Iterator[tuple[list[Any], _T] | Unreadable]:
        """Read messages at once; where one of them cannot be read, read halves, down to that one."""
        try:
            found = read(messages)
        except ProgramError:
            raise  # no record is to blame
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


def unreadable(partition: KafkaTopicPartition, message: Any, error: Exception) -> Unreadable:
    """Describe a message that cannot be read."""
    _, timestamp = message.timestamp()
    return Unreadable(error, message.value(), str(partition), message.offset(), message.key(), timestamp)


def as_record(message: Any) -> ConsumerRecord:
    """A message of the library as a record."""
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

    count = len(messages)
    topics = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), [partition.topic]).dictionary_decode()
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers = [[{"key": k, "value": v} for k, v in one.headers() or ()] for one in messages]
    return pa.RecordBatch.from_arrays(
        [
            topics,
            pa.array([partition.partition] * count, pa.int32()),
            pa.array([one.offset() for one in messages], pa.int64()),
            _timestamps(messages),
            pa.array([one.key() for one in messages], pa.binary()),
            pa.array(_values(messages), pa.binary()),
            pa.array(headers, pa.list_(header)),
        ],
        ["topic", "partition", "offset", "timestamp", "key", "value", "headers"],
    )


def _values(messages: list[Any]) -> list[bytes | None]:
    return list(map(library().Message.value, messages))


def _timestamps(messages: list[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array(list(map(_SECOND, map(library().Message.timestamp, messages))), pa.int64())


def _as_rows(column: pa.Array) -> pa.RecordBatch:
    import pyarrow as pa

    if pa.types.is_struct(column.type):
        return pa.RecordBatch.from_arrays(column.flatten(), [field.name for field in column.type])
    return pa.RecordBatch.from_arrays([column], ["value"])
