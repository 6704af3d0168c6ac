"""Query 9: the winning bid of each auction. Two streams, state, and timers of event time.

The highest bid wins of those that were made while the auction was open, and of equal ones the earliest. When the
watermark has reached the time at which the auction expires, nothing can change any more: the winner comes out, and the
auction is forgotten.

A bid may come before its auction. When the watermark has reached the time of such a bid, the auction can no longer have
been open then, and the bid is forgotten too. So the state holds the auctions that are open, and little else.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from eventide.common import Row, Types
from eventide.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext
from eventide.datastream.state import ListStateDescriptor, ValueStateDescriptor
from examples.nexmark.generator import AUCTION, BID
from examples.nexmark.source import Streams

WINNER = Types.ROW_NAMED(
    [*AUCTION.field_names, "auction", "bidder", "price", "bid_dateTime", "bid_extra"],
    [
        *AUCTION.field_types,
        *(Types.LONG(), Types.LONG(), Types.LONG(), Types.SQL_TIMESTAMP(), Types.STRING()),
    ],
)
Winner = Row(*WINNER.field_names)


class Auctioneer(KeyedCoProcessFunction):
    """Keeps an auction with the best bid so far, or the bids that came before it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.auction = runtime_context.get_state(ValueStateDescriptor("auction", AUCTION))
        self.best = runtime_context.get_state(ValueStateDescriptor("best", BID))
        self.early = runtime_context.get_list_state(ListStateDescriptor("early", BID))

    def process_element1(self, value: Row, ctx: KeyedCoProcessFunction.Context) -> None:
        self.auction.update(value)
        ctx.timer_service().register_event_time_timer(milliseconds(value.expires))
        for bid in self.early.get():
            self.take(value, bid)
        self.early.clear()

    def process_element2(self, value: Row, ctx: KeyedCoProcessFunction.Context) -> None:
        auction = self.auction.value()
        if auction is not None:
            self.take(auction, value)
        else:
            self.early.add(value)
            ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def take(self, auction: Row, bid: Row) -> None:
        if auction.dateTime <= bid.dateTime <= auction.expires:
            best = self.best.value()
            if best is None or rank(bid) < rank(best):
                self.best.update(bid)

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Row]:
        auction, best = self.auction.value(), self.best.value()
        if auction is None:
            self.early.update([bid for bid in self.early.get() if milliseconds(bid.dateTime) > timestamp])
        elif timestamp == milliseconds(auction.expires):
            if best is not None:
                yield Winner(*auction, best.auction, best.bidder, best.price, best.dateTime, best.extra)
            self.auction.clear()
            self.best.clear()


def rank(bid: Row) -> tuple[int, datetime, str]:
    """The rank of a bid, where lower is better; the last part only makes the order complete."""
    return -bid.price, bid.dateTime, bid.extra


def milliseconds(moment: datetime) -> int:
    """A point in time as timers have it."""
    return (moment - datetime(1970, 1, 1)) // timedelta(milliseconds=1)  # noqa: DTZ001 - elements have naive ones, in UTC


def winning_bids(streams: Streams) -> DataStream:
    return streams.auctions.key_by("id").connect(streams.bids.key_by("auction")).process(Auctioneer(), WINNER)
