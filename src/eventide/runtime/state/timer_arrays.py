"""Timers of many keys at once, in arrays: stored as those of single keys are."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from eventide.runtime.elements.ordering import are_first, order_by
from eventide.runtime.state.timers import (
    PLACES,
    LoadedKeys,
    Numbers,
    TimerColumns,
    TimerRows,
    WaitingTimers,
    are_among,
    together,
)

_NOTHING = np.zeros(0, np.int64)


class KeysInPlaces(LoadedKeys, Protocol):
    """The keys that have timers, where what has changed of them is told."""

    def touch(self, places: Numbers) -> None:
        """Take note that what the keys at some places have may have changed."""


class TimerArrays:
    """The timers of one kind of a function on columns: they have no namespaces, and fire many at once."""

    def __init__(self, keys: KeysInPlaces, kind: int, number: int) -> None:
        self.number = number
        self._keys = keys
        self._kind = kind
        self._waiting = WaitingTimers([])
        self._firing: TimerRows = (_NOTHING, _NOTHING, _NOTHING)
        self._firing_until: int | None = None
        self._has_changed = False

    def register(self, places: Numbers, times: Numbers) -> None:
        """Set a timer for the key at each of some places; setting one again changes nothing."""
        if self._keys.is_quiesced or not len(places):
            return
        numbers = np.arange(self.number + 1, self.number + 1 + len(places))
        self.number += len(places)
        self._keys.touch(places)
        self._waiting.add((places.astype(PLACES).tobytes(), times.tobytes(), numbers.tobytes(), None))
        self._has_changed = self._has_changed or (self._firing_until is not None and times.min() <= self._firing_until)

    def delete(self, places: Numbers, times: Numbers) -> None:
        """Delete timers, whether they are set or not."""
        if not len(places):
            return
        self._keys.touch(places)
        self._waiting.delete(places, times)
        if len(self._firing[0]):
            stays = ~are_among(*self._firing[:2], places, times)
            self._has_changed = self._has_changed or not stays.all()
            self._firing = _at(self._firing, stays)

    def due(self, until_ms: int) -> Iterator[TimerRows]:
        """Fire: take out the timers at or before a time, each time at most one of each key, the earliest.

        They come in the order of their time, then of key groups, then of their numbers.
        """
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
        places, times, _ = together(self._waiting.rows(()))
        return len({*zip(places.tolist(), times.tolist(), strict=True)})

    def take_in(self, *columns: TimerColumns | None) -> None:
        """Take note of timers whose keys have places among the loaded ones."""
        for of_keys in columns:
            if of_keys is not None:
                self._waiting.add(of_keys)

    def rows(self) -> list[tuple[TimerRows, Sequence[Hashable] | None]]:
        """The timers of the loaded keys; one that was set again is there twice."""
        return [(together(self._waiting.rows(())), None)]

    def clear(self) -> None:
        """Forget all keys that were loaded."""
        self._waiting.clear()

    def _settle(self, until_ms: int) -> Numbers:
        """Sort all due timers in the order in which they fire: the timers of a key one after the other, in rounds.

        Returns:
            the round of each of them.
        """
        places, times, numbers = together([self._firing, self._waiting.take(until_ms)])
        self._keys.touch(places)
        order = order_by(places, times, numbers)
        places, times, numbers = places[order], times[order], numbers[order]
        is_first, is_other = are_first(places), are_first(places, times)  # not one that was set again
        places, times, numbers, is_first = places[is_other], times[is_other], numbers[is_other], is_first[is_other]
        index = np.arange(len(places))
        rounds = index - np.maximum.accumulate(np.where(is_first, index, 0))
        order = order_by(rounds, times, self._keys.groups(places), numbers)
        self._firing = places[order], times[order], numbers[order]
        return rounds[order]


def _at(rows: TimerRows, where: Any) -> TimerRows:
    places, times, numbers = rows
    return places[where], times[where], numbers[where]
