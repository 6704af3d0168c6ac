"""The events as a source of splits, and as the three streams that queries begin with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eventide.common import Duration, TypeInformation, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import Source
from examples.nexmark.generator import AUCTION, AUCTIONS, BID, BIDS, PERSON, PERSONS, Kind, Recipe

if TYPE_CHECKING:
    import pyarrow as pa

TYPES = {PERSONS: PERSON, AUCTIONS: AUCTION, BIDS: BID}
_AT_ONCE = 50_000


class Events(Source):
    """The events of one kind, distributed to splits in turn: each has every n-th of them, in their order.

    A position in a split is a number of events, and what lies between two positions is made when it is read.
    """

    def __init__(self, recipe: Recipe, kind: Kind, splits: int, bounded: bool = True) -> None:
        self._recipe = recipe
        self._kind = kind
        self._splits = splits
        self._bounded = bounded

    def splits(self) -> list[str]:
        return [str(split) for split in range(self._splits)]

    def latest_position(self, split: str) -> int:
        return len(range(int(split), self._kind.count(self._recipe.events), self._splits))

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        for begin in range(start, end, _AT_ONCE):
            places = np.arange(begin, min(begin + _AT_ONCE, end))
            yield self._kind.make(self._recipe, self._kind.numbers(places * self._splits + int(split)))

    def get_produced_type(self) -> TypeInformation:
        return TYPES[self._kind]

    def is_bounded(self) -> bool:
        return self._bounded


@dataclass(frozen=True)
class Streams:
    """Input of a query: the three streams, with timestamps and watermarks, and what is known about them."""

    persons: DataStream
    auctions: DataStream
    bids: DataStream
    recipe: Recipe


def generated(env: StreamExecutionEnvironment, recipe: Recipe, splits: int, bounded: bool = True) -> Streams:
    """The events as they are made, in `splits` splits of each kind."""

    def stream(kind: Kind) -> DataStream:
        return env.from_source(Events(recipe, kind, splits, bounded), in_time(recipe), f"{kind.name}s")

    return Streams(stream(PERSONS), stream(AUCTIONS), stream(BIDS), recipe)


def in_time(recipe: Recipe) -> WatermarkStrategy:
    """When an event was, and how far the watermark stays behind: no event is late."""
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(recipe.disorder_ms))
    return bounded.with_timestamp_assigner("dateTime")
