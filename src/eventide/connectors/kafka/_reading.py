"""Reading of ranges of partitions, all at once and each exactly, by consumers that a worker process keeps.

A range is over with a message at or after its last offset, or with the end of the partition at or after its end. There
is no other sign: transaction markers, aborted records and compacted records have no message, and any of them may be the
last of a range. A consumer is made once for each configuration, and kept from micro-batch to micro-batch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from eventide.connectors.kafka._offsets import KafkaTopicPartition
from eventide.connectors.kafka.library import (
    CLIENT_DEFAULTS,
    GRACE_S,
    Complaints,
    Meaning,
    Patience,
    client,
    library,
    meaning_of,
    place,
)
from eventide.errors import DataError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

_AT_ONCE = 500  # more messages at once would leave the processor's cache before they are handled
_WAIT_S = 0.02
_STEP = 8_192
_MOST_MESSAGES = 65_536
_MOST_BYTES = 64 * 1024 * 1024
_LOOK_S = 2.0

Ranges: TypeAlias = Mapping[KafkaTopicPartition, tuple[int, int]]
"""The first offset of each partition, and the offset after the last."""

_DEFAULTS = {
    **CLIENT_DEFAULTS,
    "fetch.wait.max.ms": 10,  # by default 500, which a new assignment would have to wait for
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 20_000,  # of each partition; by default 100,000, most of it after the end of a range
}
_FIXED = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,  # an end may lie after messages that are never seen
    "auto.offset.reset": "error",  # what is gone is not passed over in silence
}

_Key = tuple[int, tuple[tuple[str, str], ...], str | None, str | None]

_resting: dict[_Key, list[PolledConsumer]] = {}
"""Readers that are not in use. A forked process has none, because their threads are not forked."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Lost offsets of a range, from ``start`` up to, not including, ``end``, and the reason."""

    start: int
    end: int
    why: str

    def as_error(self, partition: KafkaTopicPartition) -> DataError:
        """Return the error for the lost records."""
        return DataError(
            f"offsets {self.start} to {self.end - 1} of {partition} are gone before they were read: {self.why}. Let "
            "Kafka keep records for longer than the job may stand still; set_fail_on_data_loss(False) goes on with "
            "the records that are there, and counts the others"
        )


Given: TypeAlias = "Iterator[tuple[KafkaTopicPartition, list[Message] | Lost]]"
"""Messages of partitions in the order of arrival, and the lost offsets."""


def read_ranges(reader: PolledConsumer, ranges: Ranges, servers: str, patience_s: float) -> Given:
    """The messages of some ranges, in lists; those of one partition in order. Lost offsets are :class:`Lost`.

    Raises:
        ProgramError: if Kafka refuses the client.
        DataError: if no broker answers.
    """
    return _PartitionReading(reader, ranges, servers, patience_s).all()


@dataclass(frozen=True, slots=True)
class PolledConsumer:
    """A consumer, and the errors that it reports outside of a request."""

    consumer: Consumer
    complaints: Complaints


@contextmanager
def borrowed(properties: Mapping[str, str], group_id: str | None, prefix: str | None) -> Iterator[PolledConsumer]:
    """A consumer for some ranges, without an assignment; it is kept for later ranges, unless an error occurs.

    Raises:
        ProgramError: if a property is not right.
    """
    resting = _resting.setdefault((os.getpid(), tuple(sorted(properties.items())), group_id, prefix), [])
    reader = resting.pop() if resting else _made(properties, group_id, prefix)
    try:
        yield reader
    except Exception:
        reader.consumer.close()
        raise
    except GeneratorExit:  # the reader has enough
        reader.consumer.unassign()
        resting.append(reader)
        raise
    reader.consumer.unassign()
    resting.append(reader)


@dataclass(slots=True)
class _Range:
    """The unread rest of a partition; ``waiting`` has messages that were not returned yet."""

    at: int
    end: int
    waiting: list[Message] = field(default_factory=list)
    waiting_bytes: int = 0


class _PartitionReading:
    def __init__(self, reader: PolledConsumer, ranges: Ranges, servers: str, patience_s: float) -> None:
        self._consumer = reader.consumer
        self._left = {partition: _Range(start, end) for partition, (start, end) in ranges.items() if start < end}
        self._by_place = {(partition.topic, partition.partition): partition for partition in self._left}
        self._one_topic = len({partition.topic for partition in self._left}) == 1
        self._patience = Patience(servers, patience_s, reader.complaints)
        self._looked = time.monotonic()
        self._held = self._held_bytes = 0
        message, self._codes = library().Message, library().KafkaError
        self._error_of: Callable[[Message], KafkaError | None] = message.error
        self._partition_of: Callable[[Message], int] = message.partition
        self._topic_of: Callable[[Message], str] = message.topic
        self._offset_of: Callable[[Message], int] = message.offset

    def all(self) -> Given:
        self._consumer.assign([place(partition, way.at) for partition, way in self._left.items()])
        while self._left:
            rows = sum(way.end - way.at for way in self._left.values())
            got = self._consumer.consume(min(_AT_ONCE, rows), _WAIT_S)
            if not got:
                yield from self._look()
                continue
            for topic, number, run in self._runs(got):
                partition = self._by_place.get((topic, number))
                if partition in self._left:  # else its range is over, and the message was still queued
                    yield from self._take(partition, run)
            if self._held >= _MOST_MESSAGES or self._held_bytes >= _MOST_BYTES:
                for partition, way in self._left.items():
                    yield from self._given(partition, way)

    def _runs(self, got: list[Message]) -> Iterator[tuple[str, int, list[Message]]]:
        """Messages and events that arrived together, in runs of one partition."""
        numbers = set(map(self._partition_of, got))
        if len(numbers) == 1 and (self._one_topic or len(set(map(self._topic_of, got))) == 1):
            yield self._topic_of(got[0]), self._partition_of(got[0]), got
            return
        begin = 0
        places = list(zip(map(self._topic_of, got), map(self._partition_of, got), strict=True))
        for i in range(1, len(got) + 1):
            if i == len(got) or places[i] != places[begin]:
                yield *places[begin], got[begin:i]
                begin = i

    def _take(self, partition: KafkaTopicPartition, run: list[Message]) -> Given:
        way = self._left[partition]
        if any(map(self._error_of, run)):
            for one in run:
                error = one.error()
                if error is None:
                    yield from self._keep(partition, way, [one])
                else:
                    yield from self._hear(partition, way, one, error)
                if partition not in self._left:
                    return
            return
        yield from self._keep(partition, way, run)

    def _keep(self, partition: KafkaTopicPartition, way: _Range, run: list[Message]) -> Given:
        self._looked = time.monotonic()
        self._patience.renew()
        last = self._offset_of(run[-1])
        if last >= way.end:
            run = [one for one in run if self._offset_of(one) < way.end]
        way.at = last + 1
        way.waiting += run
        self._held += len(run)
        size = sum(map(len, run))
        way.waiting_bytes += size
        self._held_bytes += size
        if way.at >= way.end:
            yield from self._over(partition, way)
        elif len(way.waiting) >= _STEP:
            yield from self._given(partition, way)

    def _hear(self, partition: KafkaTopicPartition, way: _Range, event: Message, error: KafkaError) -> Given:
        if error.code() == self._codes._PARTITION_EOF:
            if self._offset_of(event) >= way.end:
                yield from self._over(partition, way)
            # else a replica may lag, and the end is not known
        elif error.code() in {self._codes._AUTO_OFFSET_RESET, self._codes.OFFSET_OUT_OF_RANGE}:
            yield from self._pass_over(partition, way)
        else:
            self._patience.check_error(f"the records of {partition}", error)

    def _pass_over(self, partition: KafkaTopicPartition, way: _Range) -> Given:
        """Continue with the first available offset."""
        first, last = self._edges(partition) or (way.at, way.at)
        yield from self._given(partition, way)
        if first > way.at:
            on = min(first, way.end)
            yield partition, Lost(way.at, on, f"the partition begins at {first} now")
            way.at = on
        elif last < way.at and self._patience.waited >= GRACE_S:
            yield partition, Lost(way.at, way.end, f"the partition ends at {last}")
            way.at = way.end
        if way.at >= way.end:
            yield from self._over(partition, way)
            return
        self._consumer.incremental_unassign([place(partition)])
        self._consumer.incremental_assign([place(partition, way.at)])

    def _look(self) -> Given:
        """Check, after a silence, whether there is something to wait for."""
        self._patience.check(f"the records of {', '.join(map(str, self._left))}")
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        for partition in list(self._left):
            if (why := self._gone(partition)) is not None:
                way = self._left[partition]
                yield from self._given(partition, way)
                yield partition, Lost(way.at, way.end, why)
                yield from self._over(partition, way)

    def _gone(self, partition: KafkaTopicPartition) -> str | None:
        """The reason why no more messages of a partition will arrive; None while some may.

        A broker that has just started knows neither its topics nor their ends yet.
        """
        if self._patience.waited < GRACE_S:
            return None
        try:
            topic = self._consumer.list_topics(partition.topic, _LOOK_S).topics[partition.topic]
        except library().KafkaException:
            return None  # no answer
        if topic.error is not None:
            return "the topic was deleted" if meaning_of(topic.error) is Meaning.ABSENT else None
        if partition.partition not in topic.partitions:
            return "the topic does not have this partition any more"
        edges = self._edges(partition)
        return None if edges is None or edges[1] >= self._left[partition].end else f"the partition ends at {edges[1]}"

    def _edges(self, partition: KafkaTopicPartition) -> tuple[int, int] | None:
        """The present begin and end of a partition; None without an answer."""
        try:
            first, last = self._consumer.get_watermark_offsets(place(partition), _LOOK_S)
        except library().KafkaException:
            return None
        return first, last

    def _over(self, partition: KafkaTopicPartition, way: _Range) -> Given:
        yield from self._given(partition, way)
        del self._left[partition]
        if self._left:
            self._consumer.incremental_unassign([place(partition)])

    def _given(self, partition: KafkaTopicPartition, way: _Range) -> Given:
        if way.waiting:
            self._held -= len(way.waiting)
            self._held_bytes -= way.waiting_bytes
            messages, way.waiting, way.waiting_bytes = way.waiting, [], 0
            yield partition, messages


def _made(properties: Mapping[str, str], group_id: str | None, prefix: str | None) -> PolledConsumer:
    complaints = Complaints()
    settings: dict[str, Any] = {**_DEFAULTS, **properties, **_FIXED, "error_cb": complaints.hear}
    settings["group.id"] = group_id or "eventide"  # the library wants one; nothing is committed
    settings["client.id"] = f"{prefix or group_id or 'eventide'}-read"
    if "request.timeout.ms" in settings:  # Java's name for it, and here that of something producers have
        settings["socket.timeout.ms"] = settings.pop("request.timeout.ms")
    return PolledConsumer(client(library().Consumer, settings), complaints)
