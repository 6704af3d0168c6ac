"""Keyed state and timers of one subtask, stored in buckets by the hash of the key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from itertools import accumulate, chain, compress
from typing import Any, Literal

import numpy as np

from eventide.common.typeinfo import TypeInformation
from eventide.common.typeinfo.widening import Conversion
from eventide.errors import StateError
from eventide.pickling.pickles import dumps
from eventide.runtime.elements.elements import without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.keys import hashes_of, stable_hash
from eventide.runtime.elements.ordering import distinct
from eventide.runtime.invoke import shown
from eventide.runtime.state.at_hand import Flags, Name, Values
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import (
    EXPIRY,
    PLAIN,
    Bucket,
    Column,
    Pickled,
    is_page,
    live,
    owned,
    read_bucket,
    unpickled,
)
from eventide.runtime.state.bucket_store import addresses
from eventide.runtime.state.declared import VALUE, widened
from eventide.runtime.state.expiring import SUFFIX, expiry_of, unexpired
from eventide.runtime.state.growing import GrowingArray, GrowingObjects
from eventide.runtime.state.keyed_rows import KeyedRows, Part, Plan
from eventide.runtime.state.timers import NO_PLACE, BatchTimers, Numbers, Timers, joined

BUCKET_BYTES = 8_192
"""The size of a bucket of objects of which many keys are touched."""

_Kind = Literal["plain", "pickled", "spaces"]
"""Values that are pickled together, those that are pickled by themselves, and the pickles of dicts by namespace."""

_KINDS: tuple[tuple[_Kind, ...], tuple[_Kind, ...]] = (("plain", "pickled"), ("spaces",))


class KeyedState(KeyedRows):
    """State by key, namespace and name, and timers by key and namespace: of event time, and of processing time.

    The bucket of a key is read when the key is touched, or one of its timers is due. The keys of the bucket are at hand
    then, as they are stored. Those that are touched lie side by side: for each name there is a dict by key. Values that
    can be changed stay pickled until they are looked at. What has changed is written once, by :meth:`flush`. The
    namespace is the window (None for state that belongs to the key as a whole).

    Flink: keyed state back end and ``InternalTimerService`` in one, because they share their buckets.

    Attributes:
        keys: those at hand, by their places.
        index: the places of those that were touched.
        values: the state without a namespace, by name and touched key; :meth:`read` unpickles a value at its first use.
    """

    def __init__(
        self, backend: Backend, max_parallelism: int, bucket_bytes: int = BUCKET_BYTES, *, in_batch: bool = False
    ) -> None:
        self.index: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.values: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self._spaces: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        super().__init__(backend, max_parallelism, bucket_bytes, max(1, bucket_bytes // 8), in_batch=in_batch)
        kind_of_timers = BatchTimers if in_batch else Timers
        timers = [kind_of_timers(self, kind, number) for kind, number in enumerate(self._store.numbers or [0, 0])]
        self._timers = self.event_timers, self.processing_timers = timers

    def _forget(self) -> None:
        super()._forget()
        self._is_touched = GrowingArray(np.bool_)
        self._opened: set[int] = set()
        for of_keys in (self.index, self.keys, self.values, self._spaces):
            of_keys.clear()

    def read(self, key: Any, namespace: Hashable, name: str) -> Any:
        """The value of a name under a key and namespace, or None."""
        if key not in self.index:
            self.open(key)
        if namespace is None:
            return unpickled(self.values[name], key)
        spaces = unpickled(self._spaces[name], key)
        return None if spaces is None else spaces.get(namespace)

    def write(self, key: Any, namespace: Hashable, name: str, value: Any) -> None:
        """Store a value under a key, namespace and name."""
        if key not in self.index:
            self.open(key)
        if namespace is None:
            self.values[name][key] = value
            return
        spaces = unpickled(self._spaces[name], key)
        if spaces is None:
            self._spaces[name][key] = {namespace: value}
        else:
            spaces[namespace] = value

    def take(self, key: Any, namespace: Hashable, name: str) -> Any:
        """Remove a value, and return what it was (None if it was not there)."""
        if key not in self.index:
            self.open(key)
        if namespace is None:
            value = unpickled(self.values[name], key)
            self.values[name].pop(key, None)
            return value
        spaces = unpickled(self._spaces[name], key)
        if spaces is None:
            return None
        value = spaces.pop(namespace, None)
        if not spaces:
            del self._spaces[name][key]
        return value

    def take_all(self, key: Any, namespace: Hashable, prefix: str) -> None:
        """Remove every value under a key and namespace whose name starts with a prefix."""
        if key not in self.index:
            self.open(key)
        names = self.values if namespace is None else self._spaces
        for name in [name for name in names if name.startswith(prefix)]:
            self.take(key, namespace, name)

    def declare(self, name: str, type_info: TypeInformation, kind: str = VALUE) -> None:
        """Say the type and the kind of the values under a name: values of a narrower type are converted.

        Raises:
            StateError: if what is stored is of another kind, or has a type that does not widen to this one.
        """
        convert = self._declared.declare(name, type_info, kind)
        if convert is None:
            return
        self.open_everything()
        for of_name, expires in ((name, False), (name + SUFFIX, True)):
            self._convert(of_name, partial(widened, convert=convert, expires=expires))

    def _convert(self, name: str, convert: Conversion) -> None:
        """Convert the values under a name of all keys that were touched."""
        for key, value in self.items(name):
            self.values[name][key] = convert(value)
        for key in self._spaces[name]:
            spaces = unpickled(self._spaces[name], key)
            self._spaces[name][key] = {space: convert(value) for space, value in spaces.items()}

    def items(self, name: str) -> list[tuple[Any, Any]]:
        """The keys that were touched and have a value without a namespace under a name, and their values."""
        values = self.values[name]
        return [(key, unpickled(values, key)) for key in values]

    def open(self, key: Any) -> None:
        """Touch a key that was not touched yet, and the others of its bucket, among which the next one may be."""
        hashes = np.array([stable_hash(key)], np.uint64)
        number = int(addresses(hashes, self._store.count)[0])
        if number not in self._opened:
            self._opened.add(number)
            first = 0 if number in self._stored else len(self)
            self._have([number])
            numbers = addresses(self._hashes.array[first:], self._store.count)
            self.bring_up(first + np.flatnonzero(numbers == number))
        if key not in self.index:
            self._open([key], hashes)

    def open_all(self, keys: Iterable[Any]) -> None:
        """Touch many keys: quicker than one by one."""
        index = self.index
        new = [key for key in dict.fromkeys(keys) if key not in index]
        if new:
            with without_collection():
                self._open(new, hashes_of(new))

    @without_collection()
    def open_everything(self) -> None:
        """Touch every key."""
        super().open_everything()
        self.bring_up(np.arange(len(self)))

    def bring_up(self, places: Numbers, *, has_changed: bool = False) -> None:
        """Touch the keys at some places, and take note that their timers have changed, if they have."""
        if has_changed:
            self._has_changed.array[places] = True
        new = distinct(places[~self._is_touched.array[places]])
        if not len(new):
            return
        self._is_touched.array[new] = True
        keys = list(map(self.keys.__getitem__, new.tolist()))
        self.index.update(zip(keys, new.tolist(), strict=True))
        for (name, kind), values in self._values.items():
            has_value = values.where.array[new] != NO_PLACE
            held = values.at(new[has_value])
            owners = keys if len(held) == len(keys) else compress(keys, has_value.tolist())
            mine = self._spaces[name] if kind == "spaces" else self.values[name]
            mine.update(zip(owners, held if kind == "plain" else map(Pickled, held), strict=True))

    @without_collection()
    def expire(self, clock_ms: int, *, used: bool) -> None:
        """Forget what has expired, of the keys that are at hand and of all others; call it before :meth:`flush`.

        ``used`` says that state with a time to live is in use. When a bucket has something that expires is known from
        when it was written; it may be later by now.
        """
        schedule = self._store.schedules[EXPIRY]
        if not used and not schedule.earliest:
            return
        if due := schedule.due(clock_ms):
            self._looked_through.update(due)
            self._have(due)
            numbers = addresses(self._hashes.array, self._store.count)
            self.bring_up(np.flatnonzero(np.isin(numbers, due)))
        self.forget_expired(clock_ms)

    def forget_expired(self, clock_ms: int) -> None:
        """Forget what has expired of the keys that are at hand."""
        for name, values in self.values.items():
            if not name.endswith(SUFFIX):
                continue
            for key, stored in self.items(name):
                living = unexpired(stored, clock_ms)
                if living is None:
                    del values[key]
                elif living is not stored:
                    values[key] = living

    @without_collection()
    def flush(self) -> None:
        self._note_changes()
        super().flush()
        for timers in self._timers:
            timers.clear()

    @without_collection()
    def adopt(self, bucket: Bucket, last_number: int) -> None:
        """Take over the keys of another state, with their values and timers, beside the keys that are there.

        Args:
            bucket: the keys, with what is kept of them.
            last_number: the highest number of their timers: timers that are set from now on come after them.
        """
        keys = bucket.keys
        self._open(keys, bucket.hashes)
        for name, (owners, are_pickled, values) in bucket.values.items():
            self.values[name].update(owned(keys, owners, map(Pickled, values) if are_pickled else values))
        for name, (owners, _, values) in bucket.spaces.items():
            mine = self._spaces[name]
            for key, value in owned(keys, owners, map(Pickled, values)):
                mine[key] = value if key not in mine else unpickled(mine, key) | live(value)
        places = np.fromiter(map(self.index.__getitem__, keys), np.int64, len(keys))
        self._has_changed.array[places] = True
        for timers, of_kind in zip(self._timers, bucket.timers, strict=True):
            timers.take_in(*(joined([group], np.zeros(1, np.int64), places) for group in of_kind))
            timers.number = max(timers.number, last_number)

    def all_entries(self) -> dict[tuple[Any, Hashable], dict[str, Any]]:
        """Every key and namespace that holds values: for harnesses."""
        self.open_everything()
        found: defaultdict[tuple[Any, Hashable], dict[str, Any]] = defaultdict(dict)
        for name in self.values:
            for key, value in self.items(name):
                found[key, None][name] = value
        for name, spaces in self._spaces.items():
            for key in spaces:
                for namespace, value in unpickled(spaces, key).items():
                    found[key, namespace][name] = value
        return dict(found)

    def _open(self, keys: list[Any], hashes: Hashes) -> None:
        """Touch keys, given their hashes."""
        places = self._find(hashes)
        for i, place in enumerate(places.tolist()):
            if place != NO_PLACE and self.keys[place] != keys[i]:
                places[i] = next((twin for twin in self._twins(hashes[i]) if self.keys[twin] == keys[i]), NO_PLACE)
        is_new = places == NO_PLACE
        self.bring_up(places[~is_new])
        if is_new.any():
            first, new = len(self), list(compress(keys, is_new.tolist()))
            self._new += len(new)
            self._add(hashes[is_new], [new])
            self._is_touched.array[first:] = True
            self.index.update(zip(new, range(first, len(self)), strict=True))

    def _read(self, content: bytes) -> list[Part]:
        """A bucket, and its changes, if there are any.

        Raises:
            StateError: if a key does not have the hash that it was stored with.
        """
        found = []
        for bucket, size in read_bucket(content):
            _check(bucket)
            names: list[Name] = []
            columns = []
            for name, (owners, are_pickled, values) in bucket.values.items():
                names.append((name, "pickled" if are_pickled else "plain"))
                columns.append((owners, values))
            for name, (owners, _, values) in bucket.spaces.items():
                names.append((name, "spaces"))
                columns.append((owners, values))
            rows, expiry = (bucket.hashes, bucket.keys, columns), bucket.earliest[EXPIRY]
            is_own = not is_page(content)
            found.append(Part(tuple(names), rows, len(bucket.keys), bucket.timers, size, expiry, is_own))
        return found

    def _column(self, kind: _Kind) -> GrowingObjects:
        return GrowingObjects()

    def _joined(self, names: Sequence[Name], parts: Sequence[Part]) -> tuple[Hashes, Sequence[Any], Sequence[Any]]:
        hashes, keys, columns = zip(*(part.rows for part in parts), strict=True)
        firsts = [0, *accumulate(map(len, keys))]
        by_name = []
        for of_name in zip(*columns, strict=True):
            rows: Any = slice(None)
            if any(owners is not None for owners, _ in of_name):
                spans = zip(firsts, of_name, strict=False)
                rows = [
                    first + i
                    for first, (owners, values) in spans
                    for i in (range(len(values)) if owners is None else owners)
                ]
            by_name.append((rows, list(chain.from_iterable(values for _, values in of_name))))
        return np.concatenate(hashes), [list(chain.from_iterable(keys))], by_name

    def _add_keys(self, columns: Sequence[Any], those: Flags | None) -> None:
        [keys] = columns
        new = keys if those is None else list(compress(keys, those.tolist()))
        self.keys += new
        self._is_touched.extend(False, len(new))

    def _note_changes(self) -> None:
        """Have what has become of the keys that were touched as it is to be stored, and take note of which changed."""
        has_changed = self._has_changed.array
        for timers in self._timers:
            has_changed[list(map(self.index.__getitem__, timers.changed))] = True
        keys, places = [*self.index], np.fromiter(self.index.values(), np.int64, len(self.index))
        for by_name, kinds in zip((self.values, self._spaces), _KINDS, strict=True):
            for name, of_name in by_name.items():
                rows, now = _changed(self._stored_values(name, kinds, places), list(map(of_name.get, keys)))
                if rows:
                    has_changed[places[rows]] = True
                    self._set(name, kinds, places[rows], now)

    def _stored_values(self, name: str, kinds: Sequence[_Kind], places: Numbers) -> list[Any]:
        """The values of the keys at some places under a name, as they are stored; None for none."""
        found: list[Any] = [None] * len(places)
        for kind in kinds:
            if (name, kind) in self._values:
                values = self._values[name, kind]
                rows = np.flatnonzero(values.where.array[places] != NO_PLACE)
                held = values.at(places[rows])
                for row, value in zip(rows.tolist(), held if kind == "plain" else map(Pickled, held), strict=True):
                    found[row] = value
        return found

    def _set(self, name: str, kinds: Sequence[_Kind], places: Numbers, values: list[Any]) -> None:
        """Have the keys at some places have values under a name; None for nothing."""
        are_plain = np.fromiter((type(value) in PLAIN for value in values), bool, len(values))
        are_pickled = np.fromiter((type(value) is Pickled for value in values), bool, len(values))
        for kind in kinds:
            if (name, kind) in self._values:
                self._values[name, kind].where.array[places] = NO_PLACE
        for kind, those in (("plain", are_plain), (kinds[-1], are_pickled)):
            if those.any():
                held = compress(values, those.tolist())
                self._values_of((name, kind)).set(places[those], list(held if kind == "plain" else map(bytes, held)))

    def _contents(self, rows: Numbers, bounds: Numbers, plans: Iterable[Plan]) -> Iterable[bytes]:
        keys, hashes, spans = list(map(self.keys.__getitem__, rows.tolist())), self._hashes.array[rows], bounds.tolist()
        columns = []
        for (name, kind), values in self._values.items():
            owners = np.flatnonzero(values.where.array[rows] != NO_PLACE)
            if len(owners):
                cuts = np.searchsorted(owners, bounds)
                of_bucket = owners - np.repeat(bounds[:-1], np.diff(cuts))
                columns.append((name, kind, of_bucket, values.at(rows[owners]), cuts.tolist()))
        for i, (_, are_changes, timers, times) in enumerate(plans):
            begin, end = spans[i], spans[i + 1]
            found: tuple[dict[str, Column], dict[str, Column]] = ({}, {})
            for name, kind, owners, held, cuts in columns:
                first, last = cuts[i], cuts[i + 1]
                if first < last:
                    those = None if last - first == end - begin else owners[first:last].tolist()
                    mine = found[kind == "spaces"]
                    column = (those, kind != "plain", held[first:last])
                    mine[name] = _both(mine[name], column) if name in mine else column
            yield Bucket(keys[begin:end], hashes[begin:end], *found, timers, times).to_bytes(are_changes=are_changes)

    def _expiries(self, values: Values[GrowingObjects], owners: Numbers) -> Iterable[int | None]:
        return (expiry_of(live(Pickled(value))) for value in values.at(owners))


def _changed(before: list[Any], now: list[Any]) -> tuple[list[int], list[Any]]:
    """Which values are others now than they were, and these: pickled, if they can be changed in place."""
    rows, found = [], []
    for row, (old, new) in enumerate(zip(before, now, strict=True)):
        if old is new:
            continue
        kind = type(new)
        if new is not None and kind not in PLAIN:
            value = new if kind is Pickled else Pickled(dumps(new))
            if type(old) is Pickled and value == old:
                continue
        else:
            value = new
            if kind is type(old) and kind is not float and old == new:
                continue
        rows.append(row)
        found.append(value)
    return rows, found


def _both(one: Column, other: Column) -> Column:
    """The values of two columns, of which each key is in one."""
    owners = [owner for owners, _, _ in (one, other) for owner in owners or ()]
    parts = (values if are_pickled else map(dumps, values) for _, are_pickled, values in (one, other))
    return owners, True, [value for values in parts for value in values]


def _check(bucket: Bucket) -> None:
    """Refuse a key that hashes otherwise than when it was stored: one of a bucket is looked at, for all of them."""
    keys = bucket.keys
    if PLAIN.issuperset(map(type, keys)):
        return
    other = next((i for i, key in enumerate(keys) if type(key) not in PLAIN and key is not None), None)
    if other is not None and stable_hash(keys[other]) != bucket.hashes[other]:
        raise StateError(
            f"the key {shown(keys[other])}, a {type(keys[other]).__name__}, has another hash than when it was stored, "
            "so that its state would not be found: its class has other fields now, or its values have changed. Classes "
            "of keys must stay as they are; undo the change, or start with a new checkpoint location"
        )
