"""Windows know the key, the elements and the kind of window; their functions see all three."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_type

from orders import Order, orders, payments

from eventide.aggregates import count, sum_
from eventide.common import Row, Types, WatermarkStrategy
from eventide.common.time import Time
from eventide.datastream import AllWindowedStream, DataStream, OutputTag, WindowedStream
from eventide.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    CoGroupFunction,
    JoinFunction,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from eventide.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindow,
    GlobalWindows,
    PurgingTrigger,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    Window,
)
from eventide.joins import left, right

timed = orders.assign_timestamps_and_watermarks(
    WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda order, _: order.time)
)
paid = payments.assign_timestamps_and_watermarks(
    WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda payment, _: payment.time)
)
assert_type(timed, DataStream[Order])


class Mean(AggregateFunction[Order, tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Order, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value.amount, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Ends(WindowFunction[Order, int, str, TimeWindow]):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[Order]) -> Iterable[int]:
        return [window.end]


class OfMean(ProcessWindowFunction[float, tuple[str, float], str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[float]
    ) -> Iterator[tuple[str, float]]:
        assert_type(context.window(), TimeWindow)
        yield from ((key, mean) for mean in elements)


class Total(ProcessAllWindowFunction[Order, int, Window]):
    def process(self, context: ProcessAllWindowFunction.Context[Window], elements: Iterable[Order]) -> Iterator[int]:
        yield sum(order.amount for order in elements)


class Sizes(AllWindowFunction[Order, int, TimeWindow]):
    def apply(self, window: TimeWindow, inputs: Iterable[Order]) -> Iterable[int]:
        return [len(list(inputs))]


class OnLarge(Trigger[Order, Window]):
    def on_element(self, element: Order, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if element.amount > 3 else TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        pass


by_user = timed.key_by(lambda order: order.user)
windows = by_user.window(TumblingEventTimeWindows.of(Time.seconds(1)))
assert_type(windows, WindowedStream[str, Order, TimeWindow])
assert_type(
    windows.allowed_lateness(1).side_output_late_data(OutputTag("late")), WindowedStream[str, Order, TimeWindow]
)
assert_type(windows.reduce(lambda one, other: other), DataStream[Order])
assert_type(windows.reduce(lambda one, other: other, Ends()), DataStream[int])
assert_type(windows.aggregate(Mean()), DataStream[float])
assert_type(windows.aggregate(Mean(), OfMean()), DataStream[tuple[str, float]])
assert_type(windows.apply(Ends()), DataStream[int])
assert_type(timed.window_all(TumblingEventTimeWindows.of(1)).process(Total()), DataStream[int])
assert_type(timed.window_all(TumblingEventTimeWindows.of(1)).apply(Sizes()), DataStream[int])
assert_type(timed.window_all(TumblingEventTimeWindows.of(1)), AllWindowedStream[Order, TimeWindow])
assert_type(by_user.count_window(3), WindowedStream[str, Order, GlobalWindow])
assert_type(by_user.time_window(3), WindowedStream[str, Order, TimeWindow])

# What takes any element takes orders.
by_user.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))
by_user.window(GlobalWindows.create()).trigger(PurgingTrigger.of(OnLarge()))
by_user.window(EventTimeSessionWindows.with_dynamic_gap(lambda order: order.amount))

# --- columns give rows ---
rows = timed.map(
    lambda order: (order.user, order.amount), Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.INT()])
)
of_rows = rows.key_by("user").window(TumblingEventTimeWindows.of(1))
assert_type(of_rows.aggregate(count(), sum_("amount")), DataStream[Row])


# --- joins ---
class Cents(JoinFunction[Order, object, int]):
    def join(self, first: Order, second: object) -> int:
        return first.amount


class Both(CoGroupFunction[Order, Order, str]):
    def co_group(self, first: list[Order], second: list[Order]) -> Iterable[str]:
        return [order.user for order in first + second]


class Within(ProcessJoinFunction[Order, Order, int]):
    def process_element(self, left: Order, right: Order, ctx: ProcessJoinFunction.Context) -> Iterator[int]:
        yield left.amount - right.amount


joined = timed.join(paid).where(lambda order: order.user).equal_to(lambda payment: payment.user)
assert_type(
    joined.window(TumblingEventTimeWindows.of(1)).apply(lambda order, payment: payment.cents - order.amount),
    DataStream[int],
)
assert_type(joined.window(TumblingEventTimeWindows.of(1)).apply(Cents()), DataStream[int])
grouped = timed.co_group(timed).where(lambda order: order.user).equal_to(lambda order: order.user)
assert_type(grouped.window(TumblingEventTimeWindows.of(1)).apply(Both()), DataStream[str])
assert_type(by_user.interval_join(by_user).between(-1, 1).process(Within()), DataStream[int])
keyed_rows = rows.key_by("user")
assert_type(keyed_rows.interval_join(keyed_rows).between(-1, 1).select(left("user"), right("amount")), DataStream[Row])
