"""Query 16: what happens on each channel on each day: bids, bidders and auctions, by how high the bids are.

The result of a day comes out when it is over. Aggregates pass over nulls, so each rank has columns of its own, which
have a value in the bids of that rank alone.
"""

from eventide.aggregates import count, count_distinct, max_
from eventide.common import Row, Time, Types
from eventide.datastream import DataStream
from eventide.datastream.window import TumblingEventTimeWindows
from examples.nexmark.source import Streams

RANKS = (1, 2, 3)
RANKED = Types.ROW_NAMED(
    ["channel", "dateTime", "bidder", "bidder1", "bidder2", "bidder3", "auction", "auction1", "auction2", "auction3"],
    [Types.STRING(), Types.SQL_TIMESTAMP(), *[Types.LONG()] * 8],
)
Ranked = Row(*RANKED.field_names)

OF_EACH_RANK = [
    count().alias("total_bids"),
    *(count(f"auction{rank}").alias(f"rank{rank}_bids") for rank in RANKS),
    count_distinct("bidder").alias("total_bidders"),
    *(count_distinct(f"bidder{rank}").alias(f"rank{rank}_bidders") for rank in RANKS),
    count_distinct("auction").alias("total_auctions"),
    *(count_distinct(f"auction{rank}").alias(f"rank{rank}_auctions") for rank in RANKS),
]
COUNTS = tuple(one.output_name for one in OF_EACH_RANK)
OF_A_DAY = Types.ROW_NAMED(
    ["channel", "day", "minute", *COUNTS], [*[Types.STRING()] * 3, *[Types.LONG()] * len(COUNTS)]
)


def by_rank(price: int, value: int) -> tuple[int | None, int | None, int | None]:
    """A value in the place of the rank that a price has: below 100 dollars, below 10,000, or above."""
    if price < 10_000:
        return value, None, None
    return (None, value, None) if price < 1_000_000 else (None, None, value)


def ranked(bid: Row) -> Row:
    bidders, auctions = by_rank(bid.price, bid.bidder), by_rank(bid.price, bid.auction)
    return Ranked(bid.channel, bid.dateTime, bid.bidder, *bidders, bid.auction, *auctions)


def of_a_day(row: Row) -> Row:
    last = row.last
    counts = {name: row[name] for name in COUNTS}
    return Row(channel=row.channel, day=f"{last:%Y-%m-%d}", minute=f"{last:%H:%M}", **counts)


def channels_by_day(streams: Streams) -> DataStream:
    days = streams.bids.map(ranked, RANKED).key_by("channel").window(TumblingEventTimeWindows.of(Time.days(1)))
    return days.aggregate(max_("dateTime").alias("last"), *OF_EACH_RANK).map(of_a_day, OF_A_DAY)
