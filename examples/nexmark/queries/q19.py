"""Query 19: the ten highest bids of each auction, with their ranks. State that is kept in order.

With a bid that is one of the ten highest so far, every rank that changes comes out, and takes the place of what the
same rank of the auction was before. Of equal prices, the earliest bid ranks first.
"""

from bisect import bisect
from collections.abc import Iterator

from eventide.common import Row, Types
from eventide.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from eventide.datastream.state import ListStateDescriptor
from examples.nexmark.generator import BID
from examples.nexmark.queries.q09 import rank
from examples.nexmark.source import Streams

RANKED = Types.ROW_NAMED([*BID.field_names, "rank_number"], [*BID.field_types, Types.LONG()])
Ranked = Row(*RANKED.field_names)


class TopTen(KeyedProcessFunction):
    """Keeps the ten highest bids of an auction, the highest first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.top = runtime_context.get_list_state(ListStateDescriptor("top", BID))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        top = list(self.top.get())
        place = bisect(top, rank(value), key=rank)
        if place < 10:
            top = [*top[:place], value, *top[place:9]]
            self.top.update(top)
            for number, bid in enumerate(top[place:], place + 1):
                yield Ranked(*bid, number)


def top_ten_bids(streams: Streams) -> DataStream:
    return streams.bids.key_by("auction").process(TopTen(), RANKED)
