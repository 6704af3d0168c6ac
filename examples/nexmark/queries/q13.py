"""Query 13: every bid with what a table says about its auction. A function that brings a table along."""

from collections.abc import Iterator

from eventide.common import Row, Types
from eventide.datastream import DataStream, FlatMapFunction, RuntimeContext
from examples.nexmark.source import Streams

ROWS = 10_000
TOLD = Types.ROW_NAMED(
    ["auction", "bidder", "price", "dateTime", "value"],
    [Types.LONG(), Types.LONG(), Types.LONG(), Types.SQL_TIMESTAMP(), Types.STRING()],
)
Told = Row(*TOLD.field_names)


def side_input() -> dict[int, str]:
    """The table: it never changes."""
    return {key: f"value-{key * 7919 % ROWS}" for key in range(ROWS)}


class LooksUp(FlatMapFunction):
    """Reads the table once, where it runs."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.table = side_input()

    def flat_map(self, value: Row) -> Iterator[Row]:
        found = self.table.get(value.auction % ROWS)
        if found is not None:
            yield Told(value.auction, value.bidder, value.price, value.dateTime, found)


def with_side_input(streams: Streams) -> DataStream:
    return streams.bids.flat_map(LooksUp(), TOLD)
