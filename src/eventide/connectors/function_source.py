"""Functions as sources: a split whose positions are those of a log, the function's thread, and its emissions."""

from __future__ import annotations

import inspect
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from copy import copy
from types import TracebackType
from typing import Any, TypeVar

from eventide.api.functions import RuntimeContext, SourceContext, SourceFunction
from eventide.api.source import IDLE, Counted, Source
from eventide.api.windows import TimestampedValue
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.type_variables import T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.watermark import Watermark
from eventide.common.watermark_strategy import WatermarkStrategy
from eventide.connectors._function_log import LogWriter, WriteAheadLog
from eventide.errors import ProgramError, StateError, UserFunctionError, check_is
from eventide.pickling.pickles import copied, dumps, loads
from eventide.storage import absolute

_SPLIT = "function"
_AVAILABLE_S = 1.0

_MAX_ITEMS = 100_000
_MAX_BYTES = 64 * 1024 * 1024
_PATIENCE_S = 1.0

T = TypeVar("T")
_MOMENT_S = 0.1


class FunctionSource(Source[T_co]):
    """Source that ``StreamExecutionEnvironment.add_source`` reads: a :class:`SourceFunction` with a log of emissions.

    A position is a number of items: elements, watermarks, idleness, and readings of its metrics. The function runs in a
    thread of the process that plans micro-batches; each planning writes the new items into the log, and returns its
    end. Workers read the log. Each commit deletes the items before the previous commit.

    It ends when the function returns, but that is not known beforehand, so it is not bounded. A run that handles the
    present data, and then stops, gives the function one second.

    Raises:
        ProgramError: if it is not a `SourceFunction`, or has one of ``snapshot_state`` and ``restore_state`` alone.
    """

    def __init__(self, function: SourceFunction[T_co], type_info: TypeInformation | None = None) -> None:
        check_is(function, SourceFunction, "add_source needs a SourceFunction of eventide.datastream")
        if hasattr(function, "snapshot_state") != hasattr(function, "restore_state"):
            raise ProgramError(
                f"{type(function).__name__} has one of snapshot_state() and restore_state(state); it needs both to go "
                "on from where it was, or neither to run again from its own start"
            )
        self._function = function
        self._type_info = type_info or Types.PICKLED_BYTE_ARRAY()
        self._operator = ""
        self._job_parameters: dict[str, str] = {}
        self._location: str | None = None
        self._run: FunctionRun | None = None
        self._committed = 0

    def for_job(
        self, operator: str, storage: str | None, job_parameters: Mapping[str, str] | None = None
    ) -> FunctionSource[T_co]:
        """Return a copy with its log at this place.

        Raises:
            ProgramError: if there is no place.
        """
        if storage is None:
            raise ProgramError(
                f"the elements of the function of {operator!r} are kept below the job's checkpoint; say where that is "
                "with env.get_checkpoint_config().set_checkpoint_storage_dir(...)"
            )
        source = copy(self)
        source._operator, source._location = operator, absolute(storage)
        source._job_parameters = dict(job_parameters or {})
        return source

    def splits(self) -> list[str]:
        return [_SPLIT]

    def latest_position(self, split: str) -> int:
        return self._running().write_ahead()

    def latest_positions(self) -> dict[str, int]:
        """The position after the elements that are emitted within one second, or until the end."""
        return {_SPLIT: self._running().write_ahead_for(_AVAILABLE_S)}

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """The position after the elements so far, or at the limit; they are written before this returns.

        Raises:
            Exception: the error of the function, if it raised one.
            StateError: if the position of the job is after the end of the log.
        """
        if not positions:
            return {}
        run, position = self._running(), positions[_SPLIT]
        end = run.write_ahead(None if max_rows is None else position + max_rows)
        if position > end:
            raise StateError(
                f"the job has read {self._operator!r} up to position {position}, and its log at {self._location} ends "
                f"at {end}; its files must stay as long as the checkpoint, or start with a new one"
            )
        return {_SPLIT: end if max_rows is None else min(end, position + max_rows)}

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        for content in WriteAheadLog(self._place()).read(start, end):
            item = loads(content)
            if not isinstance(item, tuple):
                yield item
            elif len(item) == 1 and not _is_signal(item[0]):
                yield item[0]
            else:
                yield TimestampedValue(*item)

    def gives_timestamps(self) -> bool:
        return True

    def active_by_elements(self) -> bool:
        """True, because all that a function emits ends its idleness, as in the contexts of Flink's functions."""
        return True

    def has_ended(self, split: str, position: int) -> bool:
        """Whether the function has returned, and this is after all that it emitted."""
        return self._run is not None and self._run.has_ended and position >= self._run.end

    def is_bounded(self) -> bool:
        """False, because it is not known whether the function will return."""
        return False

    def may_end(self) -> bool:
        """True, because the function may return."""
        return True

    def wait(self, seconds: float) -> bool:
        if self._run is None or self._run.has_ended:
            return False
        self._run.wait(seconds)
        return True

    def commit(self, positions: Mapping[str, int]) -> None:
        """Delete items before the previous commit, so that the last micro-batch can still be repeated."""
        before, self._committed = self._committed, positions.get(_SPLIT, self._committed)
        if self._run is not None:
            self._run.forget(before)

    def stop(self) -> None:
        """Cancel the function, if it runs. It runs again with the next planning."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def _running(self) -> FunctionRun:
        """The function in its thread: a copy of the program's, so that each run starts from its initial state."""
        if self._run is None:
            function: SourceFunction = copied(self._function)
            self._run = FunctionRun(function, LogWriter(self._place()), self._operator, self._job_parameters)
        return self._run

    def _place(self) -> str:
        if self._location is None:
            raise ProgramError("a SourceFunction runs in a job alone: use add_source, and execute the program")
        return self._location

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_run": None}


class SourceFace(SourceFunction):
    """A source function whose `Source` ``env.add_source`` reads, with watermarks for each split."""

    @abstractmethod
    def as_source(self) -> Source:
        """Return the source."""

    @abstractmethod
    def get_watermark_strategy(self) -> WatermarkStrategy:
        """Return how its splits get timestamps and watermarks."""

    def run(self, ctx: SourceContext) -> None:
        """Refuse to run.

        Raises:
            ProgramError: Always: the source is read.
        """
        raise ProgramError(f"a {type(self).__name__} is read as a source: hand it to env.add_source(...)")

    def cancel(self) -> None:
        """Do nothing: the function never runs."""


class FunctionRun:
    """Runs a function from where its log ends, in a thread that keeps no process alive.

    Args:
        function: the function, which cannot be used again.
        log: the log of its emissions.
        operator: the name of its operator.
        job_parameters: the parameters that the function may ask for.
        max_items: how many items may wait to be written.
        max_bytes: how many bytes may wait to be written.
    """

    def __init__(
        self,
        function: SourceFunction,
        log: LogWriter,
        operator: str,
        job_parameters: Mapping[str, str] | None = None,
        *,
        max_items: int = _MAX_ITEMS,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        self._function = function
        self._log = log
        self._where = RuntimeContext(operator, 1, 0, job_parameters or {})
        self._emission = Emission(max_items, max_bytes)
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, name=f"eventide {operator}", daemon=True)
        if log.is_complete:
            self._emission.finish()
        else:
            self._thread.start()

    @property
    def has_ended(self) -> bool:
        """Whether the function has returned, and all that it emitted is written."""
        return self._log.is_complete

    @property
    def end(self) -> int:
        """The position after all written items."""
        return self._log.end

    def write_ahead(self, up_to: int | None = None) -> int:
        """Write the items so far, unless there are enough; return the position after all written items.

        Args:
            up_to: the position up to which the next micro-batch may read; None for no limit.

        Raises:
            Exception: the error of the function, if it raised one.
        """
        is_over = self._emission.is_over
        if self._failure is not None:
            raise self._failure
        if up_to is not None and up_to <= self._log.end:
            return self._log.end  # so that the function waits in time, and does not fill the disk
        self._emission.take(self._keep)
        if is_over and not self._log.is_complete:
            self._keep(())
            self._log.complete()
        return self._log.end

    def write_ahead_for(self, seconds: float) -> int:
        """Write the items of some time, or until the end; return the position after them.

        Raises:
            Exception: the error of the function, if it raised one.
        """
        deadline = time.monotonic() + seconds
        while not self.has_ended and (left := deadline - time.monotonic()) > 0:
            self._emission.wait(left, until_full=True)
            self.write_ahead()
        return self.write_ahead()

    def wait(self, seconds: float) -> None:
        """Wait until there is an item, or the end, up to some seconds."""
        self._emission.wait(seconds)

    def forget(self, position: int) -> None:
        """Delete items that will not be read again."""
        self._log.forget(position)

    def stop(self) -> None:
        """Cancel the function, and give it a moment to return. Items that are not yet written are lost."""
        self._emission.cancel()
        if self._thread.is_alive():
            with suppress(Exception, Cancelled):  # no caller is left to be told
                self._function.cancel()
            self._emission.cancel()
            self._thread.join(_PATIENCE_S)

    def _work(self) -> None:
        try:
            self._live()
        except Cancelled:
            pass
        except Exception as error:
            self._failure = error
        except BaseException as error:
            self._failure = UserFunctionError(f"run() raised {error!r}; let it return when it is cancelled")
        finally:
            self._emission.finish()

    def _live(self) -> None:
        state = self._log.state()
        if state is not None and hasattr(self._function, "restore_state"):
            self._function.restore_state(loads(state))
        try:
            self._function.open(self._where)
            if inspect.isgenerator(self._function.run(_OwnedOutput(self._emission))):
                raise ProgramError("run() has a yield, so it has not run; call ctx.collect(...) instead of yield")
        finally:
            self._function.close()

    def _keep(self, items: Sequence[bytes]) -> None:
        items = [*items, *self._counted()]
        if items:
            snapshot = getattr(self._function, "snapshot_state", None)
            self._log.append(items, None if snapshot is None else dumps(snapshot()))

    def _counted(self) -> list[bytes]:
        """Return the function's counts since the last call, as the item after its emissions."""
        clock_ms = time.time_ns() // 1_000_000
        metrics = [*self._where.metrics.metrics().items()]  # the function's thread may be making more
        new = {name: reading for name, metric in metrics if (reading := metric.take(0, clock_ms)) is not None}
        return [dumps(Counted(new))] if new else []


class Cancelled(BaseException):
    """Ends the thread of a function that emits after its job has stopped; no ``except Exception`` holds it up."""


class Emission:
    """Items in the order in which they were emitted, limited in number and size.

    It is the lock of its function: while it is held, other threads cannot emit, and no items are taken. A thread that
    holds it may enter it again. Only a thread that enters it for the first time waits for room, because the function is
    then between two steps: the items taken meanwhile fit its state.

    Args:
        max_items: how many items may wait.
        max_bytes: how many bytes may wait; one item may have more.
    """

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._limits = max_items, max_bytes
        self._depth = 0
        self._items: list[bytes] = []
        self._bytes = 0
        self._is_over = False
        self._is_cancelled = False

    def __enter__(self) -> Emission:
        self._changed.acquire()
        try:
            if self._depth == 0:
                self._changed.wait_for(lambda: self._is_cancelled or not self.is_full())
            if self._is_cancelled:
                raise Cancelled
        except BaseException:
            self._changed.release()
            raise
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        self._changed.release()

    def add(self, item: bytes) -> None:
        """Emit an item.

        Raises:
            ProgramError: if the function has returned before.
        """
        with self:
            if self._is_over:
                raise ProgramError("a SourceFunction emitted something after its run() had returned")
            self._items.append(item)
            self._bytes += len(item)
            if len(self._items) == 1 or self.is_full():
                self._changed.notify_all()

    @property
    def is_over(self) -> bool:
        """Whether no more items will be emitted."""
        return self._is_over

    def is_full(self) -> bool:
        """Whether the emitting thread has to wait."""
        max_items, max_bytes = self._limits
        return len(self._items) >= max_items or self._bytes >= max_bytes

    def take(self, keep: Callable[[list[bytes]], None]) -> None:
        """Pass all items to `keep`, while no other thread emits; if that fails, they stay.

        Items that are emitted during `keep`, such as by asking the function for its state, are taken the next time.
        """
        with self._changed:
            if self._items:
                taken, size = self._items, self._bytes
                self._items, self._bytes = [], 0
                try:
                    keep(taken)
                except BaseException:
                    self._items, self._bytes = taken + self._items, size + self._bytes
                    raise
                self._changed.notify_all()

    def finish(self) -> None:
        """Mark the end: no more items will be emitted."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def cancel(self) -> None:
        """Refuse further emissions: a thread that emits, or waits for room, is ended.

        It does not wait for the thread that has entered, which may take a cancelled function. A thread that waits for
        room after that one is thrown out when it is called again.
        """
        self._is_cancelled = True
        if self._changed.acquire(timeout=_MOMENT_S):
            self._changed.notify_all()
            self._changed.release()

    def wait(self, seconds: float, *, until_full: bool = False) -> None:
        """Wait until there is an item to take; with ``until_full``, until the function has to wait for room."""
        with self._changed:
            enough = self.is_full if until_full else lambda: bool(self._items)
            self._changed.wait_for(lambda: self._is_over or enough(), seconds)


def _is_signal(value: object) -> bool:
    """Whether a reader would mistake an emitted element for a watermark or another signal."""
    return value is IDLE or isinstance(value, Counted | Watermark | TimestampedValue)


class _OwnedOutput(SourceContext):
    """Pickles emitted elements at once, so that they may be changed and reused."""

    def __init__(self, emission: Emission) -> None:
        self._emission = emission

    def collect(self, value: object) -> None:
        self._emission.add(dumps((value,)))

    def collect_with_timestamp(self, value: object, timestamp: int) -> None:
        is_integer = not isinstance(timestamp, bool) and hasattr(timestamp, "__index__")
        if not (is_integer and MIN_MS < timestamp.__index__() <= MAX_MS):
            raise ProgramError(
                f"collect_with_timestamp needs an int of milliseconds since the epoch, not {timestamp!r}"
            )
        self._emission.add(dumps((value, timestamp.__index__())))

    def emit_watermark(self, mark: Watermark) -> None:
        check_is(mark, Watermark, "emit_watermark needs a Watermark, such as Watermark(1_000)")
        self._emission.add(dumps(mark))

    def mark_as_temporarily_idle(self) -> None:
        self._emission.add(dumps(IDLE))

    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        return self._emission
