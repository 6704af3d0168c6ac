"""Query 15: what happens on each day: bids, bidders and auctions, by how high the bids are.

The result of a day comes out when it is over. It is query 16 without channels.
"""

from eventide.common import Time
from eventide.datastream import DataStream
from eventide.datastream.window import TumblingEventTimeWindows
from examples.nexmark.queries.q16 import OF_EACH_RANK, RANKED, ranked
from examples.nexmark.source import Streams


def bids_by_day(streams: Streams) -> DataStream:
    days = TumblingEventTimeWindows.of(Time.days(1))
    return streams.bids.map(ranked, RANKED).window_all(days).aggregate(*OF_EACH_RANK)
