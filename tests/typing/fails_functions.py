# pyright: standard
"""Mistakes between a function and its stream, and between state and its descriptor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orders import Order, Payment, orders, payments

from eventide.common import Types
from eventide.datastream.functions import (
    CoMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
)
from eventide.datastream.state import MapState, MapStateDescriptor, ValueState, ValueStateDescriptor


class Cents(MapFunction[Payment, int]):
    def map(self, value: Payment) -> int:
        return value.cents


class Wrong(MapFunction[Order, int]):
    # error: override | reportIncompatibleMethodOverride
    def map(self, value: Order) -> str:
        return value.user


class Names(ProcessFunction[Order, str]):
    def process_element(self, value: Order, ctx: ProcessFunction.Context) -> Iterator[str]:
        # error: misc | reportReturnType
        yield value.amount


class OfNumbers(KeyedProcessFunction[int, Order, int]):
    def process_element(self, value: Order, ctx: KeyedProcessFunction.Context[int]) -> Iterable[int]:
        return [ctx.get_current_key()]


class Remembers(KeyedProcessFunction[str, Order, str]):
    last: ValueState[str]
    counts: MapState[str, int]

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("last", Types.LONG())
        # error: arg-type | reportAttributeAccessIssue
        self.last = runtime_context.get_state(descriptor)
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.STRING(), Types.INT()))

    def process_element(self, value: Order, ctx: KeyedProcessFunction.Context[str]) -> Iterable[str]:
        # error: arg-type | reportArgumentType
        self.last.update(value.amount)
        # error: arg-type | reportArgumentType
        self.counts.put(value.amount, 1)
        return [ctx.get_current_key()]


class Both(CoMapFunction[Payment, Order, int]):
    def map1(self, value: Payment) -> int:
        return value.cents

    def map2(self, value: Order) -> int:
        return value.amount


class Sum(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


by_user = orders.key_by(lambda order: order.user)
# error: arg-type | reportArgumentType
orders.map(Cents())
# error: arg-type | reportArgumentType
by_user.process(OfNumbers())
# error: arg-type | reportArgumentType
by_user.reduce(Sum())
# error: arg-type | reportArgumentType
by_user.process(Names())
# error: arg-type | reportArgumentType
orders.connect(payments).map(Both())
