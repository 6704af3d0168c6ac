"""Query 3: people who sell in category 10, and live in Oregon, Idaho or California. A join on columns.

A person and an auction may come in any order, so each waits for the other. As no time is in the question, both are kept
for ever.
"""

from eventide.datastream import DataStream
from eventide.joins import left, right
from examples.nexmark.source import Streams


def local_sellers(streams: Streams) -> DataStream:
    persons = streams.persons.filter(lambda person: person.state in {"OR", "ID", "CA"})
    auctions = streams.auctions.filter(lambda auction: auction.category == 10)
    joined = persons.key_by("id").interval_join(auctions.key_by("seller")).at_any_time()
    return joined.select(left("name"), left("city"), left("state"), right("id"))
