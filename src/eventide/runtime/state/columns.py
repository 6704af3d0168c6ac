"""State and timers of many keys at once, in arrays: stored as those of single keys are, in the same buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from eventide.common.typeinfo import TypeInformation
from eventide.errors import StateError
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.backend import Backend, without_collection
from eventide.runtime.state.bucket import Pickled, addresses, live
from eventide.runtime.state.expiring import SUFFIX, without_times
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import (
    NO_PLACE,
    PLACES,
    Numbers,
    Rows,
    StoredTimers,
    TimerColumns,
    TimersInOrder,
    WaitingTimers,
    are_among,
)

if TYPE_CHECKING:
    import pyarrow as pa

_BUCKET_BYTES = 16_384
"""Keys come by the thousand, so fewer and larger buckets cost less than those of single keys."""

_NOTHING = np.zeros(0, np.int64)


class ColumnState(KeyedState):
    """Keyed state whose keys are named by their places among those at hand, many at once.

    Attributes:
        timers: those of event time, and of processing time.
    """

    def __init__(self, backend: Backend, max_parallelism: int, *, in_batch: bool = False) -> None:
        super().__init__(backend, max_parallelism, _BUCKET_BYTES, in_batch=in_batch)
        self.timers = [TimerArrays(self, kind, of_kind.number) for kind, of_kind in enumerate(self._timers)]
        if in_batch:
            for of_kind in self.timers:
                of_kind.all_kinds = self.timers
        self._timers = self.timers

    def places_of(self, keys: list[Any], hashes: Hashes) -> Numbers:
        """Have keys at hand, each of which is given once, with its hash; and give their places."""
        with without_collection():
            self._have(np.flatnonzero(np.bincount(addresses(hashes, self._store.count))).tolist())
            places = np.fromiter(map(self.index.get, keys, repeat(NO_PLACE)), np.int64, len(keys))
            new = np.flatnonzero(places == NO_PLACE)
            places[new] = np.arange(len(self.keys), len(self.keys) + len(new))
            self._add(list(map(keys.__getitem__, new.tolist())), hashes[new].tolist())
        return places

    def keys_at(self, places: Numbers) -> list[Any]:
        """The keys at some places."""
        return list(map(self.keys.__getitem__, places.tolist()))

    def groups(self, places: Numbers) -> Numbers:
        """The key groups of the keys at some places."""
        hashes = np.fromiter(map(self._hashes.__getitem__, places.tolist()), np.uint64, len(places))
        return ((hashes >> np.uint64(32)) % np.uint64(self._max_parallelism)).astype(np.int64)

    def get(self, name: str, keys: list[Any], type_info: TypeInformation) -> pa.Array:
        """The values of keys at hand under a name, as a column of its type.

        Raises:
            StateError: if a value that is stored is of another type.
        """
        found = list(map(self._of_name(name).get, keys))
        if Pickled in set(map(type, found)):
            found = list(map(live, found))
        try:
            return type_info.to_arrow(found)
        except Exception as error:
            raise StateError(
                f"the state {name.partition(':')[2]!r} has a value that is not of its declared type {type_info}, which "
                f"columns need: {error}. Declare the type of what was stored"
            ) from error

    def put(self, name: str, keys: list[Any], values: list[Any]) -> None:
        """Store values under a name, one for each of some keys at hand; None deletes. The last one of a key stays."""
        of_name = self._of_name(name)
        of_name.update(zip(keys, values, strict=True))
        if None in values:
            for key in [key for key in keys if of_name.get(key) is None]:
                of_name.pop(key, None)

    def _of_name(self, name: str) -> dict[Any, Any]:
        """The values of all keys at hand under a name; a time to live that an earlier program gave them is gone."""
        values, expiring = self.values[name], self.values.get(name + SUFFIX)
        if expiring:
            for key, stored in expiring.items():
                values.setdefault(key, without_times(live(stored)))
            expiring.clear()
        return values


class TimerArrays(StoredTimers):
    """The timers of one kind of a function on columns: they have no namespaces, and fire many at once.

    In batch execution, ``all_kinds`` are the timers of all kinds: from when the first of them fires on, none is set.
    """

    def __init__(self, keys: ColumnState, kind: int, number: int) -> None:
        self.number = number
        self.all_kinds: Sequence[TimerArrays] = ()
        self._keys = keys
        self._kind = kind
        self._waiting = WaitingTimers(keys.keys)
        self._firing: Rows = (_NOTHING, _NOTHING, _NOTHING)
        self._firing_until: int | None = None
        self._has_changed = False
        self._is_quiesced = False

    def register(self, places: Numbers, times: Numbers) -> None:
        """Set a timer for the key at each of some places; setting one again changes nothing."""
        if self._is_quiesced or not len(places):
            return
        numbers = np.arange(self.number + 1, self.number + 1 + len(places))
        self.number += len(places)
        self._waiting.add(0, (places.astype(PLACES).tobytes(), times.tobytes(), numbers.tobytes(), None))
        self._has_changed = self._has_changed or (self._firing_until is not None and times.min() <= self._firing_until)

    def delete(self, places: Numbers, times: Numbers) -> None:
        """Delete timers, whether they are set or not."""
        if not len(places):
            return
        self._waiting.delete(places, times)
        if len(self._firing[0]):
            stays = ~are_among(*self._firing[:2], places, times)
            self._has_changed = self._has_changed or not stays.all()
            self._firing = _at(self._firing, stays)

    def due(self, until_ms: int) -> Iterator[Rows]:
        """Fire: take out the timers at or before a time, each time at most one of each key, the earliest.

        They come in the order of their time, then of key groups, then of their numbers.
        """
        for timers in self.all_kinds:
            timers._is_quiesced = True
        self._keys.open_due(self._kind, until_ms)
        self._firing_until, self._has_changed = until_ms, True
        round_of = _NOTHING
        try:
            while True:
                if self._has_changed:
                    round_of = self._settle(until_ms)
                    self._has_changed = False
                if not len(round_of):
                    return
                end = int(np.searchsorted(round_of, round_of[0], "right"))
                now, self._firing = _at(self._firing, slice(end)), _at(self._firing, slice(end, None))
                round_of = round_of[end:]
                yield now
        finally:
            self._firing_until = None

    def next_ms(self) -> int | None:
        """The time of the earliest timer that is set, in milliseconds; None if there is none."""
        times = (self._waiting.next_ms(()), self._keys.next_of_others(self._kind))
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def count(self) -> int:
        """How many timers are set: it reads those of all keys."""
        self._keys.open_everything()
        return len(self.in_order(np.arange(len(self._keys.keys)))[0].places)

    def take_in(self, keys: list[Any], first: int, columns: tuple[TimerColumns | None, TimerColumns | None]) -> None:
        """Take note of the timers of a bucket that was read."""
        plain, _ = columns
        if plain is not None:
            self._waiting.add(first, plain)

    def in_order(self, places: Numbers) -> tuple[TimersInOrder, TimersInOrder]:
        """The timers, and none with a namespace, given the places of all keys at hand."""
        nothing = [(_NOTHING, _NOTHING, _NOTHING)]
        rows = self._waiting.rows(places, ()) or nothing
        return TimersInOrder((), rows), TimersInOrder((), nothing, has_namespaces=True)

    def clear(self) -> None:
        """Forget what is at hand."""
        self._waiting.clear()

    def _settle(self, until_ms: int) -> Numbers:
        """Have all that is due in the order in which it fires: those of a key one after the other, in rounds.

        Returns:
            the round of each of them.
        """
        rows = [self._firing, *self._waiting.take(until_ms)]
        places, times, numbers = (np.concatenate(columns) for columns in zip(*rows, strict=True))
        order = np.lexsort((numbers, times, places))
        places, times, numbers = places[order], times[order], numbers[order]
        is_first = np.append(True, places[1:] != places[:-1])[: len(places)]
        is_other = is_first | np.append(True, times[1:] != times[:-1])[: len(places)]  # not one that was set again
        places, times, numbers, is_first = places[is_other], times[is_other], numbers[is_other], is_first[is_other]
        index = np.arange(len(places))
        rounds = index - np.maximum.accumulate(np.where(is_first, index, 0))
        order = np.lexsort((numbers, self._keys.groups(places), times, rounds))
        self._firing = places[order], times[order], numbers[order]
        return rounds[order]


def _at(rows: Rows, where: Any) -> Rows:
    places, times, numbers = rows
    return places[where], times[where], numbers[where]
