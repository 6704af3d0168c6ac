"""The function on the elements of many keys at once, in columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from eventide.api.functions._basic import Function
from eventide.api.functions.timers import TimeDomain, VectorizedTimerService
from eventide.common.type_variables import OUT_co

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from eventide.api.functions.output_tag import OutputTag


class VectorizedKeyedProcessFunction(Function, Generic[OUT_co]):
    """Handles the elements of many keys at once, in Arrow columns, with state and timers for each key. Not in Flink.

    It means the `KeyedProcessFunction` that does the same for each element, and gives its results, as long as it treats
    each key by itself: with the elements, the state and the timers of this key.

    - `process_batch` is called with elements of a subtask, in their order, of whatever keys. All of them come under one
      watermark: usually once in a micro-batch, and several times where the watermark moves between its elements. How
      elements of one watermark are divided into calls is not defined. The state that it reads is that before the first
      of them; the function itself must handle several elements of one key in a call. The function.
    - `on_timers` is called when time moves, with the timers that are due, each key at most once: its earliest. It is
      called again with what is due then, of the same keys and with the state as it was left, until nothing is: so the
      timers of each key fire in the order of their time, as do those that it sets meanwhile.
    - Results come out in the order of the elements that they belong to, or of the timers over all keys, with their
      timestamps; after a timer of processing time they have none.

    State is stored as that of a `KeyedProcessFunction`. A program may change from one to the other, and keep its state
    and its timers, if the names and types of the state stay, and the operator has its ``uid``.

    The key has to be given by fields (``key_by("user")``), and elements and results need declared types. State with a
    time to live is refused: clear it by a timer. Where dead letters are wanted, a call that raises counts as not made,
    and is made again with either half of its rows, down to single ones: a row for which it still raises is a letter.

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
            distinct_keys: Each key once, in the order in which they come first.
            key_numbers: For each row, where its key stands among the distinct ones; an array of ``int64`` of NumPy's,
                which must not be changed.
            timestamps: The event time of each element, or the time of each timer, in milliseconds; null where an
                element has none.
        """

        keys: pa.Array
        distinct_keys: pa.Array
        key_numbers: np.ndarray
        timestamps: pa.Array

        @abstractmethod
        def timer_service(self) -> VectorizedTimerService:
            """Return the times that the operator knows, and the timers."""

        @abstractmethod
        def collect(self, results: Any, rows: Any = None) -> None:
            """Put results out.

            Args:
                results: A ``pyarrow.RecordBatch`` with the fields of the output type, found by their names, or an array
                    where it has no fields. It is not copied, so that memory below it must not be changed any more.
                rows: For each result, the index of the row, or timer, that it comes from, in any order; or a truth
                    value for each row, which says whether there is a result of it. Without it there is one result of
                    each row.
            """

        @abstractmethod
        def output(self, output_tag: OutputTag, results: Any, rows: Any = None) -> None:
            """Put results out on a side output, whose tag has a declared type; as `collect`."""

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
