"""Entries in the stored state of a key: values by name and namespace, and timers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from eventide.common.time_window import TimeWindow
from eventide.runtime.joins.interval import ELEMENTS
from eventide.runtime.state.bucket import KINDS_OF_TIME, Bucket, Column
from eventide.runtime.state.expiring import SUFFIX, without_times
from eventide.runtime.state.key_context import FUNCTION_STATE
from eventide.runtime.state.timers import timers_of
from eventide.why.times import moment

_TIMERS = ("timer of event time", "timer of processing time")
_SESSIONS = "windows"
_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Entry:
    """A value or a timer of a key.

    Attributes:
        name: what it is kept under; of a timer, which kind it is.
        namespace: the window, or whatever else it belongs to; None for the key as a whole.
        value: what is kept; of a timer, the time as text.
    """

    name: str
    namespace: Any
    value: Any

    @property
    def title(self) -> str:
        """The kind of the entry, in words."""
        if self.name in _TIMERS:
            return self.name + self._place
        if self.name == ELEMENTS and self.namespace in (0, 1):
            return f"{_SIDES[self.namespace]} elements"
        return f"state {self.name.removeprefix(FUNCTION_STATE).removesuffix(SUFFIX)!r}{self._place}"

    @property
    def text(self) -> str:
        """The kept value, in words."""
        if self.name in _TIMERS:
            return str(self.value)
        if self.name == ELEMENTS and self.namespace in (0, 1):
            times, values = self.value
            return f"{len(times):,}, of {moment(min(times))} to {moment(max(times))}: {values!r}"
        return repr(without_times(self.value) if self.name.endswith(SUFFIX) else self.value)

    @property
    def _place(self) -> str:
        if self.namespace is None:
            return ""
        if isinstance(self.namespace, TimeWindow):
            return f" of the window {moment(self.namespace.start)} to {moment(self.namespace.end)}"
        return f" of {self.namespace!r}"


def entries_of_key(bucket: bytes, loads: Callable[[bytes], Any], is_asked: Callable[[Any], bool]) -> Iterator[Entry]:
    """Give the entries of a bucket for the keys that are asked for: values first, then timers.

    Args:
        bucket: its content.
        loads: reads objects.
        is_asked: says which keys.
    """
    found = Bucket.from_bytes(bucket, loads)
    for place in [place for place, key in enumerate(found.keys) if is_asked(key)]:
        for name, column in found.values.items():
            for value in _values(column, place, loads):
                if name != _SESSIONS:  # each of which has its contents
                    yield Entry(name, None, value)
        for name, column in found.spaces.items():
            for values in _values(column, place, loads):
                yield from (Entry(name, namespace, value) for namespace, value in values.items())
        yield from _timers(found, place)


def _values(column: Column, place: int, loads: Callable[[bytes], Any]) -> list[Any]:
    """The value of the key of a place in a column, if it has one."""
    owners, are_pickled, values = column
    if owners is not None:
        if place not in owners:
            return []
        place = owners.index(place)
    return [loads(values[place]) if are_pickled else values[place]]


def _timers(bucket: Bucket, place: int) -> Iterator[Entry]:
    places = list(range(len(bucket.keys)))
    for kind, parts in zip(range(KINDS_OF_TIME), bucket.timers, strict=False):
        for columns in filter(None, parts):
            for time_ms, owner, _ in timers_of(places, columns):
                mine, namespace = (owner, None) if columns[3] is None else owner
                if mine == place and not (kind == 0 and isinstance(namespace, TimeWindow)):  # which fire windows
                    yield Entry(_TIMERS[kind], namespace, moment(time_ms))
