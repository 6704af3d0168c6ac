"""Query 7: the highest bids of every ten seconds. An aggregate, joined with what it was made of."""

from eventide.aggregates import max_
from eventide.common import Time, Types
from eventide.datastream import DataStream
from eventide.datastream.window import TumblingEventTimeWindows
from examples.nexmark.generator import BID
from examples.nexmark.source import Streams


def highest_bids(streams: Streams) -> DataStream:
    windows = TumblingEventTimeWindows.of(Time.seconds(10))
    highest = streams.bids.window_all(windows).aggregate(max_("price").alias("price"))
    pairs = streams.bids.join(highest).where(lambda bid: bid.price, Types.LONG())
    return pairs.equal_to(lambda top: top.price, Types.LONG()).window(windows).apply(lambda bid, top: bid, BID)
