"""Process functions: of one stream or two, of which one may be broadcast, and of many keys at once in columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic

from eventide.api.functions._basic import Function
from eventide.api.functions.timers import TimeDomain, TimerService, VectorizedTimerService
from eventide.common.type_variables import IN1_contra, IN2_contra, IN_contra, K, KEY_co, KEY_contra, OUT_co, S, V

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from eventide.api.functions.output_tag import Emitted, OutputTag
    from eventide.api.keyed_state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState, StateDescriptor


class _Context(ABC):
    """Context of an element."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the times that the operator knows; timers can be set where there are keys."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the event time of the element, or of the timer, in milliseconds; None if it has none."""


class _KeyedContext(_Context, Generic[KEY_co]):
    """The context of a function that handles an element of a key."""

    @abstractmethod
    def get_current_key(self) -> KEY_co:
        """Return the key of the element, or of the timer."""


class _TimerContext(_KeyedContext[KEY_co]):
    """The context of a function whose timer fires for a key."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return which kind of time has reached the timer."""


class ProcessFunction(Function, Generic[IN_contra, OUT_co]):
    """Maps each element to any number of results, and may look at its time and at the watermark.

    ``yield value`` emits a result, ``yield tag, value`` emits it to the side output of an `OutputTag`. Results
    have the timestamp of their element.

    >>> class Positive(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value > 0:
    ...             yield value, ctx.timestamp()
    """

    class Context(_Context):
        """Context of an element. There are no keys, so setting a timer is refused."""

    @abstractmethod
    def process_element(self, value: IN_contra, ctx: ProcessFunction.Context) -> Emitted[OUT_co]:
        """Handle one element; return, or yield, the results."""


class KeyedProcessFunction(Function, Generic[KEY_contra, IN_contra, OUT_co]):
    """Handles the elements of each key, with state and timers of its own for each.

    State comes from the context that `open` is given, and is always that of the current key. Results
    have the timestamp of the element, or of the timer of event time; none after a timer of processing time.

    >>> from eventide.common import Types
    >>> from eventide.api.state import ValueStateDescriptor
    >>> class LastOfQuietKey(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
    ...
    ...     def process_element(self, value, ctx):
    ...         self.last.update(ctx.timestamp())
    ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 60_000)
    ...
    ...     def on_timer(self, timestamp, ctx):
    ...         if timestamp == self.last.value() + 60_000:
    ...             yield ctx.get_current_key(), self.last.value()
    """

    class Context(_KeyedContext[KEY_co]):
        """The context of a function that handles an element."""

    class OnTimerContext(_TimerContext[KEY_co]):
        """The context of a function whose timer fires."""

    @abstractmethod
    def process_element(self, value: IN_contra, ctx: KeyedProcessFunction.Context[KEY_contra]) -> Emitted[OUT_co]:
        """Handle one element; return, or yield, the results."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[KEY_contra]) -> Emitted[OUT_co]:
        """Called when a timer fires that was set for a time, in milliseconds; return, or yield, the results."""


class CoMapFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Maps each element of two connected streams to one result; None emits nothing."""

    @abstractmethod
    def map1(self, value: IN1_contra) -> OUT_co | None:
        """Return the result for an element of the first stream."""

    @abstractmethod
    def map2(self, value: IN2_contra) -> OUT_co | None:
        """Return the result for an element of the second stream."""


class CoFlatMapFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Maps each element of two connected streams to any number of results."""

    @abstractmethod
    def flat_map1(self, value: IN1_contra) -> Iterable[OUT_co] | None:
        """Return, or yield, the results for an element of the first stream."""

    @abstractmethod
    def flat_map2(self, value: IN2_contra) -> Iterable[OUT_co] | None:
        """Return, or yield, the results for an element of the second stream."""


class CoProcessFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """A `ProcessFunction` of two connected streams; the watermark is the lower one of the two."""

    class Context(_Context):
        """Context of an element. There are no keys, so setting a timer is refused."""

    @abstractmethod
    def process_element1(self, value: IN1_contra, ctx: CoProcessFunction.Context) -> Emitted[OUT_co]:
        """Handle one element of the first stream; return, or yield, the results."""

    @abstractmethod
    def process_element2(self, value: IN2_contra, ctx: CoProcessFunction.Context) -> Emitted[OUT_co]:
        """Handle one element of the second stream; return, or yield, the results."""


class KeyedCoProcessFunction(Function, Generic[KEY_contra, IN1_contra, IN2_contra, OUT_co]):
    """A `KeyedProcessFunction` of two connected streams: equal keys of both share their state and timers."""

    class Context(_KeyedContext[KEY_co]):
        """The context of a function that handles an element."""

    class OnTimerContext(_TimerContext[KEY_co]):
        """The context of a function whose timer fires."""

    @abstractmethod
    def process_element1(self, value: IN1_contra, ctx: KeyedCoProcessFunction.Context[KEY_contra]) -> Emitted[OUT_co]:
        """Handle one element of the first stream; return, or yield, the results."""

    @abstractmethod
    def process_element2(self, value: IN2_contra, ctx: KeyedCoProcessFunction.Context[KEY_contra]) -> Emitted[OUT_co]:
        """Handle one element of the second stream; return, or yield, the results."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[KEY_contra]) -> Emitted[OUT_co]:
        """Called when a timer fires that was set for a time, in milliseconds; return, or yield, the results."""


class BaseBroadcastProcessFunction(Function):
    """Base of functions with broadcast state."""

    class BaseContext(ABC):
        """Context of an element of either stream."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the event time of the element, in milliseconds; None if it has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time, in milliseconds: the time of the micro-batch."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the operator's watermark, in milliseconds."""

    class Context(BaseContext):
        """Context of an element of the broadcast stream, which may change the state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
            """Return a broadcast state by one of the descriptors that `broadcast` was given."""

    class ReadOnlyContext(BaseContext):
        """Context of an element of the other stream, which may read the state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
            """Return a broadcast state, to be read, by one of the descriptors that `broadcast` was given."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Handles the elements of a stream without keys beside those of a broadcast stream.

    Every subtask gets all elements of the broadcast stream, and has its own copy of the broadcast state; so the
    function must treat them equally in each subtask. Each subtask emits their results.
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """Context of an element of the broadcast stream."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """Context of an element of the other stream."""

    @abstractmethod
    def process_element(self, value: IN1_contra, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Emitted[OUT_co]:
        """Handle an element of the stream that is not broadcast; return, or yield, the results."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2_contra, ctx: BroadcastProcessFunction.Context) -> Emitted[OUT_co]:
        """Handle an element of the broadcast stream; return, or yield, the results."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY_contra, IN1_contra, IN2_contra, OUT_co]):
    """Handles the elements of a keyed stream beside those of a broadcast stream; each key has state and timers."""

    class Context(BaseBroadcastProcessFunction.Context, Generic[KEY_co]):
        """The context of a function that handles an element of the broadcast stream: it has no current key."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor[S], function: Callable[[KEY_co, S], object]
        ) -> None:
            """Call ``function(key, state)`` for each key of this subtask that has the state.

            It reads the state of all keys. PyFlink has no such method; Flink: ``applyToKeyedState``.
            """

    class ReadOnlyContext(_KeyedContext[KEY_co], BaseBroadcastProcessFunction.ReadOnlyContext):
        """The context of a function that handles an element of the keyed stream."""

    class OnTimerContext(ReadOnlyContext[KEY_co], _TimerContext[KEY_co]):
        """The context of a function whose timer fires."""

    @abstractmethod
    def process_element(
        self, value: IN1_contra, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Handle an element of the keyed stream; return, or yield, the results."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2_contra, ctx: KeyedBroadcastProcessFunction.Context[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Handle an element of the broadcast stream; return, or yield, the results."""

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Called when a timer fires that was set for a time, in milliseconds; return, or yield, the results."""


class VectorizedKeyedProcessFunction(Function, Generic[OUT_co]):
    """Handles the elements of many keys at once, in Arrow columns, with state and timers for each key. Not in Flink.

    It gives the results of a `KeyedProcessFunction` that does the same for each element, as long as it treats each key
    by itself: with the elements, the state and the timers of this key.

    - `process_batch` is called with elements of a subtask, in their order, of any keys, and all under one watermark:
      usually once in a micro-batch, and several times if the watermark moves between its elements. The number of calls
      for the elements of one watermark is not defined. A call reads the state before its first element; the function
      itself must handle several elements of one key in a call.
    - `on_timers` is called when time moves, with the earliest due timer of each key. It is called again, with the state
      as it was left, until no timer is due: so the timers of each key fire in the order of their time, also those that
      are set meanwhile.
    - Results are emitted in the order of the elements that they belong to, or of the timers over all keys, with their
      timestamps; after a timer of processing time they have none.

    State is stored in the same form as that of a `KeyedProcessFunction`. A program may change from one to the other,
    and keep its state and its timers, if the names and types of the state stay, and the operator has its ``uid``.

    The key has to be given by fields (``key_by("user")``), and elements and results need declared types. State with a
    time to live is refused: clear it by a timer. With dead letters, a call that raises is rolled back and repeated
    with each half of its rows, down to single rows: a row for which it still raises becomes a dead letter.

    >>> import numpy as np, pyarrow as pa, pyarrow.compute as pc
    >>> from eventide.common import Row, Types, WatermarkStrategy
    >>> from eventide.datastream.functions import VectorizedKeyedProcessFunction
    >>> from eventide.datastream.state import ValueStateDescriptor
    >>> from eventide.testing import local_environment
    >>> class Total(VectorizedKeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.total = runtime_context.get_vectorized_state(ValueStateDescriptor("total", Types.LONG()))
    ...
    ...     def process_batch(self, batch, ctx):
    ...         sums = np.zeros(len(ctx.distinct_keys), np.int64)
    ...         np.add.at(sums, ctx.key_numbers, batch.column("amount"))
    ...         before = self.total.get(ctx.distinct_keys).fill_null(0)
    ...         self.total.put(ctx.distinct_keys, pc.add(before, sums))
    ...         ctx.timer_service().register_event_time_timers(ctx.distinct_keys, 10_000)
    ...
    ...     def on_timers(self, timestamps, ctx):
    ...         ctx.collect(pa.record_batch({"user": ctx.keys, "total": self.total.get(ctx.keys)}))
    >>> payment = Types.ROW_NAMED(["user", "at", "amount"], [Types.STRING(), Types.LONG(), Types.LONG()])
    >>> total = Types.ROW_NAMED(["user", "total"], [Types.STRING(), Types.LONG()])
    >>> payments = [Row(user="ann", at=1_000, amount=5), Row(user="bob", at=2_000, amount=1),
    ...             Row(user="ann", at=3_000, amount=7)]
    >>> in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    >>> stream = local_environment().from_collection(payments, payment).assign_timestamps_and_watermarks(in_time)
    >>> sorted(stream.key_by("user").process(Total(), total).execute_and_collect(), key=lambda row: row.user)
    [Row(user='ann', total=12), Row(user='bob', total=1)]
    """

    class Context(ABC):
        """The context of a call: its keys, times and outputs.

        Attributes:
            keys: The key of each row, or of each timer. A key of several fields is a struct of them.
            distinct_keys: Each key once, in the order of first appearance.
            key_numbers: The index of each row's key among the distinct ones; a NumPy array of ``int64``, which must not
                be changed.
            timestamps: The event time of each element, or the time of each timer, in milliseconds; null for an element
                without one.
        """

        keys: pa.Array
        distinct_keys: pa.Array
        key_numbers: np.ndarray
        timestamps: pa.Array

        @abstractmethod
        def timer_service(self) -> VectorizedTimerService:
            """Return the times that the operator knows, and the timers."""

        @abstractmethod
        def collect(self, results: object, rows: object = None) -> None:
            """Emit results.

            Args:
                results: A ``pyarrow.RecordBatch`` with the fields of the output type, found by their names, or an array
                    if it has no fields. It is not copied: do not change its memory afterwards.
                rows: For each result, the index of the row, or timer, that it comes from, in any order; or a boolean
                    for each row, which says whether it has a result. Without it there is one result for each row.
            """

        @abstractmethod
        def output(self, output_tag: OutputTag, results: object, rows: object = None) -> None:
            """Emit results to a side output, whose tag has a declared type; arguments as for `collect`."""

    class OnTimersContext(Context):
        """The context of timers that fire."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return which kind of time has reached the timers."""

    @abstractmethod
    def process_batch(self, batch: pa.RecordBatch, ctx: VectorizedKeyedProcessFunction.Context) -> None:
        """Handle elements: a batch with a column for each field."""

    def on_timers(self, timestamps: pa.Array, ctx: VectorizedKeyedProcessFunction.OnTimersContext) -> None:
        """Called when timers fire, with the time of each in milliseconds, in their order; keys are in the context."""
