"""Query 8: people who signed in and put something up for auction within ten seconds. A window join on columns."""

from eventide.aggregates import count
from eventide.common import Time
from eventide.datastream import DataStream
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.joins import left, window
from examples.nexmark.source import Streams


def new_sellers(streams: Streams) -> DataStream:
    windows = TumblingEventTimeWindows.of(Time.seconds(10))
    sellers = streams.auctions.key_by("seller").window(windows).aggregate(count().alias("auctions"))
    pairs = streams.persons.join(sellers).where("id").equal_to("seller").window(windows)
    return pairs.select(left("id"), left("name"), window())
