"""A process function on columns: the balance of each account after each of its payments.

What to see: "A" begins with 100, pays 30 and gets 5, so it has 75. The payments of an account within a micro-batch are
added up one after the other, from what the account had before.
"""

import numpy as np
import pyarrow as pa

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.functions import RuntimeContext, VectorizedKeyedProcessFunction
from eventide.datastream.state import ValueStateDescriptor

PAYMENT = Types.ROW_NAMED(["account", "at", "amount"], [Types.STRING(), Types.LONG(), Types.LONG()])
BALANCE = Types.ROW_NAMED(["account", "amount", "balance"], [Types.STRING(), Types.LONG(), Types.LONG()])
PAYMENTS = [
    Row(account=account, at=at, amount=amount)
    for at, (account, amount) in enumerate([("A", 100), ("B", 20), ("A", -30), ("B", 1), ("A", 5)])
]


class Balances(VectorizedKeyedProcessFunction):
    """Adds up by account."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.balance = runtime_context.get_vectorized_state(ValueStateDescriptor("balance", Types.LONG()))

    def process_batch(self, batch: pa.RecordBatch, ctx: VectorizedKeyedProcessFunction.Context) -> None:
        before = self.balance.get(ctx.distinct_keys).fill_null(0).to_numpy()
        by_key = np.argsort(ctx.key_numbers, kind="stable")  # the rows of each key together, in their order
        numbers, amounts = ctx.key_numbers[by_key], batch.column("amount").to_numpy()[by_key]
        sums = np.cumsum(amounts)
        first = np.searchsorted(numbers, np.arange(len(before)))
        balances = sums + (before - sums[first] + amounts[first])[numbers]
        last = np.append(first[1:], len(numbers)) - 1
        self.balance.put(ctx.distinct_keys, balances[last])
        rows = pa.array(by_key)
        accounts, paid = batch.column("account").take(rows), batch.column("amount").take(rows)
        ctx.collect(pa.record_batch({"account": accounts, "amount": paid, "balance": balances}), rows)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.set_max_rows_per_batch(3)
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    payments = env.from_collection(PAYMENTS, PAYMENT).assign_timestamps_and_watermarks(in_time)
    balances = payments.key_by("account").process(Balances(), BALANCE)
    balances.map(lambda row: f"{row.account} {row.amount:+}: {row.balance}").print()
    env.execute("balances")


if __name__ == "__main__":
    main()
