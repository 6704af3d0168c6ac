"""A source of eventide as a Python data source of Spark: rows are born in Python and leave it as frames.

Spark makes it in three processes at each start of a query, of which one plans. None of them runs what comes after the
source, so what reads is imported where there is something to read.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import astuple
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from eventide.api.source import Source
from eventide.runtime.invoke import calling
from eventide.runtime.pickles import loads_program
from eventide.runtime.sources.offsets import (
    Offsets,
    PlannedSource,
    SplitRange,
    clock_of,
    dealt_out,
    everything,
    furthest_behind,
    identities,
    next_offsets,
    packed,
    pending_records,
    ranges_between,
    source_ends,
    unpacked,
)
from eventide.spark.query.shared_files import AlignmentFolder, ReachedFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.runtime.sources.reached import Reached
    from eventide.spark.query.frame_rows import OutputOfSink

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    CAN_LIMIT = True
except ImportError:  # PySpark 4.1, which reads a source of ours to its end in one micro-batch then

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for the class of PySpark 4.2."""

    CAN_LIMIT = False

_LOG = logging.getLogger("eventide")
_REST_S = 0.1
_ANSWERS_WITHIN_S = 5.0
PENDING = "eventide pending"
"""The key in the latest offset of a source under which Spark's progress has how much a micro-batch has left."""


class SourceNames:
    """The names under which the sources of one run are registered with Spark.

    A session never forgets a data source that was registered, with the program that is in it. So the names of a run
    that has ended are given to the next one, whose sources take the place of the old ones.

    >>> first, second = SourceNames(), SourceNames()
    >>> taken = first.take(), second.take()
    >>> first.release()
    >>> SourceNames().take() == taken[0]
    True
    """

    _lock = threading.Lock()
    _in_use: ClassVar[set[int]] = set()

    def __init__(self) -> None:
        self._mine: list[int] = []

    def take(self) -> str:
        """A name that no other run has now."""
        with self._lock:
            number = next(number for number in itertools.count(1) if number not in self._in_use)
            self._in_use.add(number)
            self._mine.append(number)
        return f"eventide-{number}"

    def release(self) -> None:
        """Let other runs have the names; this one has ended."""
        with self._lock:
            self._in_use.difference_update(self._mine)
            self._mine.clear()


FRAME_SCHEMA = StructType(
    [StructField("target", IntegerType()), StructField("subtask", IntegerType()), StructField("frame", BinaryType())]
)
_PART = StructType([StructField("part", StringType())])


def rows_of(parts: DataFrame, payload: bytes, ids: tuple[int, ...], to: OutputOfSink) -> DataFrame:
    """The rows that the only sink takes of a source, read by tasks that are given parts.

    Spark converts the batches of a data source to rows twice, and the result of ``mapInArrow`` only once.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                place, ranges, *rest = json.loads(part)
                yield from _read(payload, ids, to, (place, [SplitRange.of(*one) for one in ranges], *rest))

    return parts.mapInArrow(read, to.schema())


def _read(payload: bytes, ids: tuple[int, ...], to: OutputOfSink | None, part: Any) -> Iterator[pa.RecordBatch]:
    from eventide.runtime.sources.task import SourceTask
    from eventide.spark.query.frame_rows import batches_of
    from eventide.spark.query.worker import number_of_batch, opened_source, settled

    place, ranges, ends, clock_ms, reached = part
    spec = opened_source(payload, place)
    batch = None if reached is None else number_of_batch()
    watermarks = None if batch is None else spec.watermarks_before(batch, reached)
    task = SourceTask(spec, place, clock_ms, watermarks)
    return settled(batches_of(task.read_ranges(spec.source, ranges, ends), ids, to))


class FrameSource(DataSource):
    """The data source of one source of a program; a subclass with its own attributes is made for each.

    ``planned`` is a `PlannedSource`, and ``payload`` a `SourceSpec`: each is a part of the program.
    """

    planned: bytes
    payload: bytes
    ids: tuple[int, ...]
    max_rows: int | None = None
    audience: str = ""
    begins: Offsets = {}  # noqa: RUF012 - replaced, not changed, in the class of each source
    to: OutputOfSink | None = None
    unique_name = ""

    @classmethod
    def name(cls) -> str:
        """The format under which it is registered."""
        return cls.unique_name

    def schema(self) -> StructType:
        """Frames, what the only sink takes in their place, or a part to read for each task."""
        if self.to is None:
            return FRAME_SCHEMA
        return _PART if self.to.is_of_rows else self.to.schema()

    def streamReader(self, schema: Any) -> FrameStreamReader:  # noqa: N802 - Spark's name
        """Reads micro-batch by micro-batch."""
        return FrameStreamReader(
            self.planned, self.payload, self.ids, self.to, self.max_rows, self.audience, self.begins
        )

    def reader(self, schema: object) -> FrameBatchReader:
        """Reads all at once."""
        return FrameBatchReader(self.planned, self.payload, self.ids, self.to)


class _Tasks:
    """Deals the ranges of a micro-batch out to Spark's tasks, and runs them.

    Spark makes one in each of its processes that has to do with a source. A part of the program is loaded where splits
    are asked for, or read: another process asks for this object alone, to hand it on to the tasks, which only read.
    """

    def __init__(self, planned: bytes, payload: bytes, ids: tuple[int, ...], to: OutputOfSink | None) -> None:
        self._planned = planned
        self._payload = payload
        self._ids = ids
        self._to = to

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in {"_planned", "_spec"}}

    @cached_property
    def _spec(self) -> PlannedSource:
        spec: PlannedSource = loads_program(self._planned).part
        return spec

    @property
    def _source(self) -> Source:
        return self._spec.source

    def _partitions(
        self, start: Offsets, end: Offsets, clock_ms: int, reached: Reached | None = None
    ) -> Sequence[InputPartition]:
        ranges = ranges_between(self._source, start, end)
        ends = source_ends(self._source, start, end)
        count = max(1 if ends else 0, min(len(ranges), len(self._ids)))
        return [
            InputPartition((place, dealt, ends and place == 0, clock_ms, reached))
            for place, dealt in enumerate(dealt_out(ranges, count))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Called by Spark in a worker."""
        if self._to is not None and self._to.is_of_rows:
            import pyarrow as pa

            place, ranges, *rest = partition.value
            part = json.dumps([place, [astuple(one) for one in ranges], *rest])
            return iter([pa.record_batch([pa.array([part])], names=_PART.names)])
        return _read(self._payload, self._ids, self._to, partition.value)


class FrameStreamReader(_Tasks, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches in a process beside the driver; reads in the workers."""

    def __init__(
        self,
        planned: bytes,
        payload: bytes,
        ids: tuple[int, ...],
        to: OutputOfSink | None,
        max_rows: int | None,
        audience: str,
        begins: Offsets,
    ) -> None:
        super().__init__(planned, payload, ids, to)
        self._begins = begins
        self._max_rows = max_rows
        self._audience = audience
        self._target: dict[str, int] | None = None
        self._has_planned = False
        self._has_resumed = False
        self._asked = -_REST_S
        self._rests = False
        self._pending: dict[str, int] | None = None
        self._under_way: Future[Offsets] | None = None

    @cached_property
    def _facts(self) -> AlignmentFolder | None:
        aligned = self._spec.alignment
        return None if aligned is None or aligned.storage is None else AlignmentFolder(aligned.storage)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Nowhere, but where a savepoint says: what there is, is seen in the first micro-batch.

        So its start is in Spark's log with its end.
        """
        return packed(self._begins)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember what is there now: nothing later is read in this run."""
        with self._planning():
            self._target = self._source.latest_positions()

    def latestOffset(self, start: Any = None, limit: object = None) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where the next micro-batch ends."""
        with self._planning():
            begin = unpacked(start or {})
            self._rest()
            if start is None:
                self._resume(begin)
                # PySpark 4.1 does not say where the micro-batch starts, so it cannot be limited there; nor does it
                # say that a run takes what is there alone, so that what brings it by itself must have time for it.
                # Offsets with a time would be new each time that they are asked for.
                self._target = self._target or self._source.latest_positions()
                return packed(everything(self._source, self._audience))
            # The splits of a source must be known from the first micro-batch on, and a run that ends with what is there
            # must not end without what it could not ask for.
            waits = not begin or self._target is not None or not self._source.may_be_away()
            end = self._next(begin) if waits else self._next_soon(begin)
            self._rests = end == begin
            return dict(start) if self._rests else packed(end, _now_ms())

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The number of elements that wait, for Spark's progress: it would keep all parts of a source many times."""
        if self._pending is None:
            return None
        splits = furthest_behind(self._pending)
        return {PENDING: {"source": self._spec.name, "records": sum(self._pending.values()), "splits": splits}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a micro-batch, which may be one from before this run."""
        with self._planning():
            begin, reached = unpacked(start), unpacked(end)
            self._resume(reached)
            clock_ms = clock_of(end)  # an older version of eventide, and PySpark 4.1, have logged none
            clock_ms = _now_ms() if clock_ms is None else clock_ms
            folder = self._spec.reached_in
            told = None if folder is None else ReachedFolder(folder).latest()
            return self._partitions(begin, reached, clock_ms, told)

    def commit(self, end: dict[str, Any]) -> None:
        """Take note that the data before an offset have been handled."""
        with self._planning():
            self._source.commit({part: at["position"] for part, at in unpacked(end).items()})

    def stop(self) -> None:
        """The query has ended."""
        self._source.stop()

    def _next(self, begin: Offsets) -> Offsets:
        """Where the next micro-batch ends; ``begin`` itself if there is nothing to do."""
        self._resume(begin)
        standing = self._spec.standing({} if self._facts is None else self._facts.latest())
        end = next_offsets(self._source, begin, self._max_rows, self._target, self._audience, standing)
        if end != begin:
            is_limited = self._max_rows is not None or standing is not None
            self._pending = pending_records(self._source, end, is_limited)
        return end

    def _next_soon(self, begin: Offsets) -> Offsets:
        """As `_next`, but ``begin`` itself as long as the source does not answer: other sources need not wait.

        It is planned further meanwhile. The plan is still right when it is there, because the source stands where it
        stood.
        """
        is_away = self._under_way is not None
        planned = self._under_way or self._in_a_thread(begin)
        if not wait([planned], 0 if is_away else _ANSWERS_WITHIN_S).done:
            if not is_away:
                _LOG.warning("the source %r does not answer; micro-batches continue without it", self._spec.name)
            self._under_way = planned
            return begin
        self._under_way = None
        if is_away and planned.exception() is None:
            _LOG.warning("the source %r answers again", self._spec.name)
        return planned.result()

    def _in_a_thread(self, begin: Offsets) -> Future[Offsets]:
        planned: Future[Offsets] = Future()

        def plan() -> None:
            try:
                planned.set_result(self._next(begin))
            except BaseException as error:
                planned.set_exception(error)

        threading.Thread(target=plan, name=f"the plan of {self._spec.name}", daemon=True).start()
        return planned

    def _resume(self, offsets: Offsets) -> None:
        """Tell the source, once, what the checkpoint knows of it."""
        if not self._has_resumed:
            self._source.resume(identities(offsets))
            self._has_resumed = True

    def _rest(self) -> None:
        """Where there was nothing the last time, let a moment go by before the source is asked again.

        A source that is being planned in a thread is asked nothing else meanwhile.
        """
        left = self._asked + _REST_S - time.monotonic()
        if self._rests and left > 0 and (self._under_way is not None or not self._source.wait(left)):
            time.sleep(left)
        self._asked = time.monotonic()

    def _planning(self) -> AbstractContextManager[None]:
        if not self._has_planned:
            self._has_planned = True
            call_before_the_end(self.stop)
        return calling(self._spec.name, during="while its source was planned")


class FrameBatchReader(_Tasks, DataSourceReader):
    """Reads a bounded source from its beginning to its end."""

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks."""
        return self._partitions({}, everything(self._source), _now_ms())


def _now_ms() -> int:
    """Return the time by the clock of the process that plans, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


_PATIENCE_S = 5


def call_before_the_end(stop: Callable[[], None]) -> None:
    """Call a function when Spark ends this process, which it announces only by SIGTERM.

    It has some seconds; then the process ends, whatever threads it has. Does nothing outside of the main thread, where
    Python takes no signals.
    """

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # it comes twice
        stopping = threading.Thread(target=stop, daemon=True)
        stopping.start()
        stopping.join(_PATIENCE_S)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, end)
