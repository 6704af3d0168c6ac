"""A function as a source of one split, whose positions are those of its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

from eventide.api.functions import SourceFunction
from eventide.api.source import IDLE, Counted, Source
from eventide.api.windows import TimestampedValue
from eventide.common.type_variables import T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.watermark import Watermark
from eventide.connectors.function_source._log import LogWriter, WriteAheadLog
from eventide.connectors.function_source._run import FunctionRun
from eventide.errors import ProgramError, StateError
from eventide.pickling.pickles import copied, loads
from eventide.storage.opening import absolute

_SPLIT = "function"
_AVAILABLE_S = 1.0


class FunctionSource(Source[T_co]):
    """What ``StreamExecutionEnvironment.add_source`` reads: a :class:`SourceFunction` and the log of what it emitted.

    A position is a number of items: elements, watermarks, remarks that it is idle, and readings of its metrics. Where
    micro-batches are planned, the function runs in a thread; each planning writes what has come since the one before
    into the log, and says how far the log goes. Workers read the log. What has been committed twice is deleted.

    It ends when the function returns, but that is not known beforehand, so it is not bounded. A run that handles
    what is there, and then stops, gives the function one second.

    Raises:
        ProgramError: if it is no `SourceFunction`, or has one of ``snapshot_state`` and ``restore_state`` alone.
    """

    def __init__(self, function: SourceFunction[T_co], type_info: TypeInformation | None = None) -> None:
        if not isinstance(function, SourceFunction):
            raise ProgramError(f"add_source needs a SourceFunction of eventide.datastream, not {function!r}")
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
        """The same function with a log at this place.

        Raises:
            ProgramError: if there is no place.
        """
        if storage is None:
            raise ProgramError(
                f"what the function of {operator!r} emits is kept below the job's checkpoint; say where that is with "
                "env.get_checkpoint_config().set_checkpoint_storage_dir(...)"
            )
        source = copy(self)
        source._operator, source._location = operator, absolute(storage)
        source._job_parameters = dict(job_parameters or {})
        return source

    def splits(self) -> list[str]:
        """The function is one split."""
        return [_SPLIT]

    def latest_position(self, split: str) -> int:
        """The position after what has come so far."""
        return self._running().write_ahead()

    def latest_positions(self) -> dict[str, int]:
        """The position after what comes within one second, or until the end."""
        return {_SPLIT: self._running().write_ahead_for(_AVAILABLE_S)}

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """Up to what has come so far, or to the limit; it is written before this returns.

        Raises:
            Exception: what the function raised, if it did.
            StateError: if the job stands after the end of the log.
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
        """Read the items of the log."""
        for content in WriteAheadLog(self._place()).read(start, end):
            item = loads(content)
            if not isinstance(item, tuple):
                yield item
            elif len(item) == 1 and not _is_signal(item[0]):
                yield item[0]
            else:
                yield TimestampedValue(*item)

    def gives_timestamps(self) -> bool:
        """Yes: the function may give them."""
        return True

    def active_by_elements(self) -> bool:
        """Yes: whatever a function emits says that it is not idle any more, as in Flink's contexts of functions."""
        return True

    def has_ended(self, split: str, position: int) -> bool:
        """Whether the function has returned, and this is after all that it emitted."""
        return self._run is not None and self._run.has_ended and position >= self._run.end

    def is_bounded(self) -> bool:
        """No: whether the function will return is not known."""
        return False

    def may_end(self) -> bool:
        """Yes: the function may return."""
        return True

    def wait(self, seconds: float) -> bool:
        """Wait for the function."""
        if self._run is None or self._run.has_ended:
            return False
        self._run.wait(seconds)
        return True

    def commit(self, positions: Mapping[str, int]) -> None:
        """Delete what lies before the commit before this one: the last micro-batch can be repeated all the same."""
        before, self._committed = self._committed, positions.get(_SPLIT, self._committed)
        if self._run is not None:
            self._run.forget(before)

    def stop(self) -> None:
        """Cancel the function, if it runs. It runs again when something is planned again."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    def get_produced_type(self) -> TypeInformation:
        """The type that was declared."""
        return self._type_info

    def _running(self) -> FunctionRun:
        """The function in its thread: a copy of the one that the program made, so that each run starts afresh."""
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


def _is_signal(value: object) -> bool:
    """Whether something that was emitted as an element would be taken for something else by who reads it."""
    return value is IDLE or isinstance(value, Counted | Watermark | TimestampedValue)
