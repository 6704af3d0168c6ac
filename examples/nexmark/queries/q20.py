"""Query 20: every bid for an auction of category 10, with that auction. An interval join.

SQL keeps all auctions and all bids for ever, in case one of the other comes. But a bid is never much earlier than its
auction, nor much later, and an interval join that says so keeps no more than it needs.
"""

from collections.abc import Iterator

from eventide.common import Row, Time, Types
from eventide.datastream import DataStream
from eventide.datastream.functions import ProcessJoinFunction
from examples.nexmark.generator import AUCTION, BID
from examples.nexmark.source import Streams

OF_THE_BID = ["auction", "bidder", "price", "channel", "url", "bid_dateTime", "bid_extra"]
OF_THE_AUCTION = ["itemName", "description", "initialBid", "reserve", "auction_dateTime"]
OF_THE_AUCTION += ["expires", "seller", "category", "auction_extra"]
BID_WITH_AUCTION = Types.ROW_NAMED([*OF_THE_BID, *OF_THE_AUCTION], [*BID.field_types, *AUCTION.field_types[1:]])
BidWithAuction = Row(*BID_WITH_AUCTION.field_names)


class Together(ProcessJoinFunction):
    def process_element(self, left: Row, right: Row, ctx: ProcessJoinFunction.Context) -> Iterator[Row]:
        _, *auction = left
        yield BidWithAuction(*right, *auction)


def bids_with_auctions(streams: Streams) -> DataStream:
    auctions = streams.auctions.filter(lambda auction: auction.category == 10).key_by("id")
    earliest, latest = Time.milliseconds(-streams.recipe.before_ms), Time.milliseconds(streams.recipe.after_ms)
    joined = auctions.interval_join(streams.bids.key_by("auction")).between(earliest, latest)
    return joined.process(Together(), BID_WITH_AUCTION)
