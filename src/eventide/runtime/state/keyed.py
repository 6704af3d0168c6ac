"""Keyed state and timers of one subtask, stored in buckets by the hash of the key."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain, count
from typing import Any, TypeAlias

import numpy as np

from eventide.common.typeinfo import TypeInformation
from eventide.errors import StateError
from eventide.pickling.pickles import dumps
from eventide.runtime.elements.elements import without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.keys import group_of, hashes_of, stable_hash
from eventide.runtime.invoke import shown
from eventide.runtime.metrics import KEYS, TIMERS
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import (
    EXPIRY,
    KINDS_OF_TIME,
    NO_BUCKET,
    NOTHING,
    TIMES,
    Bucket,
    Pickled,
    Resting,
    Stored,
    buckets_of,
    first_of,
    live,
    owned,
    read_bucket,
    together,
    unpickled,
)
from eventide.runtime.state.bucket_store import BucketStore, Made, address, addresses, beside
from eventide.runtime.state.declared import DeclaredTypes, widened
from eventide.runtime.state.expiring import SUFFIX, unexpired
from eventide.runtime.state.stored_timers import NO_PLACE, Numbers, joined
from eventide.runtime.state.timers import Timers, timers_of_kinds

BUCKET_BYTES = 16_384
"""The size of a bucket of objects of which many keys are touched."""

_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
"""Keys of these types have the same hash for ever."""

_Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class KeyedState:
    """State by key, namespace and name, and timers by key and namespace: of event time, and of processing time.

    The bucket of a key is read when the key is touched, or one of its timers is due. These keys are at hand then, and
    lie side by side: for each name there is a dict by key. Values that can be changed stay pickled until somebody looks
    at them. The other keys of the bucket rest as they are stored. What has changed is written once, by :meth:`flush`:
    beside the bucket, if it is little, or else with the whole bucket. The namespace is the window (None for state that
    belongs to the key as a whole).

    Flink: keyed state back end and ``InternalTimerService`` in one, because they share their buckets.

    Attributes:
        keys: those at hand, in the order in which they came.
        index: where each of them stands there.
        values: what has no namespace, by name and key; :meth:`read` unpickles a value at its first use.
        stored: the buckets that were read, as they are stored.
    """

    def __init__(
        self, backend: Backend, max_parallelism: int, bucket_bytes: int = BUCKET_BYTES, *, in_batch: bool = False
    ) -> None:
        self._max_parallelism = max_parallelism
        self._store = BucketStore(backend, bucket_bytes, TIMES)
        self.index: dict[Any, int] = {}
        self.keys: list[Any] = []
        self._hashes: list[int] = []
        self.values: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self._spaces: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self._before: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self._spaces_before: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self.stored: dict[int, Stored] = {}
        self._resting: dict[int, list[Resting]] = {}
        self._next_resting: list[list[tuple[int, int, Resting]]] = [[] for _ in range(KINDS_OF_TIME)]
        """Heaps: a time before which no timer of keys that rest is set, a number, and the keys."""
        self._count = count()
        self._has_changed: _Flags = np.zeros(0, bool)
        self._count_before = 0
        self._origin: Numbers = np.zeros(0, np.int64)
        self._looked_through: set[int] = set()
        self._types = DeclaredTypes(backend)
        timers = timers_of_kinds(self, self._store.numbers or [0, 0], in_batch=in_batch)
        self.event_timers, self.processing_timers = timers
        self._timers: Sequence[Timers] = timers

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

    def declare(self, name: str, type_info: TypeInformation) -> None:
        """Say the type of what is stored under a name: what was stored with a narrower one is brought to it.

        Raises:
            StateError: if what is stored has a type that does not widen to this one.
        """
        convert = self._types.declare(name, type_info)
        if convert is None:
            return
        self.open_everything()
        for of_name, expires in ((name, False), (name + SUFFIX, True)):
            for key, value in self.items(of_name):
                self.values[of_name][key] = widened(value, convert, expires=expires)
            for key in self._spaces[of_name]:
                spaces = unpickled(self._spaces[of_name], key)
                self._spaces[of_name][key] = {
                    space: widened(value, convert, expires=expires) for space, value in spaces.items()
                }

    def items(self, name: str) -> list[tuple[Any, Any]]:
        """The keys at hand that have a value without a namespace under a name, and their values."""
        values = self.values[name]
        return [(key, unpickled(values, key)) for key in values]

    def open(self, key: Any) -> None:
        """Have a key at hand that is not yet."""
        key_hash = stable_hash(key)
        self.have([address(key_hash, self._store.count)])
        self._open([key], np.array([key_hash], np.uint64))

    def open_all(self, keys: Iterable[Any]) -> None:
        """Have many keys at hand: quicker than one by one."""
        index = self.index
        new = [key for key in dict.fromkeys(keys) if key not in index]
        if new:
            with without_collection():
                hashes = hashes_of(new)
                self.have(self._store.wanted(hashes, len(self.keys) + len(new), self.stored))
                self._open(new, hashes)

    def open_everything(self) -> None:
        """Have every key at hand."""
        with without_collection():
            self.have(range(self._store.count))
            self._open_rest(self._resting)

    def open_due(self, kind: int, until_ms: int) -> None:
        """Have every key at hand that has a timer of a kind at or before a time."""
        due, resting = self._store.schedules[kind].due(until_ms), self._next_resting[kind]
        if due or (resting and resting[0][0] <= until_ms):
            with without_collection():
                self.have(due)
                while resting and resting[0][0] <= until_ms:
                    _, _, keys = heapq.heappop(resting)
                    self._take(keys, keys.due(kind, until_ms))
                    self._expect(kind, keys, keys.next_ms(kind))

    def next_of_others(self, kind: int) -> int | None:
        """The earliest timer of a kind of the keys that are not at hand, in milliseconds; None if there is none."""
        next_ms, resting = self._store.schedules[kind].next_but(self.stored), self._next_resting[kind]
        while resting and (next_ms is None or resting[0][0] < next_ms):
            known_ms, _, keys = resting[0]
            keys_ms = keys.next_ms(kind)
            if keys_ms == known_ms:
                return known_ms
            heapq.heappop(resting)
            self._expect(kind, keys, keys_ms)
        return next_ms

    def groups_of(self, keys: Iterable[Any]) -> list[int]:
        """The key group of each of some keys at hand."""
        places, hashes, groups = self.index, self._hashes, self._max_parallelism
        return [group_of(hashes[places[key]], groups) for key in keys]

    def expire(self, clock_ms: int, *, used: bool) -> None:
        """Forget what has expired, of the keys that are at hand and of all others; call it before :meth:`flush`.

        ``used`` says that state with a time to live is in use. When a bucket has something that expires is known from
        when it was written; it may be later by now.
        """
        schedule = self._store.schedules[EXPIRY]
        if not used and not schedule.earliest:
            return
        with without_collection():
            due = schedule.due(clock_ms)
            self._looked_through.update(due)
            self.have(due)
            self._open_rest(due)
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

    def flush(self) -> None:
        """Write back what has changed; call it once at the end of a micro-batch."""
        with without_collection():
            self._write()
            self.index.clear()
            self.keys.clear()
            self._hashes.clear()
            for by_name in (self.values, self._spaces, self._before, self._spaces_before):
                by_name.clear()
            self.stored.clear()
            self._resting.clear()
            for resting in self._next_resting:
                resting.clear()
            self._looked_through.clear()
            self._store.numbers = [timers.number for timers in self._timers]
            for timers in self._timers:
                timers.clear()
        self._store.flush()
        self._types.flush()

    def adopt(self, bucket: Bucket, last_number: int) -> None:
        """Take over the keys of another state, with their values and timers, beside the keys that are there.

        Args:
            bucket: the keys, with what is kept of them.
            last_number: the highest number of their timers: timers that are set from now on come after them.
        """
        keys = bucket.keys
        with without_collection():
            self.have(self._store.wanted(bucket.hashes, len(self.keys) + len(keys), self.stored))
            self._open(keys, bucket.hashes)
            for name, (owners, are_pickled, values) in bucket.values.items():
                self.values[name].update(owned(keys, owners, map(Pickled, values) if are_pickled else values))
            for name, (owners, _, values) in bucket.spaces.items():
                mine = self._spaces[name]
                for key, value in owned(keys, owners, map(Pickled, values)):
                    mine[key] = value if key not in mine else unpickled(mine, key) | live(value)
            places = np.fromiter(map(self.index.__getitem__, keys), np.int64, len(keys))
            for timers, (plain, spaced) in zip(self._timers, bucket.timers, strict=True):
                timers.take_in(self.keys, 0, (joined([plain], [places]), joined([spaced], [places])))
                timers.number = max(timers.number, last_number)
                timers.changed += keys

    def held(self) -> dict[str, int]:
        """How many keys and timers there are, as far as that is known without reading; asked after :meth:`flush`."""
        timers = self._store.timers
        return {KEYS: self._store.entries} | ({} if timers is None else {TIMERS: timers})

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

    def have(self, buckets: Iterable[int]) -> bool:
        """Read buckets: their keys rest."""
        new = [number for number in buckets if number not in self.stored]
        for number, content in self._store.get_many(new).items():
            self._take_in(number, content)
        return True

    def _take_in(self, number: int, content: bytes | None) -> None:
        """Take note of the keys of a bucket, and of those that have changed since.

        Raises:
            StateError: if a key does not have the hash that it was stored with.
        """
        if content is None:
            self.stored[number], self._resting[number] = NOTHING, []
            return
        self.stored[number], self._resting[number] = read_bucket(content)
        for keys in self._resting[number]:
            _check(keys.bucket)
            for kind in range(KINDS_OF_TIME):
                self._expect(kind, keys, keys.bucket.earliest[kind])

    def _expect(self, kind: int, keys: Resting, next_ms: int | None) -> None:
        """Take note of a time before which no timer of a kind is due of keys that rest; None if they have none."""
        if next_ms is not None:
            heapq.heappush(self._next_resting[kind], (next_ms, next(self._count), keys))

    def _open(self, keys: list[Any], hashes: Hashes) -> None:
        """Have keys at hand whose buckets were read, given their hashes."""
        numbers = addresses(hashes, self._store.count)
        order = np.argsort(numbers, kind="stable")
        begins = np.flatnonzero(np.diff(numbers[order], prepend=NO_BUCKET))
        for some in np.split(order, begins[1:]):
            wanted, of_wanted = list(map(keys.__getitem__, some.tolist())), hashes[some]
            for resting in self._resting[int(numbers[some[0]])]:
                self._take(resting, resting.find(wanted, of_wanted))
        new = [i for i, key in enumerate(keys) if key not in self.index]
        self._add(list(map(keys.__getitem__, new)), hashes[new].tolist())

    def _open_rest(self, buckets: Iterable[int]) -> None:
        """Have all keys of some buckets at hand that were read."""
        for number in buckets:
            for resting in self._resting[number]:
                self._take(resting, resting.living())

    def _take(self, resting: Resting, rows: Numbers) -> None:
        """Have some keys of a bucket at hand, with what is kept of them."""
        if not len(rows):
            return
        first = len(self.keys)
        bucket = resting.take(rows, first)
        keys = bucket.keys
        self._add(keys, bucket.hashes.tolist())
        for mine, before, columns in (
            (self.values, self._before, bucket.values),
            (self._spaces, self._spaces_before, bucket.spaces),
        ):
            for name, (owners, are_pickled, values) in columns.items():
                held = list(owned(keys, owners, map(Pickled, values) if are_pickled else values))
                mine[name].update(held)
                before[name].update(held)
        for timers, columns_of_timers in zip(self._timers, bucket.timers, strict=True):
            timers.take_in(keys, first, columns_of_timers)

    def _add(self, keys: list[Any], hashes: list[int]) -> None:
        first = len(self.keys)
        self.index.update(zip(keys, range(first, first + len(keys)), strict=True))
        self.keys += keys
        self._hashes += hashes

    def made(self, buckets: Sequence[int], *, is_whole: bool) -> dict[int, Made]:
        """Some buckets as they are to be stored; all of them whole, where their keys may come from others."""
        hashes, size = np.array(self._hashes, np.uint64), max(self._store.count, *buckets) + 1
        numbers = addresses(hashes, self._store.count)
        is_wanted, are_changes = np.zeros(size, bool), np.zeros(size, bool)
        is_wanted[buckets] = True
        numbers[~(self._has_changed & is_wanted[numbers])] = NO_BUCKET
        if not is_whole:
            own, before = np.zeros(size, np.int64), np.zeros(size, np.int64)
            own[buckets] = [self.stored[number].own_entries for number in buckets]
            before[buckets] = [
                sum(np.count_nonzero(keys.left) for keys in self._resting[number][1:]) for number in buckets
            ]
            now = np.bincount(numbers[numbers != NO_BUCKET], minlength=size)
            are_changes = beside(own, now, before + now)
        at_hand = buckets_of(self.keys, hashes, numbers, self.values, self._spaces, self._timers, are_changes)
        order = np.argsort(numbers, kind="stable")
        spans = np.searchsorted(numbers[order], np.array([buckets, np.add(buckets, 1)])).T.tolist()
        found, spread = {}, self._spread(buckets) if is_whole else {}
        for number, (begin, end) in zip(buckets, spans, strict=True):
            if are_changes[number]:
                found[number] = self._beside(number, at_hand[number], order[begin:end])
                continue
            parts = spread[number] if is_whole else [keys.bucket.only(keys.living()) for keys in self._resting[number]]
            bucket = together([*parts, *([at_hand[number]] if number in at_hand else ())])
            if bucket.keys:
                found[number] = Made(bucket.to_bytes(), len(bucket.keys), bucket.count_timers(), bucket.earliest)
            else:
                found[number] = Made()
        return found

    def _beside(self, number: int, bucket: Bucket, places: Numbers) -> Made:
        """The changes of a bucket, given those keys at hand that have changed now, and their places."""
        own, *before = self._resting[number]
        rows = [np.flatnonzero(keys.left) for keys in before]
        origins = [keys.origin[some] for keys, some in zip(before, rows, strict=True)]
        bucket = together([*(keys.bucket.only(some) for keys, some in zip(before, rows, strict=True)), bucket])
        entries, timers, earliest = own.held()
        entries += int(np.count_nonzero(bucket.keep_anything()))
        timers += bucket.count_timers()
        earliest = tuple(map(first_of, zip(earliest, bucket.earliest, strict=True)))
        content = bucket.to_bytes_of_changes(
            np.concatenate([*origins, self._origin[places]]), entries, timers, earliest
        )
        return Made(content, entries, timers, earliest, are_changes=True)

    def _spread(self, buckets: Sequence[int]) -> defaultdict[int, list[Bucket]]:
        """The keys that rest, by the buckets in which they are from now on, of which some are asked for."""
        found: defaultdict[int, list[Bucket]] = defaultdict(list)
        is_more, wanted = self._store.count > self._count_before, frozenset(buckets)
        origins = {address(number, self._count_before) for number in buckets} if is_more else self._resting
        for keys in chain.from_iterable(self._resting[number] for number in origins):
            rows = keys.living()
            numbers = addresses(keys.bucket.hashes[rows], self._store.count)
            for number in wanted.intersection(np.unique(numbers).tolist()):
                found[number].append(keys.bucket.only(rows[numbers == number]))
        return found

    def _changes(self) -> _Flags:
        """Which of the keys at hand have changed."""
        found = np.zeros(len(self.keys), bool)
        for timers in self._timers:
            found[list(map(self.index.__getitem__, dict.fromkeys(timers.changed)))] = True
        for mine, before in ((self.values, self._before), (self._spaces, self._spaces_before)):
            for name in dict.fromkeys([*mine, *before]):
                places = np.flatnonzero(~found)
                keys = list(map(self.keys.__getitem__, places.tolist()))
                now = mine[name]
                pairs = [*zip(map(before[name].get, keys), map(now.get, keys), strict=True)]
                found[places] = [
                    old is not new and (type(old) is not type(new) or type(old) is float or old != new)
                    for old, new in pairs
                ]
                for i in np.flatnonzero(found[places]).tolist():
                    old, new = pairs[i]
                    if type(old) is Pickled and new is not None and type(new) is not Pickled:
                        pickled = now[keys[i]] = Pickled(dumps(new))
                        found[places[i]] = pickled != old
        return found

    def _write(self) -> None:
        """Write what has changed."""
        has_changed = self._has_changed = self._changes()
        for number in self._looked_through:  # written again, so that they say when something expires
            for first, rows in chain.from_iterable(keys.taken for keys in self._resting[number]):
                has_changed[first : first + len(rows)] = True
        self._origin = np.full(len(self.keys), NO_PLACE)
        for keys in chain.from_iterable(self._resting.values()):
            keys.put_back(has_changed)
            for first, rows in keys.taken:
                self._origin[first : first + len(rows)] = keys.origin[rows]
        if has_changed.any():
            self._count_before = self._store.count
            self._store.follow(len(self.keys), len(self.stored))
            changed = np.array(self._hashes, np.uint64)[has_changed]
            self._store.write(self, np.unique(addresses(changed, self._store.count)).tolist())
        for number in self._looked_through:
            self._store.schedules[EXPIRY].set(number, self.stored[number].earliest[EXPIRY])


def _check(bucket: Bucket) -> None:
    """Refuse a key that hashes otherwise than when it was stored: one of a bucket is looked at, for all of them."""
    keys = bucket.keys
    if _PLAIN.issuperset(map(type, keys)):
        return
    key, key_hash = next((key, h) for key, h in zip(keys, bucket.hashes, strict=True) if type(key) not in _PLAIN)
    if stable_hash(key) != key_hash:
        raise _other_hash(key)


def _other_hash(key: Any) -> StateError:
    return StateError(
        f"the key {shown(key)}, a {type(key).__name__}, has another hash than when it was stored, so that its state "
        "would not be found: its class has other fields now, or its values have changed. Classes of keys must stay "
        "as they are; undo the change, or start with a new checkpoint location"
    )
