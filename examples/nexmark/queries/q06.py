"""Query 6: the average price of the last ten auctions that a seller has sold. State, ordered by event time.

With every auction that closes, the new average of its seller comes out; the last one of each seller counts. The winners
of several subtasks reach a seller in any order, so the last ten are those that closed last, not those that came last.
"""

from eventide.common import Row, Types
from eventide.datastream import DataStream, MapFunction, RuntimeContext
from eventide.datastream.state import ListStateDescriptor
from examples.nexmark.queries.q09 import winning_bids
from examples.nexmark.source import Streams

SALE = Types.ROW_NAMED(["expires", "id", "price"], [Types.SQL_TIMESTAMP(), Types.LONG(), Types.LONG()])
AVERAGE = Types.ROW_NAMED(["seller", "final"], [Types.LONG(), Types.LONG()])


class LastTen(MapFunction):
    """Keeps the last ten sales of a seller, in the order of their time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sales = runtime_context.get_list_state(ListStateDescriptor("sales", SALE))

    def map(self, value: Row) -> Row:
        sale = Row(expires=value.expires, id=value.id, price=value.price)
        last = sorted([*self.sales.get(), sale], key=lambda sale: (sale.expires, sale.id))[-10:]
        self.sales.update(last)
        return Row(seller=value.seller, final=sum(sale.price for sale in last) // len(last))


def average_of_last_ten(streams: Streams) -> DataStream:
    return winning_bids(streams).key_by("seller").map(LastTen(), AVERAGE)
