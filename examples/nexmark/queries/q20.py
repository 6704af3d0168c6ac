"""Query 20: every bid for an auction of category 10, with that auction. An interval join on columns.

SQL keeps all auctions and all bids for ever, in case one of the other comes. But a bid is never much earlier than its
auction, nor much later, and an interval join that says so keeps no more than it needs.
"""

from eventide.common import Time
from eventide.datastream import DataStream
from eventide.joins import left, right
from examples.nexmark.source import Streams

OF_THE_BID = [
    *(right(name) for name in ("auction", "bidder", "price", "channel", "url")),
    right("dateTime").alias("bid_dateTime"),
    right("extra").alias("bid_extra"),
]
OF_THE_AUCTION = [
    *(left(name) for name in ("itemName", "description", "initialBid", "reserve")),
    left("dateTime").alias("auction_dateTime"),
    *(left(name) for name in ("expires", "seller", "category")),
    left("extra").alias("auction_extra"),
]


def bids_with_auctions(streams: Streams) -> DataStream:
    auctions = streams.auctions.filter(lambda auction: auction.category == 10).key_by("id")
    earliest, latest = Time.milliseconds(-streams.recipe.before_ms), Time.milliseconds(streams.recipe.after_ms)
    joined = auctions.interval_join(streams.bids.key_by("auction")).between(earliest, latest)
    return joined.select(*OF_THE_BID, *OF_THE_AUCTION)
