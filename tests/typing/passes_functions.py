"""Functions say what they take, keep and give; state has the type of its descriptor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_type

from orders import Event, Order, Payment, orders, payments

from eventide.common import Time, Types
from eventide.datastream import AsyncDataStream, DataStream, OutputTag
from eventide.datastream.functions import (
    AggregateFunction,
    AsyncFunction,
    BroadcastProcessFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RichMapFunction,
    RuntimeContext,
    associative,
)
from eventide.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    ValueState,
    ValueStateDescriptor,
)

small = OutputTag[str]("small")


class Amount(MapFunction[Order, int]):
    def map(self, value: Order) -> int:
        return value.amount


class TimeOf(RichMapFunction[Event, int]):
    def map(self, value: Event) -> int:
        return value.time


class Large(FilterFunction[Order]):
    def filter(self, value: Order) -> bool:
        return value.amount > 3


class Letters(FlatMapFunction[Order, str]):
    def flat_map(self, value: Order) -> Iterator[str]:
        yield from value.user


class ByUser(KeySelector[Order, str]):
    def get_key(self, value: Order) -> str:
        return value.user


class Latest(ReduceFunction[Order]):
    def reduce(self, value1: Order, value2: Order) -> Order:
        return value2


class Sorted(ProcessFunction[Order, int]):
    """Emits amounts, and on the side output names."""

    def process_element(self, value: Order, ctx: ProcessFunction.Context) -> Iterator[int | tuple[OutputTag[str], str]]:
        if value.amount < 3:
            yield small, value.user
        else:
            yield value.amount


class Count(AggregateFunction[object, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: object, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Remembers(KeyedProcessFunction[str, Order, tuple[str, int]]):
    last: ValueState[int]
    order: ValueState[Order]

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.order = runtime_context.get_state(ValueStateDescriptor("order", Types.PICKLED_BYTE_ARRAY()))
        assert_type(runtime_context.get_list_state(ListStateDescriptor("all", Types.STRING())), ListState[str])
        descriptor = MapStateDescriptor("by name", Types.STRING(), Types.LIST(Types.INT()))
        assert_type(runtime_context.get_map_state(descriptor), MapState[str, list[int]])
        earliest = ReducingStateDescriptor("earliest", lambda a, b: a if a < b else b, Types.LONG())
        assert_type(runtime_context.get_reducing_state(earliest), ReducingState[int])
        count = AggregatingStateDescriptor("count", Count(), Types.LONG())
        assert_type(runtime_context.get_aggregating_state(count), AggregatingState[object, int])

    def process_element(self, value: Order, ctx: KeyedProcessFunction.Context[str]) -> Iterator[tuple[str, int]]:
        assert_type(ctx.get_current_key(), str)
        assert_type(self.last.value(), int | None)
        self.last.update(value.amount)
        self.order.update(value)
        yield ctx.get_current_key(), value.amount

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[str]) -> Iterable[tuple[str, int]]:
        return [(ctx.get_current_key(), self.last.value() or 0)]


class Texts(CoMapFunction[Order, Payment, str]):
    def map1(self, value: Order) -> str:
        return value.user

    def map2(self, value: Payment) -> str | None:
        return None


class Matches(KeyedCoProcessFunction[str, Order, Payment, int]):
    def process_element1(self, value: Order, ctx: KeyedCoProcessFunction.Context[str]) -> Iterable[int]:
        return [value.amount]

    def process_element2(self, value: Payment, ctx: KeyedCoProcessFunction.Context[str]) -> Iterable[int]:
        return [value.cents]


rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Ruled(BroadcastProcessFunction[Order, Payment, int]):
    def process_element(self, value: Order, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[int]:
        assert_type(ctx.get_broadcast_state(rules).get(value.user), int | None)
        return [value.amount]

    def process_broadcast_element(self, value: Payment, ctx: BroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(rules).put(value.user, value.cents)


class Asks(AsyncFunction[Order, str]):
    async def async_invoke(self, value: Order) -> list[str]:
        return [value.user]


assert_type(orders.map(Amount()), DataStream[int])
assert_type(orders.map(TimeOf()), DataStream[int])  # a function of any event
assert_type(orders.filter(Large()), DataStream[Order])
assert_type(orders.flat_map(Letters()), DataStream[str])
assert_type(orders.process(Sorted()), DataStream[int])
assert_type(orders.process(Sorted()).get_side_output(small), DataStream[str])
by_user = orders.key_by(ByUser())
assert_type(by_user.map(Amount()), DataStream[int])
assert_type(by_user.reduce(Latest()), DataStream[Order])
assert_type(by_user.process(Remembers()), DataStream[tuple[str, int]])
assert_type(orders.connect(payments).map(Texts()), DataStream[str])
both = orders.connect(payments).key_by(lambda order: order.user, lambda payment: payment.user)
assert_type(both.process(Matches()), DataStream[int])
assert_type(orders.connect(payments.broadcast(rules)).process(Ruled()), DataStream[int])
assert_type(AsyncDataStream.unordered_wait(orders, Asks(), Time.seconds(1)), DataStream[str])
larger: ReduceFunction[int] = associative(lambda one, other: one if one > other else other)


# Without parameters, a function takes and gives anything.
class Anything(MapFunction):
    def map(self, value: Any) -> Any:
        return value


assert_type(orders.map(Anything()), DataStream[Any])
