"""Query 4: the average price of what was sold, by category. A rolling aggregation of winning bids.

With every auction that closes, the new average of its category comes out; the last one of each category counts.
"""

from eventide.common import Row, Types
from eventide.datastream import DataStream
from examples.nexmark.queries.q09 import winning_bids
from examples.nexmark.source import Streams

SALES = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
AVERAGE = Types.ROW_NAMED(["category", "final"], [Types.LONG(), Types.LONG()])


def average_prices(streams: Streams) -> DataStream:
    sold = winning_bids(streams).map(lambda won: (won.category, won.price, 1), SALES)
    sums = sold.key_by(lambda sales: sales[0], Types.LONG()).reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))
    return sums.map(lambda sales: Row(category=sales[0], final=sales[1] // sales[2]), AVERAGE)
