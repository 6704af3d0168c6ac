"""The interval join: each element meets those of the other stream within bounds of its own time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from eventide.api.functions import KeyedStateStore, ProcessJoinFunction
from eventide.common.ms import MAX_MS, MIN_MS, add_ms
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import DEAD_LETTER_ADVICE
from eventide.runtime.chain.outputs import Collector, DeadLetterOutput, described
from eventide.runtime.elements.elements import Elements, in_time_order, interleave
from eventide.runtime.elements.ownership import own
from eventide.runtime.invoke import no_timestamp, user_function_error
from eventide.runtime.metrics import LATE_DROPPED, LATE_TO_SIDE_OUTPUT, Metrics
from eventide.runtime.process.operator import KeyedOperator
from eventide.runtime.state.key_context import KeyContext
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.tasks.operator import OperatorContext, Receive, SortInputs, WithoutClock

JOINING = "while it joined an element"
ELEMENTS = "elements"
"""The name under which the elements of a side are kept: their times in order, and their values beside them."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much later a right element may be than its left one, in milliseconds, from lower to upper, both inclusive.

    With ``are_open`` there are none: any two elements meet, so none is late, and each is kept for ever.
    """

    lower_ms: int
    upper_ms: int
    are_open: bool = False

    def of_side(self, side: int) -> tuple[int, int]:
        """How much later an element of the other side may be than one of this side: 0 is left, 1 is right."""
        return (-self.upper_ms, -self.lower_ms) if side else (self.lower_ms, self.upper_ms)


ANY_TIME = Bounds(MIN_MS, MAX_MS, are_open=True)
"""No bounds at all."""


class JoinContext(ProcessJoinFunction.Context):
    """The times of two elements."""

    left_ms = right_ms = time_ms = MIN_MS

    def get_left_timestamp(self) -> int:
        """The time of the left element."""
        return self.left_ms

    def get_right_timestamp(self) -> int:
        """The time of the right element."""
        return self.right_ms

    def get_timestamp(self) -> int:
        """The later of the two times."""
        return self.time_ms


class IntervalJoinOperator(WithoutClock, KeyedOperator):
    """Joins by key and time; elements below the watermark are late.

    An element waits as long as an element of the other side can still meet it in time. A key has a timer for the
    earliest element of each side that goes. With dead letters, both elements of a pair that the function cannot handle
    stay, and meet others. Flink: ``IntervalJoinOperator``.
    """

    inputs: Sequence[Receive] = ()

    def __init__(self, spec: IntervalJoinSpec, keyed: KeyedState, context: OperatorContext) -> None:
        self._spec = spec
        self._keyed = keyed
        self._metrics: Metrics = context.metrics
        self._watermark = context.watermark_ms
        self._context = JoinContext()
        self._at = spec.key_context
        self._at.begin(keyed, context.clock_ms)
        self._out = Collector(spec.name, spec.output_type)
        self._process: Callable[..., Iterable[Any] | None] = spec.function.process_element
        if spec.dead_letters is not None:
            self._letters = DeadLetterOutput(spec.name, spec.dead_letters, self._out, context.metrics, keyed)
            self._process = self._process_or_letter
        self.inputs = tuple(partial(self._receive, side) for side in (0, 1))

    @property
    def late_until(self) -> int:
        """The last time below the watermark; none where there are no bounds."""
        return MIN_MS if self._spec.bounds.are_open else add_ms(self._watermark, -1)

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether the watermark decides which elements are late."""
        return not self._spec.bounds.are_open

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, and forget the elements that nothing can meet any more."""
        self._watermark = watermark_ms
        for _, key, side in self._keyed.event_timers.due(watermark_ms):
            self._forget(key, cast("int", side))

    def _receive(self, side: int, parts: list[Elements]) -> None:
        elements = interleave(parts)
        self._keyed.open_all(elements.keys)
        key = value = timestamp = None
        try:
            for key, value, timestamp in elements.rows():
                if timestamp is None:
                    raise no_timestamp()
                if timestamp < self._watermark and not self._spec.bounds.are_open:
                    self._put_late(side, value, timestamp)
                else:
                    self._keep(side, key, value, timestamp)
                    self._meet(side, key, value, timestamp)
        except Exception as error:
            advice = "" if timestamp is None else DEAD_LETTER_ADVICE
            raise user_function_error(
                self._spec.name, error, during=JOINING, advice=advice, key=key, element=value
            ) from error

    def _put_late(self, side: int, value: object, timestamp: int) -> None:
        tag = self._spec.late_tags[side]
        counter = LATE_DROPPED if tag is None else LATE_TO_SIDE_OUTPUT
        self._metrics.count_late(self._spec.name, counter, [timestamp], self._watermark)
        if tag is not None:
            self._out.put_beside(tag, value, timestamp)

    def _keep(self, side: int, key: object, value: object, timestamp: int) -> None:
        kept = self._keyed.read(key, side, ELEMENTS)
        if kept is None:
            self._keyed.write(key, side, ELEMENTS, ([timestamp], [value]))
        else:
            times, values = kept
            at = len(times) if self._spec.bounds.are_open else bisect_right(times, timestamp)
            times.insert(at, timestamp)
            values.insert(at, value)
            if at > 0:
                return
        if self._spec.bounds.are_open:
            return
        self._keyed.event_timers.register(self._goes_at(side, timestamp), key, side)

    def _meet(self, side: int, key: object, value: object, timestamp: int) -> None:
        kept = self._keyed.read(key, 1 - side, ELEMENTS)
        if kept is None:
            return
        times, values = kept
        lower, upper = self._spec.bounds.of_side(side)
        first, behind = 0, len(times)
        if not self._spec.bounds.are_open:
            first, behind = bisect_left(times, timestamp + lower), bisect_right(times, timestamp + upper)
        if first == behind:
            return
        self._at.key, self._at.values = key, self._keyed.values
        process, context, put = self._process, self._context, self._out.put_results
        for other_ms, other in zip(times[first:behind], values[first:behind], strict=True):
            context.time_ms = max(timestamp, other_ms)
            if side:
                context.left_ms, context.right_ms = other_ms, timestamp
                results = process(own(other), own(value), context)
            else:
                context.left_ms, context.right_ms = timestamp, other_ms
                results = process(own(value), own(other), context)
            if results is not None:
                put(results, context.time_ms)

    def _process_or_letter(self, left: object, right: object, context: JoinContext) -> None:
        """Emit what the function returns for a pair, or its dead letter."""
        function, pair = self._spec.function.process_element, (own(left), own(right))
        self._letters.call(function, (left, right, context), JOINING, context.time_ms, self._at.key, element=pair)

    def _goes_at(self, side: int, timestamp: int) -> int:
        """The watermark at which nothing can meet an element any more."""
        return add_ms(timestamp, max(0, self._spec.bounds.of_side(side)[1]))

    def _forget(self, key: object, side: int) -> None:
        kept = self._keyed.read(key, side, ELEMENTS)
        if kept is None:
            return
        times, values = kept
        stays = max(0, self._spec.bounds.of_side(side)[1])
        gone = len(times) if self._watermark == MAX_MS else bisect_right(times, self._watermark - stays)
        del times[:gone], values[:gone]
        if times:
            self._keyed.event_timers.register(self._goes_at(side, times[0]), key, side)
        else:
            self._keyed.take(key, side, ELEMENTS)


def described_bounds(bounds: Bounds) -> str:
    """When two elements meet, for ``explain``."""
    if bounds.are_open:
        return "elements of any time"
    return f"right elements from {bounds.lower_ms} ms to {bounds.upper_ms} ms after their left ones"


def described_late(bounds: Bounds, tags: tuple[str | None, str | None]) -> str:
    """Where late elements of either side go, for ``explain``."""
    if bounds.are_open:
        return "none"
    gone = ["dropped and counted" if tag is None else f"to side output {tag!r}" for tag in tags]
    return f"left {gone[0]}, right {gone[1]}"


@dataclass(frozen=True, slots=True)
class IntervalJoinSpec:
    """All that describes an interval join; picklable.

    ``late_tags`` are the side outputs for late elements of the left and of the right, ``dead_letters`` that for pairs
    that the function cannot handle (None: they are errors).
    """

    name: str
    bounds: Bounds
    function: ProcessJoinFunction
    late_tags: tuple[str | None, str | None]
    output_type: TypeInformation = field(default_factory=Types.PICKLED_BYTE_ARRAY)
    dead_letters: str | None = None
    key_context: KeyContext = field(default_factory=KeyContext, compare=False, repr=False)

    @property
    def needs_clock(self) -> bool:
        """False: nothing waits for the clock."""
        return False

    @property
    def runs_without_data(self) -> bool:
        """False: nothing waits for the clock."""
        return False

    @property
    def sort_inputs(self) -> SortInputs:
        """Sorts by timestamps across both inputs."""
        return in_time_order

    @property
    def state_of_functions(self) -> KeyedStateStore:
        """Where the function finds the state of a key."""
        return self.key_context.store

    def user_functions(self) -> list[Any]:
        """The function that the user wrote, to be opened and closed."""
        return [self.function]

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        return [
            ("interval join", described_bounds(self.bounds)),
            ("late", described_late(self.bounds, self.late_tags)),
            ("state", "the elements of each side by key, until nothing can meet them"),
            *described(self.dead_letters),
        ]
