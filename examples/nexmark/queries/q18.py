"""Query 18: the last bid of each person for each auction. A rolling reduction.

With every bid, the last one so far of its person and auction comes out, and takes the place of the one before. Of bids
of the same millisecond, the highest counts as the last.
"""

from datetime import datetime

from eventide.common import Row
from eventide.datastream import DataStream
from examples.nexmark.source import Streams


def order(bid: Row) -> tuple[datetime, int, str]:
    """The order of a bid, where higher is later; the last part only makes the order complete."""
    return bid.dateTime, bid.price, bid.extra


def last_bids(streams: Streams) -> DataStream:
    return streams.bids.key_by("bidder", "auction").reduce(lambda a, b: max(a, b, key=order))
