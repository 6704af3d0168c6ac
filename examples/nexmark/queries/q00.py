"""Query 0: every bid, as it is. What reading and writing cost, before there is anything to do."""

from eventide.datastream import DataStream
from examples.nexmark.source import Streams


def every_bid(streams: Streams) -> DataStream:
    return streams.bids
