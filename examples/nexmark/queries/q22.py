"""Query 22: bids with the directories of their address. A text, split into parts."""

from eventide.common import Row, Types
from eventide.datastream import DataStream
from examples.nexmark.source import Streams

IN_DIRECTORIES = Types.ROW_NAMED(
    ["auction", "bidder", "price", "channel", "dir1", "dir2", "dir3"], [*[Types.LONG()] * 3, *[Types.STRING()] * 4]
)
InDirectories = Row(*IN_DIRECTORIES.field_names)


def in_directories(bid: Row) -> Row:
    parts = bid.url.split("/")
    return InDirectories(bid.auction, bid.bidder, bid.price, bid.channel, parts[3], parts[4], parts[5])


def with_directories(streams: Streams) -> DataStream:
    return streams.bids.map(in_directories, IN_DIRECTORIES)
