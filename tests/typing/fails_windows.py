# pyright: standard
"""Mistakes in windows, and in what is called when they fire."""

from __future__ import annotations

from collections.abc import Iterable

from orders import Order, Payment, orders, payments

from eventide.common import Time
from eventide.datastream import OutputTag
from eventide.datastream.functions import AggregateFunction, ProcessWindowFunction, WindowFunction
from eventide.datastream.window import (
    EventTimeSessionWindows,
    GlobalWindow,
    GlobalWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)


class Cents(AggregateFunction[Payment, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Payment, accumulator: int) -> int:
        return accumulator + value.cents

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class OfTexts(WindowFunction[str, str, str, TimeWindow]):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[str]) -> Iterable[str]:
        return inputs


class OfAll(ProcessWindowFunction[Order, str, str, GlobalWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[GlobalWindow], elements: Iterable[Order]
    ) -> Iterable[str]:
        # error: attr-defined | reportAttributeAccessIssue
        return [str(context.window().start)]


class OfNumbers(WindowFunction[Order, str, int, TimeWindow]):
    def apply(self, key: int, window: TimeWindow, inputs: Iterable[Order]) -> Iterable[str]:
        return []


by_user = orders.key_by(lambda order: order.user)
windows = by_user.window(TumblingEventTimeWindows.of(Time.seconds(1)))
# error: arg-type | reportArgumentType reportCallIssue
windows.aggregate(Cents())
# error: arg-type | reportArgumentType
windows.apply(OfTexts())
# error: arg-type | reportArgumentType
windows.process(OfAll())
# error: arg-type | reportArgumentType
windows.apply(OfNumbers())
# error: attr-defined | reportAttributeAccessIssue
windows.reduce(lambda one, other: other.usr)
# error: arg-type | reportArgumentType
windows.side_output_late_data(OutputTag[Payment]("late"))
# error: attr-defined | reportAttributeAccessIssue
by_user.window(EventTimeSessionWindows.with_dynamic_gap(lambda order: order.gap))
# error: attr-defined | reportAttributeAccessIssue
by_user.window(GlobalWindows.create()).process(OfAll()).map(lambda text: text.amount)
# error: attr-defined | reportAttributeAccessIssue
orders.join(payments).where(lambda order: order.usr)
joined = orders.join(payments).where(lambda order: order.user).equal_to(lambda payment: payment.user)
# error: attr-defined | reportAttributeAccessIssue
joined.window(TumblingEventTimeWindows.of(1)).apply(lambda order, payment: payment.amount)
