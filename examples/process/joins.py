"""Orders and payments, joined in three ways.

What to see: the window join has the pairs of one day; the co-group also has the orders of a day that were not paid on
it; the interval join has every payment within two days of its order, across midnight too, and with how long it took.
"""

from collections.abc import Iterable
from typing import NamedTuple

from eventide.common import Time, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.functions import CoGroupFunction, JoinFunction, ProcessJoinFunction
from eventide.datastream.window import TumblingEventTimeWindows

HOUR_MS = 60 * 60 * 1000


class Order(NamedTuple):
    number: int
    hour: int


class Payment(NamedTuple):
    order: int
    hour: int
    euros: int


ORDERS = [Order(1, 8), Order(2, 22), Order(3, 30)]
PAYMENTS = [Payment(1, 9, 20), Payment(2, 25, 5), Payment(3, 31, 10), Payment(3, 40, 7)]


class Paid(JoinFunction):
    def join(self, first: Order, second: Payment) -> str:
        return f"order {first.number}: {second.euros} euros on day {second.hour // 24}"


class Unpaid(CoGroupFunction):
    def co_group(self, first: list[Order], second: list[Payment]) -> Iterable[str]:
        if not second:
            yield from (f"order {order.number}: nothing on day {order.hour // 24}" for order in first)


class PaidAfter(ProcessJoinFunction):
    def process_element(self, left: Order, right: Payment, ctx: ProcessJoinFunction.Context) -> Iterable[str]:
        hours = (ctx.get_right_timestamp() - ctx.get_left_timestamp()) // HOUR_MS
        yield f"order {left.number}: {right.euros} euros after {hours} hours"


def timed(env: StreamExecutionEnvironment, elements: list) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e.hour * HOUR_MS)
    return env.from_collection(elements).assign_timestamps_and_watermarks(strategy)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    orders, payments = timed(env, ORDERS), timed(env, PAYMENTS)
    days = TumblingEventTimeWindows.of(Time.days(1))
    number, order = (lambda o: o.number), (lambda p: p.order)
    orders.join(payments).where(number).equal_to(order).window(days).apply(Paid()).print("window join")
    orders.co_group(payments).where(number).equal_to(order).window(days).apply(Unpaid()).print("co-group")
    within = orders.key_by(number).interval_join(payments.key_by(order)).between(Time.days(0), Time.days(2))
    within.process(PaidAfter()).print("interval join")
    env.execute("orders and payments")


if __name__ == "__main__":
    main()
