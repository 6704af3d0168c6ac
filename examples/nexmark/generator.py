"""The events of an auction house: persons sign in, put things up for auction, and bid.

Of 50 events, one is a person, three are auctions, 46 are bids, in this order. Every event has a number, and all that it
says follows from that number: so any part of the stream can be made by itself, in any order, and is always the same.

Things are uneven, as in life: half of the bids are for one auction of the last hundred, three bids of four are by one
person of the last hundred, three auctions of four are by one seller. Some bids and auctions name a person or an auction
that comes a few events later, as if the two had changed places on the way.

Event time rises with the numbers, at `rate` events a second; but one event of ten happened earlier than its place
says, up to a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common import Types

PERSON = Types.ROW_NAMED(
    ["id", "name", "emailAddress", "creditCard", "city", "state", "dateTime", "extra"],
    [Types.LONG(), *[Types.STRING()] * 5, Types.SQL_TIMESTAMP(), Types.STRING()],
)
AUCTION = Types.ROW_NAMED(
    [
        *("id", "itemName", "description", "initialBid", "reserve"),
        *("dateTime", "expires", "seller", "category", "extra"),
    ],
    [
        *(Types.LONG(), Types.STRING(), Types.STRING(), Types.LONG(), Types.LONG()),
        *(Types.SQL_TIMESTAMP(), Types.SQL_TIMESTAMP(), Types.LONG(), Types.LONG(), Types.STRING()),
    ],
)
BID = Types.ROW_NAMED(
    ["auction", "bidder", "price", "channel", "url", "dateTime", "extra"],
    [*[Types.LONG()] * 3, *[Types.STRING()] * 2, Types.SQL_TIMESTAMP(), Types.STRING()],
)

FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1_000, 10, 5
OPEN_AUCTIONS, ACTIVE_PERSONS, LEAD = 100, 1_000, 10
"""How many auctions, and persons, back from the newest an event may name, and how many ahead of it."""

START_MS = 1_704_067_200_000
"""When it begins: with the year 2024."""

_EVENTS, _PERSONS, _AUCTIONS, _BIDS = 50, 1, 3, 46
_HOT_OF = 100
_STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
_CITIES = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
]
_FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
_LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
_HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
_CHANNELS = 10_000


@dataclass(frozen=True)
class Recipe:
    """Recipe of the events.

    Attributes:
        events: how many, of all kinds.
        rate: events in a second of event time.
        disorder_ms: how much earlier than its place says an event may have happened.
    """

    events: int
    rate: int = 10_000
    disorder_ms: int = 2_000

    def time_ms(self, numbers: np.ndarray) -> np.ndarray:
        """When events happened, in milliseconds since the epoch."""
        delay = _below(numbers, "delay", self.disorder_ms + 1) * (_below(numbers, "is delayed", 10) == 0)
        return START_MS + numbers * 1_000 // self.rate - delay

    @property
    def before_ms(self) -> int:
        """How much earlier than its auction a bid may be at most."""
        return self._lasts_ms(LEAD)

    @property
    def after_ms(self) -> int:
        """How much later than its auction a bid may be at most."""
        return self._lasts_ms(OPEN_AUCTIONS)

    @property
    def auction_ms(self) -> int:
        """How long an auction is open on average: until as many others were put up as are open at a time."""
        return OPEN_AUCTIONS * _EVENTS // _AUCTIONS * 1_000 // self.rate

    def _lasts_ms(self, auctions: int) -> int:
        """The longest time in which `auctions` auctions are put up, with the events around them."""
        return (auctions // _AUCTIONS + 2) * _EVENTS * 1_000 // self.rate + self.disorder_ms + 1


@dataclass(frozen=True)
class Kind:
    """A kind of events.

    Attributes:
        name: of one of them.
        of_50: how many of 50 events are of this kind.
        first: the place of the first of them among the 50.
        make: makes events, by their numbers, as columns.
    """

    name: str
    of_50: int
    first: int
    make: Callable[[Recipe, np.ndarray], pa.RecordBatch]

    def count(self, events: int) -> int:
        """How many there are among the first `events` events of all kinds."""
        return events // _EVENTS * self.of_50 + min(max(events % _EVENTS - self.first, 0), self.of_50)

    def numbers(self, which: np.ndarray) -> np.ndarray:
        """The numbers, among all events, of the n-th of this kind.

        >>> BIDS.numbers(np.array([0, 45, 46]))
        array([ 4, 49, 54])
        """
        return which // self.of_50 * _EVENTS + self.first + which % self.of_50


def _persons(recipe: Recipe, numbers: np.ndarray) -> pa.RecordBatch:
    first, last = _of(_FIRST_NAMES, numbers, "first name"), _of(_LAST_NAMES, numbers, "last name")
    provider = pc.binary_join_element_wise(_text(numbers, "provider", 5), "com", ".")
    card = pc.binary_join_element_wise(*[_of(_DIGITS, numbers, f"card {i}") for i in range(4)], " ")
    columns = [
        pa.array(_last_person(numbers) + FIRST_ID),
        pc.binary_join_element_wise(first, last, " "),
        pc.binary_join_element_wise(_text(numbers, "mail", 7), provider, "@"),
        card,
        _of(_CITIES, numbers, "city"),
        _of(_STATES, numbers, "state"),
        _times(recipe.time_ms(numbers)),
        _text(numbers, "extra", 110),
    ]
    return pa.RecordBatch.from_arrays(columns, PERSON.field_names)


def _auctions(recipe: Recipe, numbers: np.ndarray) -> pa.RecordBatch:
    time, initial = recipe.time_ms(numbers), _prices(numbers, "initial bid")
    columns = [
        pa.array(_last_auction(numbers) + FIRST_ID),
        _text(numbers, "item", 20),
        _text(numbers, "description", 100),
        pa.array(initial),
        pa.array(initial + _prices(numbers, "reserve")),
        _times(time),
        _times(time + 1 + _below(numbers, "length", max(2 * recipe.auction_ms, 1))),
        pa.array(_some_person(numbers, "seller", 4, place=0)),
        pa.array(FIRST_CATEGORY + _below(numbers, "category", CATEGORIES)),
        _text(numbers, "extra", 320),
    ]
    return pa.RecordBatch.from_arrays(columns, AUCTION.field_names)


def _bids(recipe: Recipe, numbers: np.ndarray) -> pa.RecordBatch:
    newest = _last_auction(numbers)
    oldest = np.maximum(newest - OPEN_AUCTIONS, 0)
    some = oldest + _below(numbers, "auction", newest - oldest + 1 + LEAD)
    auction = np.where(_below(numbers, "hot auction", 2) > 0, newest // _HOT_OF * _HOT_OF, some)
    channel = np.where(
        _below(numbers, "hot channel", 2) > 0,
        _below(numbers, "which hot channel", len(_HOT_CHANNELS)),
        len(_HOT_CHANNELS) + _below(numbers, "channel", _CHANNELS),
    )
    columns = [
        pa.array(auction + FIRST_ID),
        pa.array(_some_person(numbers, "bidder", 4, place=1)),
        pa.array(_prices(numbers, "price")),
        _CHANNEL_NAMES.take(pa.array(channel)),
        _URLS.take(pa.array(channel)),
        _times(recipe.time_ms(numbers)),
        _text(numbers, "extra", 68),
    ]
    return pa.RecordBatch.from_arrays(columns, BID.field_names)


def _last_person(numbers: np.ndarray) -> np.ndarray:
    """The person that was the newest when an event came, counted from 0; of a person, itself."""
    return numbers // _EVENTS


def _last_auction(numbers: np.ndarray) -> np.ndarray:
    """The auction that was the newest when an event came, counted from 0; of an auction, itself."""
    return numbers // _EVENTS * _AUCTIONS + np.clip(numbers % _EVENTS - _PERSONS, -1, _AUCTIONS - 1)


def _some_person(numbers: np.ndarray, role: str, one_of: int, place: int) -> np.ndarray:
    """The id of the one hot person of the last hundred; or, one time of `one_of`, of somebody who is active."""
    known = _last_person(numbers) + 1
    active = np.minimum(known, ACTIVE_PERSONS)
    some = known - active + _below(numbers, role, active + LEAD)
    hot = (known - 1) // _HOT_OF * _HOT_OF + place
    return FIRST_ID + np.where(_below(numbers, f"hot {role}", one_of) > 0, hot, some)


def _prices(numbers: np.ndarray, what: str) -> np.ndarray:
    """Between 1 and a million dollars, in cents; as many below 1,000 as above."""
    return np.round(100 * 10 ** (6 * (_drawn(numbers, what) / 2**64))).astype(np.int64)


def _times(milliseconds: np.ndarray) -> pa.Array:
    return pa.array(milliseconds * 1_000).view(pa.timestamp("us", "UTC"))


def _of(words: list[str] | pa.Array, numbers: np.ndarray, what: str) -> pa.Array:
    return pa.array(words).take(pa.array(_below(numbers, what, len(words))))


def _text(numbers: np.ndarray, what: str, length: int) -> pa.Array:
    """Letters that mean nothing: a part of a long text, for each event from another place on."""
    begins = _below(numbers, what, len(_LETTERS) - length)
    letters = _LETTERS[begins[:, None] + np.arange(length)]
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * length
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))


def _below(numbers: np.ndarray, what: str, limit: int | np.ndarray) -> np.ndarray:
    """A number from 0 up to a limit, for each event."""
    return (_drawn(numbers, what) % np.asarray(limit).astype(np.uint64)).astype(np.int64)


def _drawn(numbers: np.ndarray, what: str) -> np.ndarray:
    """A random number of 64 bits for each event and purpose, always the same (SplitMix64)."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(crc32(what.encode()) << 16)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
    return mixed ^ mixed >> np.uint64(31)


_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)[_below(np.arange(100_000), "letters", 26)]
_DIGITS = pa.array([f"{i:04}" for i in range(10_000)])
_CHANNEL_NAMES = pa.array(_HOT_CHANNELS + [f"channel-{i}" for i in range(_CHANNELS)])


def _urls(channels: np.ndarray) -> pa.Array:
    """An address in three directories for each channel; nine of ten say the id of a channel that is not hot."""
    site, directories = "https://www.nexmark.com", [_text(channels, f"directory {i}", 5) for i in range(3)]
    items = pc.binary_join_element_wise(site, *directories, "item.htm?query=1", "/")
    named = (channels >= len(_HOT_CHANNELS)) & (_below(channels, "names its channel", 10) > 0)
    ids = pa.array(_below(channels, "channel id", 2**31)).cast(pa.string())
    return pc.if_else(pa.array(named), pc.binary_join_element_wise(items, ids, "&channel_id="), items)


_URLS = _urls(np.arange(len(_CHANNEL_NAMES)))

PERSONS = Kind("person", _PERSONS, 0, _persons)
AUCTIONS = Kind("auction", _AUCTIONS, _PERSONS, _auctions)
BIDS = Kind("bid", _BIDS, _PERSONS + _AUCTIONS, _bids)
KINDS = (PERSONS, AUCTIONS, BIDS)
