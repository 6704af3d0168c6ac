"""Query 3: people who sell in category 10, and live in Oregon, Idaho or California. Two streams and state.

A person and an auction may come in any order, so each waits for the other. As no time is in the question, both are kept
for ever.
"""

from collections.abc import Iterator

from eventide.common import Row, Types
from eventide.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext
from eventide.datastream.state import ListStateDescriptor, ValueStateDescriptor
from examples.nexmark.generator import PERSON
from examples.nexmark.source import Streams

OFFER = Types.ROW_NAMED(["name", "city", "state", "id"], [Types.STRING(), Types.STRING(), Types.STRING(), Types.LONG()])
Offer = Row(*OFFER.field_names)


class Sells(KeyedCoProcessFunction):
    """Keeps a person, and the numbers of the auctions that came before her."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.person = runtime_context.get_state(ValueStateDescriptor("person", PERSON))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_element1(self, value: Row, ctx: KeyedCoProcessFunction.Context) -> Iterator[Row]:
        self.person.update(value)
        for auction in self.waiting.get():
            yield Offer(value.name, value.city, value.state, auction)
        self.waiting.clear()

    def process_element2(self, value: Row, ctx: KeyedCoProcessFunction.Context) -> Iterator[Row]:
        person = self.person.value()
        if person is None:
            self.waiting.add(value.id)
        else:
            yield Offer(person.name, person.city, person.state, value.id)


def local_sellers(streams: Streams) -> DataStream:
    persons = streams.persons.filter(lambda person: person.state in {"OR", "ID", "CA"})
    auctions = streams.auctions.filter(lambda auction: auction.category == 10)
    return persons.key_by("id").connect(auctions.key_by("seller")).process(Sells(), OFFER)
