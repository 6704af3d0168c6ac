"""Each order is worth what the rate was when it was made: an as-of join, and elements in the order of their times.

Rates of a currency hold from their time on, until the next one. The order of 9:02 is joined with the rate of 9:00
although that of 9:05 is known by then; and the one of 9:07 comes before the rate of 9:05 does, and waits for it,
because the watermark of the rates has not come so far.

Then the amounts in dollars are put in order by event time, so that the balance after each of them can be told.
"""

from eventide.common import Duration, Row, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.joins import left, right

ORDER = Types.ROW_NAMED(["currency", "minute", "amount"], [Types.STRING(), Types.LONG(), Types.LONG()])
RATE = Types.ROW_NAMED(["currency", "minute", "rate"], [Types.STRING(), Types.LONG(), Types.LONG()])
ORDERS = [("EUR", 7, 100), ("EUR", 2, 200), ("CHF", 4, 50), ("EUR", 6, 10)]
RATES = [("EUR", 0, 110), ("CHF", 0, 120), ("EUR", 5, 114)]


def added(before: Row, order: Row) -> Row:
    """The order, with the amount of all so far."""
    return Row(**{**order.as_dict(), "amount": before["amount"] + order["amount"]})


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    by_minute = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(10)).with_timestamp_assigner(
        lambda row, _: row["minute"] * 60_000
    )
    orders = env.from_collection([Row(currency=c, minute=m, amount=n) for c, m, n in ORDERS], ORDER)
    rates = env.from_collection([Row(currency=c, minute=m, rate=n) for c, m, n in RATES], RATE)
    orders, rates = (s.assign_timestamps_and_watermarks(by_minute).key_by("currency") for s in (orders, rates))

    worth = orders.as_of_join(rates).select(left("currency"), left("minute"), left("amount"), right("rate"))
    worth.map(lambda o: f"9:0{o['minute']} {o['amount']} {o['currency']} at {o['rate']}", Types.STRING()).print("order")

    in_order = worth.key_by("currency").sorted_by_event_time()
    balance = in_order.key_by("currency").reduce(added)
    balance.map(lambda o: f"9:0{o['minute']} {o['amount']} {o['currency']}", Types.STRING()).print("balance")

    env.execute("orders at their rates")


if __name__ == "__main__":
    main()
