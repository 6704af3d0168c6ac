"""Query 2: the bids for a few auctions. A filter."""

from eventide.common import Row, Types
from eventide.datastream import DataStream
from examples.nexmark.source import Streams

PRICE = Types.ROW_NAMED(["auction", "price"], [Types.LONG(), Types.LONG()])
Price = Row(*PRICE.field_names)


def of_some_auctions(streams: Streams) -> DataStream:
    some = streams.bids.filter(lambda bid: bid.auction % 123 == 0)
    return some.map(lambda bid: Price(bid.auction, bid.price), PRICE)
