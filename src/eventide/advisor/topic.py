"""Topics of Kafka as stretches: each partition a split, in the order in which their records were written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.advisor.arrivals import ColumnRoles, in_order
from eventide.advisor.meter import Stretch
from eventide.advisor.progress import Watch
from eventide.advisor.times import Clock, Unit
from eventide.api.source import PartRange, TimestampedBatch, Unreadable
from eventide.common.typeinfo import TypeInformation, Types
from eventide.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
)
from eventide.errors import ProgramError
from eventide.runtime.chain.outputs import cannot_be_read

_TIME = "time"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of Kafka, which is read from its earliest records to its present end.

    Args:
        servers: The brokers to ask first, such as ``"localhost:9092"``.
        name: The topic.
        properties: What else the client must know, such as how to log in; see ``KafkaSourceBuilder.set_properties``.

    >>> Topic("localhost:9092", "orders").name
    'orders'
    """

    servers: str
    name: str
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


class TimeField(KafkaRecordDeserializationSchema):
    """The times in one field of JSON values, null where there is none."""

    def __init__(self, name: str, unit: Unit | None) -> None:
        self._name = name
        self._clock = Clock(name, unit)

    def deserialize_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """A column of milliseconds."""
        values = pa.array(map(self._value, records.column("value").to_pylist()))
        there = values.is_valid()
        times = np.zeros(len(values), np.int64)
        if there.true_count:
            times[there.to_numpy(zero_copy_only=False)] = self._clock.times(values.drop_null())
        column = pa.array(times, mask=~there.to_numpy(zero_copy_only=False))
        return pa.RecordBatch.from_arrays([column], [_TIME])

    def get_produced_type(self) -> TypeInformation:
        """A row of one number."""
        return Types.ROW_NAMED([_TIME], [Types.LONG()])

    def _value(self, message: bytes | None) -> object:
        import msgspec

        found = None if message is None else msgspec.json.decode(message)
        return found.get(self._name) if isinstance(found, dict) else None


class _NoField(KafkaRecordDeserializationSchema):
    """Nothing of the values: the timestamps of records come beside them."""

    def deserialize_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([records.column("timestamp")], [_TIME])

    def get_produced_type(self) -> TypeInformation:
        return Types.ROW_NAMED([_TIME], [Types.LONG()])


def read_topic(topic: Topic, columns: ColumnRoles, watch: Watch) -> Iterator[Stretch]:
    """The records of a topic.

    Partitions have no order among each other. Where the event time is a field, records are taken in the order of their
    timestamps, which is that of their arrival. Where it is that timestamp itself, partitions are compared as if they
    were read at one pace: at the same share of their records.

    Raises:
        ProgramError: if other columns than the time are named, or Kafka does not let us in.
        DataError: if the topic cannot be read, or the field does not say a time.
    """
    if columns.split_by or columns.order_by is not None:
        raise ProgramError("the splits of a topic are its partitions, in their order: leave out split_by and order_by")
    source = _source(topic, columns)
    try:
        parts = source.parts({})
        starts = {part: beginning.start for part, beginning in source.beginnings(parts).items()}
        ends = source.ends(parts)
        read = _read(source, [PartRange(part, starts[part], ends[part]) for part in parts], watch)
        if columns.time:
            yield from in_order(read)
        else:
            yield from _at_one_pace(list(read))
        yield Stretch(np.array([], np.int64), parts, np.array([], np.int32))
    finally:
        source.stop()


def _source(topic: Topic, columns: ColumnRoles) -> KafkaSource:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(topic.servers)
        .set_topics(topic.name)
        .set_properties(dict(topic.properties))
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_deserializer(TimeField(columns.time, columns.unit) if columns.time else _NoField())
        .build()
    )


def _read(source: KafkaSource, ranges: list[PartRange], watch: Watch) -> Iterator[Stretch]:
    for part, items in source.read_together(ranges):
        for item in items:
            if isinstance(item, Unreadable):
                raise cannot_be_read(item) from item.error
            if not isinstance(item, TimestampedBatch):
                continue
            times, written = item.rows.column(0), item.timestamps
            nulls = times.null_count
            if nulls:
                written, times = written.filter(times.is_valid()), times.drop_null()
            watch.rows_read(len(times))
            places = np.zeros(len(times), np.int32)
            yield Stretch(times.to_numpy(), [part], places, written.to_numpy(), nulls)


def _at_one_pace(read: list[Stretch]) -> Iterator[Stretch]:
    """Partitions side by side, each from its beginning to its end."""
    rows: dict[str, int] = {}
    for one in read:
        rows[one.names[0]] = rows.get(one.names[0], 0) + len(one.times)
    begun = dict.fromkeys(rows, 0)
    paced = []
    for one in read:
        name = one.names[0]
        place = begun[name] + np.arange(len(one.times))
        begun[name] += len(one.times)
        share = (place * (1 << 40) // max(1, rows[name])).astype(np.int64)
        paced.append(Stretch(one.times, one.names, one.places, share, one.nulls))
    for one in in_order(paced):
        yield Stretch(one.times, one.names, one.places, None, one.nulls)
