"""Query 8: who signed in and put something up for auction within the same ten seconds. A window join."""

from eventide.aggregates import count
from eventide.common import Row, Time, Types
from eventide.datastream import DataStream
from eventide.datastream.window import TumblingEventTimeWindows
from examples.nexmark.source import Streams

NEW_SELLER = Types.ROW_NAMED(["id", "name", "window"], [Types.LONG(), Types.STRING(), Types.TIME_WINDOW()])


def new_sellers(streams: Streams) -> DataStream:
    windows = TumblingEventTimeWindows.of(Time.seconds(10))
    sellers = streams.auctions.key_by("seller").window(windows).aggregate(count().alias("auctions"))
    pairs = streams.persons.join(sellers).where(lambda person: person.id, Types.LONG())
    return (
        pairs.equal_to(lambda seller: seller.seller, Types.LONG())
        .window(windows)
        .apply(lambda person, seller: Row(id=person.id, name=person.name, window=seller.window), NEW_SELLER)
    )
