"""Query 14: bids of a certain size, with the time of day and a count of letters. Functions of one's own.

The functions are plain Python, called from the function of a `map`.
"""

from eventide.common import Row, Types
from eventide.datastream import DataStream
from examples.nexmark.queries.q01 import DOLLAR_IN_EUROS
from examples.nexmark.source import Streams

CALCULATED = Types.ROW_NAMED(
    ["auction", "bidder", "price", "bidTimeType", "dateTime", "extra", "c_counts"],
    [
        *(Types.LONG(), Types.LONG(), Types.BIG_DEC(23, 3), Types.STRING()),
        *(Types.SQL_TIMESTAMP(), Types.STRING(), Types.LONG()),
    ],
)
Calculated = Row(*CALCULATED.field_names)


def time_of_day(hour: int) -> str:
    """Say whether an hour belongs to the day, to the night, or to neither."""
    if 8 <= hour <= 18:
        return "dayTime"
    return "nightTime" if hour <= 6 or hour >= 20 else "otherTime"


def count_char(text: str, char: str) -> int:
    """Count how often a letter is in a text."""
    return text.count(char)


def calculated(bid: Row) -> Row:
    price, time = DOLLAR_IN_EUROS * bid.price, time_of_day(bid.dateTime.hour)
    return Calculated(bid.auction, bid.bidder, price, time, bid.dateTime, bid.extra, count_char(bid.extra, "c"))


def with_calculations(streams: Streams) -> DataStream:
    large = streams.bids.filter(lambda bid: 1_000_000 < DOLLAR_IN_EUROS * bid.price < 50_000_000)
    return large.map(calculated, CALCULATED)
