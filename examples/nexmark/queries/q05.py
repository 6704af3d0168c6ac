"""Query 5: the auctions with the most bids in the last ten seconds, every two seconds.

Windows after windows, and a join. The bids of each auction are counted in sliding windows, whose results have the last
millisecond of their window as their time. So each window of two seconds after them has the results of one sliding
window: their maximum is joined with those that reach it.
"""

from eventide.aggregates import count, max_
from eventide.common import Row, Time, Types
from eventide.datastream import DataStream
from eventide.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from examples.nexmark.source import Streams

HOT = Types.ROW_NAMED(["auction", "window", "num"], [Types.LONG(), Types.TIME_WINDOW(), Types.LONG()])


def hot_auctions(streams: Streams) -> DataStream:
    last = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2))
    every = TumblingEventTimeWindows.of(Time.seconds(2))
    counts = streams.bids.key_by("auction").window(last).aggregate(count().alias("num"))
    most = counts.window_all(every).aggregate(max_("num").alias("num"))
    pairs = counts.join(most).where(lambda one: one.num, Types.LONG()).equal_to(lambda top: top.num, Types.LONG())
    return pairs.window(every).apply(lambda one, top: Row(auction=one.auction, window=one.window, num=one.num), HOT)
