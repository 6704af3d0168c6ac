"""The stateful processor: hands the frames of a micro-batch to a stage of operators, and their frames to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

from eventide.errors import ProgramError, StateError
from eventide.runtime.exchange.frames import ALIGNMENT, Frame
from eventide.spark.query.frame_rows import FRAME_ROW
from eventide.spark.query.held_frames import HeldFrames
from eventide.spark.query.shared_files import AlignmentFolder, Runs
from eventide.spark.query.worker import opened_stage, settled

_MOST_BYTES = (1 << 31) - (1 << 20)


class StageProcessor(StatefulProcessor):
    """Runs one stage; its grouping key is the id of the subtask.

    Frames for other stages pass through as they are. The meaning of everything is in the runtime: this class only
    brings frames, state and the time of the micro-batch together. Where the stage ``has_timers``, a Spark timer
    has it run without data too. A subtask without state takes its share of the ``savepoint`` that the job began with,
    which is known by its location and digest. The ``runs`` say which run planned a micro-batch; None if that is not
    known.

    What reads a savepoint is imported where there is one: Spark also makes this object in a process of its own beside
    the driver, at each start of a query, only to ask which state it has.
    """

    def __init__(
        self,
        payload: bytes,
        targets: frozenset[int],
        ids: tuple[int, ...],
        has_timers: bool,
        savepoint: tuple[str, str] | None = None,
        runs: Runs | None = None,
    ) -> None:
        self._payload = payload
        self._targets = targets
        self._ids = ids
        self._has_timers = has_timers
        self._savepoint = savepoint
        self._runs = runs
        self._handle: Any = None
        self._map_state: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before the rows of a micro-batch."""
        self._handle = handle
        self._map_state = handle.getMapState("state", *MapStateBackend.SCHEMAS)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803 - Spark passes it by this name
    ) -> Iterator[Row]:
        """Called by Spark once per subtask and micro-batch, with all rows for it."""
        return settled(_of_one_subtask(self._sorted_out(self._ids.index(key[0]), rows)))

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: Any,  # noqa: N803 - Spark passes it by this name
        expiredTimerInfo: Any,  # noqa: N803 - Spark passes it by this name
    ) -> Iterator[Row]:
        """Called by Spark, after all rows, for a subtask whose time has come and that had no rows."""
        return _of_one_subtask(self._run(self._ids.index(key[0]), [], timerValues.getCurrentProcessingTimeInMs()))

    def _sorted_out(self, subtask: int, rows: Iterator[Row]) -> Iterator[Row]:
        mine: HeldFrames | None = None
        clock_ms = 0
        for row in rows:
            if row.target in self._targets:
                mine = mine or HeldFrames()
                mine.add(row)
                clock_ms = row.clock
            else:
                yield FRAME_ROW(row.target, row.subtask, row.frame)
        if mine is not None:
            yield from self._run(subtask, mine.all(), clock_ms)

    def _run(self, subtask: int, frames: list[Frame], clock_ms: int) -> Iterator[Row]:
        stage = opened_stage(self._payload, subtask)
        backend = MapStateBackend(self._map_state)
        if self._savepoint is not None:
            from eventide.savepoint.saved import opened_savepoint

            opened_savepoint(*self._savepoint).restore(stage, subtask, backend)
        planner = None if self._runs is None else self._runs.planner_of(clock_ms)
        run = stage.run(subtask, backend, clock_ms, planner)
        for frame in run.run(frames):
            if frame.target != ALIGNMENT:
                yield FRAME_ROW(frame.target, self._ids[frame.subtask], frame.to_bytes())
            elif stage.storage is not None:
                AlignmentFolder(stage.storage).write(frame.content)
        if self._has_timers:
            self._set_timer(run.next_clock_before_ms, run.next_clock_ms)

    def _set_timer(self, before_ms: int | None, time_ms: int | None) -> None:
        """Have one timer, or none: a subtask that ran has put off the one before, which then does not expire.

        State that comes from a savepoint says when to run, and has no timer yet: there Spark is asked.
        """
        timers = [before_ms] if self._savepoint is None else [*self._handle.listTimers()]
        if timers == [time_ms]:
            return
        for timer_ms in timers:
            if timer_ms is not None:
                self._handle.deleteTimer(timer_ms)
        if time_ms is not None:
            self._handle.registerTimer(time_ms)

    def close(self) -> None:
        """Called by Spark at the end of a task; functions stay open for the next micro-batch."""


def _of_one_subtask(rows: Iterator[Row]) -> Iterator[Row]:
    """Pass on what a subtask gives in a micro-batch, which Spark makes one batch of Arrow of.

    Raises:
        ProgramError: if it is more than such a batch can have.
    """
    size = 0
    for row in rows:
        size += len(row.frame)
        if size > _MOST_BYTES:
            raise ProgramError(
                "a subtask gives more than 2 GB in one micro-batch, and Spark takes no more of it at once; let "
                "micro-batches read less, with env.set_max_rows_per_batch(...), or raise the parallelism. The "
                "micro-batch at hand is planned already, and 'eventide checkpoint PATH --defer' takes that back"
            )
        yield row


class MapStateBackend:
    """A :class:`~eventide.runtime.state.backend.Backend` over a ``MapState`` of Spark.

    Names read before are known, so that deleting what was never there costs no call.
    """

    # As objects: Spark would have the JVM parse them as text, four times in every task.
    SCHEMAS = (StructType().add("name", StringType()), StructType().add("content", BinaryType()))

    def __init__(self, map_state: Any) -> None:
        self._map_state = map_state
        self._absent: set[str] = set()

    def get(self, name: str) -> bytes | None:
        """The value under a name, or None."""
        row = self._map_state.getValue((name,))
        if row is None:
            self._absent.add(name)
            return None
        return bytes(row[0])

    def put(self, name: str, value: bytes) -> None:
        """Store a value under a name.

        Raises:
            StateError: if it is too large.
        """
        if len(value) > _MOST_BYTES:
            raise StateError(
                f"the state {name!r} has {len(value):,} bytes, and Spark's store takes 2 GB at most: one key, or one "
                "window, holds too many elements. Have a reduce or aggregate function take them in one by one, give "
                "state a time to live, or let the key tell more apart"
            )
        self._absent.discard(name)
        self._map_state.updateValue((name,), (value,))

    def delete(self, name: str) -> None:
        """Forget a name, whether it is there or not."""
        if name not in self._absent:
            self._map_state.removeKey((name,))
            self._absent.add(name)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every name that begins in some way, with its value: Spark hands them over hundreds at a time."""
        return ((name, bytes(value)) for (name,), (value,) in self._map_state.iterator() if name.startswith(prefix))
