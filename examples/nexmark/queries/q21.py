"""Query 21: bids with the id of their channel, which is known or stands in the address. A regular expression."""

import re
from collections.abc import Iterator

from eventide.common import Row, Types
from eventide.datastream import DataStream
from examples.nexmark.source import Streams

ON_CHANNEL = Types.ROW_NAMED(
    ["auction", "bidder", "price", "channel", "channel_id"],
    [Types.LONG(), Types.LONG(), Types.LONG(), Types.STRING(), Types.STRING()],
)
OnChannel = Row(*ON_CHANNEL.field_names)
ID_IN_URL = re.compile("(?:&|^)channel_id=([^&]*)")


def channel_id(bid: Row) -> str | None:
    """Return the id of the channel of a bid; None if nothing tells it."""
    match bid.channel.lower():
        case "apple":
            return "0"
        case "google":
            return "1"
        case "facebook":
            return "2"
        case "baidu":
            return "3"
    found = ID_IN_URL.search(bid.url)
    return found.group(1) if found else None


def with_known_channel(bid: Row) -> Iterator[Row]:
    found = channel_id(bid)
    if found is not None:
        yield OnChannel(bid.auction, bid.bidder, bid.price, bid.channel, found)


def with_channel_ids(streams: Streams) -> DataStream:
    return streams.bids.flat_map(with_known_channel, ON_CHANNEL)
