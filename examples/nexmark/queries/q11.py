"""Query 11: how many bids a person makes in a session, which ends when she makes none for ten seconds."""

from eventide.aggregates import count
from eventide.common import Time
from eventide.datastream import DataStream
from eventide.datastream.window import EventTimeSessionWindows
from examples.nexmark.source import Streams


def bids_of_a_session(streams: Streams) -> DataStream:
    sessions = streams.bids.key_by("bidder").window(EventTimeSessionWindows.with_gap(Time.seconds(10)))
    return sessions.aggregate(count().alias("bid_count"))
