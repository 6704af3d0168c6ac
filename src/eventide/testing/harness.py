"""Programs in one process, without Spark; one operator, step by step; and a source that plays a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from eventide.api.functions import RuntimeContext
from eventide.api.functions.output_tag import OutputTag
from eventide.api.source import IDLE, Source
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation, Types
from eventide.datastream.data_stream import DataStream
from eventide.datastream.stream_execution_environment import StreamExecutionEnvironment
from eventide.errors import ProgramError
from eventide.local.host import LocalHost
from eventide.plan.graph import KeyTransformation, OperationTransformation
from eventide.runtime.elements.elements import Elements
from eventide.runtime.exchange.selected_keys import selectors
from eventide.runtime.metrics import LATE_DROPPED, Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.tasks.task import close_function, open_function
from eventide.runtime.window.operation import WindowOperation, open_windows
from eventide.runtime.window.operator import WindowOperator


class OperatorHarness:
    """Drives the window operator that a stream comes from, with both kinds of time in the test's own hands.

    Supported: every window operator of a program made with :func:`~eventide.testing.local_environment`: assigners,
    triggers, evictors, lateness, side outputs, all four window functions, keyed and not. Not supported: functions
    chained after the operator, and several subtasks; run the whole program for those.

    In a ``with`` block the end is an assertion: no unread output, no timer, no state.

    >>> from eventide.common import Time, WatermarkStrategy
    >>> from eventide.api.windows import TumblingEventTimeWindows
    >>> from eventide.testing import local_environment
    >>> sums = (
    ...     local_environment().from_collection([])
    ...     .assign_timestamps_and_watermarks(
    ...         WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1]))
    ...     .key_by(lambda e: e[0])
    ...     .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    ...     .reduce(lambda a, b: (a[0], a[1] + b[1]))
    ... )
    >>> with OperatorHarness(sums) as harness:
    ...     harness.process(("x", 1), timestamp=1)
    ...     harness.process(("x", 7), timestamp=7)
    ...     harness.advance_watermark(9)
    ...     harness.outputs()
    [('x', 8)]
    """

    def __init__(self, stream: DataStream) -> None:
        node = stream._transformation
        if not isinstance(node, OperationTransformation) or not isinstance(node.operation, WindowOperation):
            raise ProgramError(f"{node.name!r} is not a window operator; give the harness the result of a window")
        source = node.inputs[0]
        self._select = source.key.select if isinstance(source, KeyTransformation) else None
        self._input_type = source.type_info
        self._spec = node.operation.spec(node.name)
        self._backend = MemoryBackend()
        self._metrics = Metrics()
        self._watermark = MIN_MS
        self._clock = 0
        self._operator = self._open()
        self._waiting: dict[str | None, list[tuple[Any, int | None]]] = {}
        self._late_dropped: list[Any] = []
        parameters = stream.get_execution_environment().get_config().get_global_job_parameters()
        for function in self._functions():
            where = RuntimeContext(node.name, 1, 0, parameters, 1, self._spec.state_of_functions)
            open_function(function, where)

    def process(self, value: object, timestamp: int | None = None) -> None:
        """Hand the operator one element with its timestamp in milliseconds."""
        [value] = self._input_type.converted([value])
        elements = Elements([value], [timestamp], [0])
        if self._select is not None:
            elements.keys = [self._select(value)]
        dropped = self._dropped()
        self._operator.process([elements])
        if self._dropped() > dropped:
            self._late_dropped.append(value)
        self._gather()

    def advance_watermark(self, watermark: int) -> None:
        """Move the watermark, in milliseconds; windows and timers that it passes fire now.

        Raises:
            ProgramError: if it is lower than before, which no watermark of an operator ever is.
        """
        if watermark < self._watermark:
            raise ProgramError(f"the watermark stands at {self._watermark} and cannot go back to {watermark}")
        self._watermark = watermark
        self._operator.advance(watermark)
        self._gather()

    def set_processing_time(self, time: int) -> None:
        """Set the clock, in milliseconds, which stands at 0 at first; windows and timers that it reaches fire now.

        It may be set back, as the clock of a machine sometimes is.
        """
        self._clock = time
        self._operator.flush()
        self._operator = self._open()
        self._operator.advance_clock(time)
        self._gather()

    def outputs(self) -> list[Any]:
        """The output since the last call."""
        return [value for value, _ in self.outputs_with_timestamps()]

    def outputs_with_timestamps(self) -> list[tuple[Any, int | None]]:
        """The output since the last call, with timestamps in milliseconds."""
        return self._waiting.pop(None, [])

    def side_output(self, tag: OutputTag) -> list[Any]:
        """The elements of a side output since the last call."""
        return [value for value, _ in self._waiting.pop(tag.tag_id, [])]

    def late(self) -> list[Any]:
        """The elements that came too late since the last call, dropped or on the side output for late data."""
        late, self._late_dropped = self._late_dropped, []
        if self._spec.late_tag is not None:
            late += [value for value, _ in self._waiting.pop(self._spec.late_tag, [])]
        return late

    def timers(self) -> list[tuple[int, Any, Any]]:
        """The timers of event time that are set, as (time, key, window), in order of time."""
        return self._operator.all_timers()

    def processing_timers(self) -> list[tuple[int, Any, Any]]:
        """The timers of processing time that are set, as (time, key, window), in order of time."""
        return self._operator.all_processing_timers()

    def state_entries(self) -> dict[tuple[Any, Any], dict[str, Any]]:
        """Stored values, by key and window (None: the key as a whole)."""
        return self._operator.all_entries()

    def assert_nothing_left(self) -> None:
        """Check that every output was looked at, and that no timer and no state are left.

        Raises:
            AssertionError: naming what is left.
        """
        left = {
            "outputs": self._waiting.get(None),
            "side outputs": {tag: rows for tag, rows in self._waiting.items() if tag is not None and rows},
            "late elements": self._late_dropped,
            "timers": self.timers(),
            "timers of processing time": self.processing_timers(),
            "state": self.state_entries(),
        }
        if any(left.values()):
            raise AssertionError(f"left over: { {what: things for what, things in left.items() if things} }")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        for function in self._functions():
            close_function(self._spec.name, function)
        if kind is None:
            self.assert_nothing_left()

    def _functions(self) -> list[Any]:
        """The user's functions, to be opened and closed."""
        return [*(selector for _, selector in selectors(self._select)), *self._spec.user_functions()]

    def _open(self) -> WindowOperator:
        """The operator on its state, as each micro-batch opens it at its time."""
        context = OperatorContext(1, self._metrics, self._watermark, self._clock)
        return open_windows(self._spec, self._backend, context)

    def _dropped(self) -> int:
        return self._metrics.counters().get(self._spec.name, {}).get(LATE_DROPPED, 0)

    def _gather(self) -> None:
        for tag, elements in self._operator.take_outputs().items():
            self._waiting.setdefault(tag, []).extend(zip(elements.values, elements.timestamps, strict=True))


def local_environment() -> StreamExecutionEnvironment:
    """An environment whose jobs run at once in this process, with the operators, frames and state of the real thing.

    A job runs to the end of its sources' data. Only what needs Spark itself is missing: DataFrames and
    ``writeStream`` formats.

    >>> from eventide.common import Types
    >>> env = local_environment()
    >>> stream = env.from_collection([1, 2, 3], Types.INT()).map(lambda x: x * 10)
    >>> list(stream.execute_and_collect())
    [10, 20, 30]
    """
    return StreamExecutionEnvironment(LocalHost())


@dataclass(frozen=True, slots=True)
class Idle:
    """Marks a split idle at the end of a micro-batch, unless an element of it follows in the same one."""

    split: str


@dataclass(frozen=True, slots=True)
class End:
    """Ends a split with a micro-batch: nothing of it may follow. With the last of its splits the source ends."""

    split: str


class ScriptedSource(Source):
    """Plays micro-batches exactly as they are written, without Spark and on Spark.

    Each inner list of ``batches`` is one micro-batch of ``(split, element)`` pairs and of :class:`Idle` and
    :class:`End` markers; an empty one is a micro-batch without data. With ``bounded``, the end of the splits that have
    not ended by then, and with it ``MAX_WATERMARK``, follows in one more micro-batch of its own. If all splits have an
    :class:`End`, the source ends with the last of these, bounded or not.

    A position of this source is a number of micro-batches.

    Raises:
        ProgramError: if a batch names a split that is not in ``splits``, or one that has ended.

    >>> source = ScriptedSource(["a", "b"], [[("a", 1), ("b", 2), Idle("b")], [("a", 3), End("a")]])
    >>> list(source.read("b", 0, 1))
    [2, IDLE]
    >>> [source.has_ended("a", position) for position in (1, 2)]
    [False, True]
    """

    def __init__(
        self,
        splits: Sequence[str],
        batches: Sequence[Sequence[tuple[str, Any] | Idle | End]],
        type_info: TypeInformation | None = None,
        bounded: bool = True,
    ) -> None:
        self._splits = list(splits)
        self._bounded = bounded
        self._type_info = type_info or Types.PICKLED_BYTE_ARRAY()
        self._ends: dict[str, int] = {}
        self._script = [self._batch(number, batch) for number, batch in enumerate(batches)]

    def _batch(self, number: int, batch: Sequence[tuple[str, Any] | Idle | End]) -> dict[str, list[Any]]:
        """The items of each split; where one ends is remembered."""
        script: dict[str, list[Any]] = {}
        for entry in batch:
            split, item = (entry.split, IDLE) if isinstance(entry, Idle | End) else entry
            if split not in self._splits:
                raise ProgramError(f"batch {number} names the split {split!r}; the splits are {self._splits!r}")
            if split in self._ends:
                raise ProgramError(
                    f"batch {number} has {entry!r}, but the split {split!r} has ended in batch {self._ends[split] - 1}"
                )
            if isinstance(entry, End):
                self._ends[split] = number + 1
            else:
                script.setdefault(split, []).append(item)
        return script

    def splits(self) -> list[str]:
        return self._splits

    def latest_position(self, split: str) -> int:
        """The number of micro-batches, and one for the end; for a split with an `End`, that up to there."""
        return self._ends.get(split, len(self._script) + self._bounded)

    def has_ended(self, split: str, position: int) -> bool:
        """Whether this comes after the split's `End`, or after the end of all."""
        return (self._bounded or split in self._ends) and position >= self.latest_position(split)

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        for script in self._script[start:end]:
            yield from script.get(split, [])

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """One micro-batch further; a limit of rows does not cut the script."""
        return {split: min(position + 1, self.latest_position(split)) for split, position in positions.items()}

    def is_bounded(self) -> bool:
        return self._bounded

    def may_end(self) -> bool:
        """Whether the source is bounded, or the script ends all of its splits."""
        return self._bounded or self._ends.keys() == set(self._splits)

    def get_produced_type(self) -> TypeInformation:
        return self._type_info
