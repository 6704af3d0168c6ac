"""Query 1: every bid with its price in euros. A function of each element."""

from decimal import Decimal

from eventide.common import Row, Types
from eventide.datastream import DataStream
from examples.nexmark.source import Streams

DOLLAR_IN_EUROS = Decimal("0.908")
BID_IN_EUROS = Types.ROW_NAMED(
    ["auction", "bidder", "price", "dateTime", "extra"],
    [Types.LONG(), Types.LONG(), Types.BIG_DEC(23, 3), Types.SQL_TIMESTAMP(), Types.STRING()],
)
BidInEuros = Row(*BID_IN_EUROS.field_names)


def in_euros(streams: Streams) -> DataStream:
    return streams.bids.map(
        lambda bid: BidInEuros(bid.auction, bid.bidder, DOLLAR_IN_EUROS * bid.price, bid.dateTime, bid.extra),
        BID_IN_EUROS,
    )
