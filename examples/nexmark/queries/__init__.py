"""The queries, each in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eventide.common import Row
from eventide.datastream import DataStream
from eventide.datastream.connectors import Sink
from examples.nexmark.generator import AUCTIONS, BIDS, PERSONS, Kind
from examples.nexmark.queries.q00 import every_bid
from examples.nexmark.queries.q01 import in_euros
from examples.nexmark.queries.q02 import of_some_auctions
from examples.nexmark.queries.q03 import local_sellers
from examples.nexmark.queries.q04 import average_prices
from examples.nexmark.queries.q05 import hot_auctions
from examples.nexmark.queries.q06 import average_of_last_ten
from examples.nexmark.queries.q07 import highest_bids
from examples.nexmark.queries.q08 import new_sellers
from examples.nexmark.queries.q09 import winning_bids
from examples.nexmark.queries.q10 import by_minute, files_by_minute
from examples.nexmark.queries.q11 import bids_of_a_session
from examples.nexmark.queries.q12 import bids_by_the_clock
from examples.nexmark.queries.q13 import with_side_input
from examples.nexmark.queries.q14 import with_calculations
from examples.nexmark.queries.q15 import bids_by_day
from examples.nexmark.queries.q16 import channels_by_day
from examples.nexmark.queries.q17 import auctions_by_day
from examples.nexmark.queries.q18 import last_bids
from examples.nexmark.queries.q19 import top_ten_bids
from examples.nexmark.queries.q20 import bids_with_auctions
from examples.nexmark.queries.q21 import with_channel_ids
from examples.nexmark.queries.q22 import with_directories
from examples.nexmark.source import Streams


@dataclass(frozen=True)
class Query:
    """A query of Nexmark.

    Attributes:
        title: its question.
        program: makes the stream of its results.
        reads: the kinds of events that it is about.
        replaces_by: the fields that say which result takes the place of which; none if every result stays.
        sink: makes the sink that the query is about, which writes below a folder; None if any sink will do.
    """

    title: str
    program: Callable[[Streams], DataStream]
    reads: tuple[Kind, ...] = (BIDS,)
    replaces_by: tuple[str, ...] = ()
    sink: Callable[[str], Sink] | None = None

    def at_the_end(self, results: Iterable[Row]) -> list[Row]:
        """The final results: all of them, or those that no later one has replaced."""
        if not self.replaces_by:
            return list(results)
        return list({tuple(row[field] for field in self.replaces_by): row for row in results}.values())


QUERIES: dict[int, Query] = {
    0: Query("every bid", every_bid),
    1: Query("prices in euros", in_euros),
    2: Query("bids for some auctions", of_some_auctions),
    3: Query("people who sell nearby", local_sellers, (PERSONS, AUCTIONS)),
    4: Query("average price by category", average_prices, (AUCTIONS, BIDS), ("category",)),
    5: Query("auctions with the most bids", hot_auctions),
    6: Query("average price of a seller's last ten", average_of_last_ten, (AUCTIONS, BIDS), ("seller",)),
    7: Query("highest bids", highest_bids),
    8: Query("new sellers", new_sellers, (PERSONS, AUCTIONS)),
    9: Query("winning bids", winning_bids, (AUCTIONS, BIDS)),
    10: Query("bids in files by minute", by_minute, sink=files_by_minute),
    11: Query("bids of a session", bids_of_a_session),
    12: Query("bids by the clock", bids_by_the_clock),
    13: Query("bids with a side input", with_side_input),
    14: Query("large bids, calculated", with_calculations),
    15: Query("bids by day", bids_by_day),
    16: Query("channels by day", channels_by_day),
    17: Query("auctions by day", auctions_by_day),
    18: Query("last bid of each bidder", last_bids, replaces_by=("bidder", "auction")),
    19: Query("ten highest bids of each auction", top_ten_bids, replaces_by=("auction", "rank_number")),
    20: Query("bids with their auction", bids_with_auctions, (AUCTIONS, BIDS)),
    21: Query("bids with a channel id", with_channel_ids),
    22: Query("bids with directories", with_directories),
}
"""By their numbers in Nexmark."""
