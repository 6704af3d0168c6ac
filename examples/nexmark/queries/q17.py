"""Query 17: what happens to each auction on each day: bids by how high they are, and their prices.

The result of a day comes out when it is over.
"""

from eventide.aggregates import count, max_, mean, min_, sum_
from eventide.common import Row, Time, Types
from eventide.datastream import DataStream
from eventide.datastream.window import TumblingEventTimeWindows
from examples.nexmark.queries.q16 import RANKS, by_rank
from examples.nexmark.source import Streams

RANKED = Types.ROW_NAMED(["auction", "price", "price1", "price2", "price3"], [Types.LONG()] * 5)
Ranked = Row(*RANKED.field_names)


def ranked(bid: Row) -> Row:
    return Ranked(bid.auction, bid.price, *by_rank(bid.price, bid.price))


def auctions_by_day(streams: Streams) -> DataStream:
    days = streams.bids.map(ranked, RANKED).key_by("auction").window(TumblingEventTimeWindows.of(Time.days(1)))
    return days.aggregate(
        count().alias("total_bids"),
        *(count(f"price{rank}").alias(f"rank{rank}_bids") for rank in RANKS),
        min_("price").alias("min_price"),
        max_("price").alias("max_price"),
        mean("price").alias("avg_price"),
        sum_("price").alias("sum_price"),
    )
