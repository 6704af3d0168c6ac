"""Streams know the class of their elements, through all that is done with them."""

from __future__ import annotations

from typing import Any, assert_type

from orders import Event, Order, Payment, env, orders, payments

from eventide.common import ExecutionConfig, Row, Types
from eventide.datastream import ConnectedStreams, DataStream, KeyedStream, OutputTag
from eventide.datastream.data_stream import CloseableIterator

# --- where they come from ---
assert_type(orders, DataStream[Order])
assert_type(env.from_collection([1, 2], Types.LONG()), DataStream[int])
assert_type(env.from_collection([("ann", 3)], Types.TUPLE([Types.STRING(), Types.INT()])), DataStream[tuple[str, int]])
# A declared row makes rows of tuples and dicts.
assert_type(
    env.from_collection([("ann", 3)], Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.INT()])),
    DataStream[Row],
)

# --- functions of one element ---
amounts = orders.map(lambda order: order.amount)
assert_type(amounts, DataStream[int])
assert_type(amounts.map(str), DataStream[str])
assert_type(
    orders.map(lambda order: (order.user, order.amount), Types.TUPLE([Types.STRING(), Types.INT()])),
    DataStream[tuple[str, int]],
)
assert_type(orders.filter(lambda order: order.amount > 3), DataStream[Order])
assert_type(orders.flat_map(lambda order: order.user.split()), DataStream[str])
assert_type(orders.name("orders").uid("orders"), DataStream[Order])
assert_type(orders.rebalance(), DataStream[Order])
assert_type(orders.partition_custom(lambda key, n: len(key) % n, lambda order: order.user), DataStream[Order])


def is_large(event: Event) -> bool:
    return event.time > 3


def as_pair(order: Order) -> tuple[str, int]:
    return order.user, order.amount


assert_type(orders.map(as_pair), DataStream[tuple[str, int]])
assert_type(orders.map(as_pair, Types.ROW([Types.STRING(), Types.INT()])), DataStream[Row])

# A function of any event is one of orders too.
assert_type(orders.filter(is_large), DataStream[Order])

# --- keys ---
by_user = orders.key_by(lambda order: order.user)
assert_type(by_user, KeyedStream[str, Order])
assert_type(orders.key_by(lambda order: (order.user, order.time)), KeyedStream[tuple[str, int], Order])
assert_type(by_user.reduce(lambda one, other: max(one, other, key=lambda order: order.amount)), DataStream[Order])
assert_type(by_user.max_by("amount"), DataStream[Order])
assert_type(by_user.map(lambda order: order.amount), DataStream[int])
rows = env.from_collection([("ann", 3)], Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.INT()]))
assert_type(rows.key_by("user"), KeyedStream[Any, Row])

# --- several streams ---
assert_type(orders.union(orders, orders), DataStream[Order])


def with_orders(events: DataStream[Event]) -> DataStream[Event]:
    return events.union(orders)


assert_type(with_orders(orders), DataStream[Event])
assert_type(orders.connect(payments), ConnectedStreams[Order, Payment])

# --- side outputs ---
late = OutputTag[Order]("late")
counts = OutputTag("counts", Types.LONG())
anything = OutputTag("anything")
fields = OutputTag("fields", [Types.STRING(), Types.LONG()])
assert_type(counts, OutputTag[int])
assert_type(anything, OutputTag[Any])
assert_type(fields, OutputTag[Row])
done = by_user.reduce(lambda one, other: one)
assert_type(done.get_side_output(late), DataStream[Order])
assert_type(done.get_side_output(counts), DataStream[int])

# --- results ---
assert_type(env.from_collection([1]).execute_and_collect(), CloseableIterator[int])
assert_type(env.from_collection([1]).execute_and_collect(limit=1), list[int])

# --- settings without effect ---
assert_type(env.get_config().enable_object_reuse(), ExecutionConfig)
assert_type(env.get_config().set_latency_tracking_interval(5).get_latency_tracking_interval(), int)
assert_type(orders.disable_chaining(), DataStream[Order])
