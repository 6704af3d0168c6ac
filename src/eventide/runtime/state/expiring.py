"""State that expires: how its values are kept, and what becomes of them when their time is over.

A state with a time to live is kept under a name of its own, beside when each of its parts was last used: the one value,
each element of a list, or each entry of a map. The time to live that it was written with is kept too, so that what has
expired can be dropped by tools that know nothing of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

from eventide.api.state import ListState, MapState, StateTtlConfig
from eventide.common.ms import add_ms
from eventide.runtime.elements.ownership import own, own_beside, own_unless

SUFFIX = "\N{INFORMATION SEPARATOR ONE}"
"""The end of the names of values that expire; no name of a program's ends so."""

ONE, LIST, MAP = range(3)
"""The forms of state: one value, a list, a map."""

UNTIL_READ = 4
"""A bit in the form of state without background cleanup: expired values stay until they are read."""

Stored: TypeAlias = tuple[int, int, Any]
"""The time to live in milliseconds, the form, and what is kept: parts are pairs of a time and a value."""


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """A state's time to live, as the program has it; times are in milliseconds.

    ``renews_on_read`` says that to read counts as use; ``shows_expired`` that what has expired may be seen until it is
    gone; ``until_read`` that it goes when it is read, and not in the background. ``clock`` tells the time of the
    micro-batch.
    """

    ms: int
    renews_on_read: bool
    shows_expired: bool
    until_read: bool
    clock: Callable[[], int]

    @staticmethod
    def of(config: StateTtlConfig, clock: Callable[[], int]) -> TimeToLive:
        """Make the time to live that a descriptor asks for."""
        strategies = config.get_cleanup_strategies()
        cleans_up = (
            strategies.is_cleanup_in_background()
            or strategies.in_full_snapshot()
            or strategies.get_incremental_cleanup_strategy() is not None
            or strategies.get_rocksdb_compact_filter_cleanup_strategy() is not None
        )
        return TimeToLive(
            config.get_ttl().to_milliseconds(),
            config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite,
            config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp,
            not cleans_up,
            clock,
        )

    def is_over(self, used_ms: int) -> bool:
        """Whether what was last used at a time has expired."""
        return used_ms + self.ms <= self.clock()

    def stored(self, form: int, parts: object) -> Stored:
        """State of a form as it is kept, given its parts with their times."""
        return self.ms, form | UNTIL_READ if self.until_read else form, parts


class Cell(Protocol):
    """Where one named state is kept, of the key and namespace that are current when it is used."""

    def read(self) -> Any:
        """Return the stored value; None if there is none."""

    def write(self, value: object) -> None:
        """Store a value."""

    def clear(self) -> None:
        """Forget what is stored."""

    def take(self, namespace: Hashable) -> Any:
        """Remove and return what is stored under another namespace of the current key."""


class ExpiringCell(Cell):
    """The cell of a state with one value that expires."""

    def __init__(self, cell: Cell, ttl: TimeToLive) -> None:
        self._cell = cell
        self._ttl = ttl

    def read(self) -> Any:
        stored, ttl = self._cell.read(), self._ttl
        if stored is None:
            return None
        used_ms, value = stored[2]
        if ttl.is_over(used_ms):
            self._cell.clear()
            return value if ttl.shows_expired else None
        if ttl.renews_on_read:
            self.write(value)
        return value

    def write(self, value: object) -> None:
        self._cell.write(self._ttl.stored(ONE, (self._ttl.clock(), value)))

    def clear(self) -> None:
        self._cell.clear()

    def take(self, namespace: Hashable) -> Any:
        value = self.read()
        self.clear()
        return value


class ExpiringList(ListState[Any]):
    """A list whose elements expire one by one; those that are written count as used then."""

    def __init__(self, cell: Cell, ttl: TimeToLive) -> None:
        self._cell = cell
        self._ttl = ttl

    def get(self) -> list[Any]:
        """The elements that have not expired; with those that have, where they may be seen.

        A read forgets the expired elements, but for one case in which Flink's lists go on showing them: they may be
        seen, elements that have not expired are among them, and those are not renewed.
        """
        stored, ttl = self._cell.read(), self._ttl
        parts = [] if stored is None else stored[2]
        living = [part for part in parts if not ttl.is_over(part[0])]
        if living and ttl.renews_on_read:
            self._keep([(ttl.clock(), value) for _, value in living])
        elif len(living) < len(parts) and not (living and ttl.shows_expired):
            self._keep(living)
        return [value for _, value in (parts if ttl.shows_expired else living)]

    def add(self, value: object) -> None:
        self.add_all([value])

    def add_all(self, values: Iterable[Any]) -> None:
        stored, now = self._cell.read(), self._ttl.clock()
        self._keep([*([] if stored is None else stored[2]), *((now, own(value)) for value in values)])

    def update(self, values: Iterable[Any]) -> None:
        stored = self._cell.read()
        held = () if stored is None else (value for _, value in stored[2])
        self._keep([(self._ttl.clock(), value) for value in own_beside(values, held)])

    def clear(self) -> None:
        self._cell.clear()

    def _keep(self, parts: list[tuple[int, Any]]) -> None:
        if parts:
            self._cell.write(self._ttl.stored(LIST, parts))
        else:
            self._cell.clear()


class ExpiringMap(MapState[Any, Any]):
    """A map whose entries expire one by one; those that are written count as used then."""

    def __init__(self, cell: Cell, ttl: TimeToLive) -> None:
        self._cell = cell
        self._ttl = ttl

    def get(self, key: object) -> Any:
        part = self._read(key)
        return None if part is None else part[1]

    def put(self, key: object, value: object) -> None:
        self.put_all({key: value})

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        parts, now = self._parts(), self._ttl.clock()
        for key, value in dict(dict_value).items():
            _, held = parts.get(key, (now, None))
            parts[own(key)] = (now, own_unless(value, held))
        self._keep(parts)

    def remove(self, key: object) -> None:
        parts = self._parts()
        parts.pop(key, None)
        self._keep(parts)

    def contains(self, key: object) -> bool:
        """Whether the map has an entry for a key that has not expired; this reads the entry's value."""
        return self._read(key) is not None

    def items(self) -> Iterator[tuple[Any, Any]]:
        parts, ttl = self._parts(), self._ttl
        living = {key: part for key, part in parts.items() if not ttl.is_over(part[0])}
        if ttl.renews_on_read:
            living = {key: (ttl.clock(), value) for key, (_, value) in living.items()}
        if living != parts:
            self._keep(living)
        return iter([(key, value) for key, (_, value) in (parts if ttl.shows_expired else living).items()])

    def keys(self) -> Iterator[Any]:
        return iter([key for key, _ in self.items()])

    def values(self) -> Iterator[Any]:
        return iter([value for _, value in self.items()])

    def is_empty(self) -> bool:
        """Whether nothing is left; an entry that has expired counts until it is gone, and to ask does not renew any."""
        return not self._parts()

    def clear(self) -> None:
        self._cell.clear()

    def _read(self, key: object) -> tuple[int, Any] | None:
        """The stored value of a key, if it may be seen; it is renewed, or removed if it has expired."""
        parts, ttl = self._parts(), self._ttl
        part = parts.get(key)
        if part is None:
            return None
        if ttl.is_over(part[0]):
            self.remove(key)
            return part if ttl.shows_expired else None
        if ttl.renews_on_read:
            parts[key] = (ttl.clock(), part[1])
            self._keep(parts)
        return part

    def _parts(self) -> dict[Any, tuple[int, Any]]:
        stored = self._cell.read()
        return {} if stored is None else stored[2]

    def _keep(self, parts: dict[Any, tuple[int, Any]]) -> None:
        if parts:
            self._cell.write(self._ttl.stored(MAP, parts))
        else:
            self._cell.clear()


def with_times(plain: object, ttl: TimeToLive, form: int) -> Stored:
    """Turn the values of a state without a time to live into those of one with it: used now."""
    now = ttl.clock()
    return ttl.stored(form, _each(form, plain, lambda value: (now, value)))


def without_times(stored: Stored) -> Any:
    """The inverse of :func:`with_times`, for a state that no longer has a time to live."""
    _, form, kept = stored
    return _each(form & ~UNTIL_READ, kept, itemgetter(1))


def _each(form: int, parts: Any, change: Callable[[Any], Any]) -> Any:
    """State of a form with each of its parts changed."""
    if form == LIST:
        return [change(part) for part in parts]
    return {key: change(part) for key, part in parts.items()} if form == MAP else change(parts)


def expiry_of(stored: Stored) -> int | None:
    """When the first part of what is kept expires, in milliseconds; None if it stays until it is read."""
    ttl_ms, form, kept = stored
    if form & UNTIL_READ:
        return None
    parts = (kept,) if form == ONE else kept.values() if form == MAP else kept
    return add_ms(min(used_ms for used_ms, _ in parts), ttl_ms)


def unexpired(stored: Stored, clock_ms: int) -> Stored | None:
    """The state after background cleanup of its expired parts; None if it is empty then."""
    ttl_ms, form, kept = stored
    if form & UNTIL_READ:
        return stored
    oldest_ms = clock_ms - ttl_ms  # what was last used then, or before, has expired
    if form == ONE:
        return stored if kept[0] > oldest_ms else None
    if form == LIST:
        living: Any = [part for part in kept if part[0] > oldest_ms]
    else:
        living = {key: part for key, part in kept.items() if part[0] > oldest_ms}
    if len(living) == len(kept):
        return stored
    return (ttl_ms, form, living) if living else None
