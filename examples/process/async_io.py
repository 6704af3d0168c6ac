"""Asynchronous functions: prices are asked for at a service, five at a time, and once more where it does not answer.

What to see: the service takes its time and refuses the first question for tea, and yet all answers come, in the order
of the orders. For milk it takes too long, so what was known before is taken.
"""

import asyncio

from eventide.common import Time, Types
from eventide.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment
from eventide.datastream.async_retry_predicates import has_exception_predicate
from eventide.datastream.functions import AsyncRetryStrategy

ORDERS = [("tea", 2), ("milk", 1), ("bread", 3)]
PRICES = {"tea": 5, "milk": 2, "bread": 3}
ORDER = Types.TUPLE([Types.STRING(), Types.INT()])


class Service:
    """Stands for a service somewhere else."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    async def price_of(self, what: str) -> int:
        await asyncio.sleep(60 if what == "milk" else 0.01)
        if what == "tea" and what not in self.asked:
            self.asked.add(what)
            raise ConnectionError("busy")
        return PRICES[what]


class AsksForPrices(AsyncFunction):
    def open(self, runtime_context) -> None:
        self.service = Service()

    async def async_invoke(self, value: tuple[str, int]) -> list[str]:
        what, number = value
        return [f"{number} {what}: {number * await self.service.price_of(what)}"]

    def timeout(self, value: tuple[str, int]) -> list[str]:
        return [f"{value[1]} {value[0]}: about {value[1] * 2}"]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    orders = env.from_collection(ORDERS, ORDER)
    strategy = AsyncRetryStrategy.fixed_delay(3, 20, None, has_exception_predicate)
    priced = AsyncDataStream.ordered_wait_with_retry(
        orders, AsksForPrices(), Time.seconds(1), strategy, capacity=5, output_type=Types.STRING()
    )
    priced.print()
    env.execute("prices")


if __name__ == "__main__":
    main()
