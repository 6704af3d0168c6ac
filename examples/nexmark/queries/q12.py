"""Query 12: how many bids of each person come within ten seconds of the clock. Windows of processing time.

The results depend on when it is run. Bids of windows that are still open when the input ends do not come out, as in
Flink.
"""

from eventide.aggregates import count
from eventide.common import Time
from eventide.datastream import DataStream
from eventide.datastream.window import TumblingProcessingTimeWindows
from examples.nexmark.source import Streams


def bids_by_the_clock(streams: Streams) -> DataStream:
    windows = streams.bids.key_by("bidder").window(TumblingProcessingTimeWindows.of(Time.seconds(10)))
    return windows.aggregate(count().alias("bid_count"))
