"""One subtask of a stage in a micro-batch: hands it its frames and its state, and its frames to Spark.

``HeldFrames`` holds what comes to the subtask until all of it has come.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import IO, Any

from pyspark.sql import Row

from eventide.errors import ProgramError, StateError
from eventide.runtime.exchange.frames import ALIGNMENT, REACHED, Frame
from eventide.runtime.sources.reached import Reached
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.copied import CopiedState
from eventide.spark.query.frame_rows import FRAME_ROW
from eventide.spark.query.shared_files import AlignmentFolder, ReachedFolder, Runs
from eventide.spark.query.worker import number_of_batch, opened_stage, settled
from eventide.storage import writing
from eventide.storage.local_copies import LocalCopies

_HELD_BYTES = 256 << 20
_ALIGNED = 64
_COPIES = "eventide-state"


class HeldFrames:
    """The frames that a task holds until all have come; of many bytes, most lie in a file, mapped into memory.

    The file is on the disk that Spark shuffles by, has no name, and is gone when nothing refers to a frame any more.

    Args:
        most_bytes: how many bytes are kept as they come.
    """

    def __init__(self, most_bytes: int = _HELD_BYTES) -> None:
        self._most_bytes = most_bytes
        self._size = 0
        self._kept: list[tuple[int, int, bytes | int, int]] = []
        self._file: IO[bytes] | None = None

    def add(self, row: Any) -> None:
        """Take a row with the columns of ``FRAME_SCHEMA``; its subtask stays Spark's id."""
        content, length = row.frame, len(row.frame)
        self._size += length
        if self._size <= self._most_bytes:
            self._kept.append((row.target, row.subtask, bytes(content), length))
            return
        with writing(f"a file of frames in {_folder()}"):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=_folder())  # noqa: SIM115 - open until all have come
            begin = self._file.tell()
            self._file.write(content)
            self._file.write(bytes(-length % _ALIGNED))
        self._kept.append((row.target, row.subtask, begin, length))

    def all(self) -> list[Frame]:
        """All frames, in the order in which they came."""
        mapped = memoryview(b"")
        if self._file is not None:
            with writing(f"a file of frames in {_folder()}"):
                self._file.flush()
            mapped = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
            self._file.close()
        return [
            Frame.from_bytes(target, subtask, mapped[at : at + length] if isinstance(at, int) else at)
            for target, subtask, at, length in self._kept
        ]


def _folder() -> str:
    return _folder_of_spark() or tempfile.gettempdir()


def _folder_of_spark() -> str:
    """A folder on the disk of this executor, which Spark deletes when the application ends; empty if it is unknown."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]


_MOST_BYTES = (1 << 31) - (1 << 20)


@dataclass(frozen=True, slots=True)
class SubtaskRun:
    """A subtask of a stage during one micro-batch, with what :class:`StageProcessor` was given, and Spark's handles.

    Frames for other stages pass through as they are. The meaning of everything is in the runtime: this class only
    brings frames, state and the time of the micro-batch together.
    """

    subtask: int
    payload: bytes
    targets: frozenset[int]
    ids: tuple[int, ...]
    has_timers: bool
    savepoint: tuple[str, str] | None
    runs: Runs | None
    handle: Any
    map_state: object

    def on_rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows for Spark in a micro-batch that has rows."""
        return settled(_of_one_subtask(self._sorted_out(rows)))

    def on_timer(self, clock_ms: int) -> Iterator[Row]:
        """The rows for Spark in a micro-batch without any; its time is in milliseconds since the epoch."""
        return _of_one_subtask(self._run([], clock_ms))

    def _sorted_out(self, rows: Iterator[Row]) -> Iterator[Row]:
        mine: HeldFrames | None = None
        clock_ms = 0
        for row in rows:
            if row.target in self.targets:
                mine = mine or HeldFrames()
                mine.add(row)
                clock_ms = row.clock
            else:
                yield FRAME_ROW(row.target, row.subtask, row.frame)
        if mine is not None:
            yield from self._run(mine.all(), clock_ms)

    def _run(self, frames: list[Frame], clock_ms: int) -> Iterator[Row]:
        stage = opened_stage(self.payload, self.subtask)
        backend: Backend = MapStateBackend(self.map_state)
        if (copies := _local_copies()) is not None:
            backend = CopiedState(backend, copies)
        if self.savepoint is not None:
            from eventide.savepoint.saved import opened_savepoint  # which few jobs need

            opened_savepoint(*self.savepoint).restore(stage, self.subtask, backend)
        planner = None if self.runs is None else self.runs.planner_of(clock_ms)
        run = stage.run(self.subtask, backend, clock_ms, planner)
        told: list[dict[str, Any]] = []
        for frame in run.run(frames):
            if frame.target == REACHED:
                told.append(frame.content)
            elif frame.target != ALIGNMENT:
                yield FRAME_ROW(frame.target, self.ids[frame.subtask], frame.to_bytes())
            elif stage.storage is not None:
                AlignmentFolder(stage.storage).write(frame.content)
        if told and stage.reached_in is not None:
            _keep(told, stage.reached_in)
        if self.has_timers:
            self._set_timer(run.next_clock_before_ms, run.next_clock_ms)

    def _set_timer(self, before_ms: int | None, time_ms: int | None) -> None:
        """Set one timer, or none: a subtask that ran has put off the one before, which then does not expire.

        State that comes from a savepoint says when to run, and has no timer yet: there Spark is asked.
        """
        timers = [before_ms] if self.savepoint is None else [*self.handle.listTimers()]
        if timers == [time_ms]:
            return
        for timer_ms in timers:
            if timer_ms is not None:
                self.handle.deleteTimer(timer_ms)
        if time_ms is not None:
            self.handle.registerTimer(time_ms)


def _keep(told: list[dict[str, Any]], folder: str) -> None:
    """Keep where operators stand after this micro-batch, if Spark says which it is."""
    batch = number_of_batch()
    reached = None if batch is None else Reached.told(batch, told)
    if reached is not None:
        ReachedFolder(folder).write(reached)


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
                "micro-batches read less, with env.set_max_rows_per_batch(...), or raise the parallelism. The current "
                "micro-batch is already planned; 'eventide checkpoint PATH --defer' undoes that"
            )
        yield row


@cache
def _local_copies() -> LocalCopies | None:
    folder = _folder_of_spark()
    return LocalCopies(os.path.join(folder, _COPIES)) if folder else None


class MapStateBackend(Backend):
    """State in a ``MapState`` of Spark.

    Names read before are known, so that deleting what was never there costs no call.
    """

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
                "window, holds too many elements. Reduce or aggregate elements, set a time to live, or use a finer key"
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
