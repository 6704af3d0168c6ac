"""Keyed state and timers of one subtask, stored in buckets by the hash of the key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from eventide.common.typeinfo import TypeInformation
from eventide.errors import StateError
from eventide.runtime.elements.elements import without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.keys import group_of, hashes_of, stable_hash
from eventide.runtime.invoke import shown
from eventide.runtime.metrics import KEYS, TIMERS
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import (
    EXPIRY,
    NO_BUCKET,
    NO_TIMES,
    TIMES,
    Bucket,
    BucketStore,
    Pickled,
    address,
    addresses,
    buckets_of,
    live,
    owned,
    unpickled,
)
from eventide.runtime.state.declared import DeclaredTypes, widened
from eventide.runtime.state.expiring import SUFFIX, unexpired
from eventide.runtime.state.timers import StoredTimers, placed, timers_of_kinds

BUCKET_BYTES = 1_024
"""The size of a bucket of objects: all of its keys are brought up when one is touched."""

_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
"""Keys of these types have the same hash for ever."""


class _Stored(NamedTuple):
    """A bucket as it is stored."""

    content: bytes | None = None
    entries: int = 0
    earliest: tuple[int | None, ...] = NO_TIMES
    timers: int = 0

    @property
    def size(self) -> int:
        return len(self.content or b"")


_NOTHING = _Stored()


class KeyedState:
    """State by key, namespace and name, and timers by key and namespace: of event time, and of processing time.

    The bucket of a key is read when the key is touched, or one of its timers is due; all keys of the bucket are at hand
    then, and lie side by side: for each name there is a dict by key. Values that can be changed stay pickled until they
    are looked at. What has changed is written once, by :meth:`flush`. The namespace is the window (None for state that
    belongs to the key as a whole).

    Flink: keyed state back end and ``InternalTimerService`` in one, because they share their buckets.

    Attributes:
        keys: those at hand, in the order in which they came.
        index: where each of them stands there.
        values: what has no namespace, by name and key; :meth:`read` unpickles a value at its first use.
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
        self._stored: dict[int, _Stored] = {}
        self._looked_through: set[int] = set()
        self._types = DeclaredTypes(backend)
        timers = timers_of_kinds(self, self._store.numbers or [0, 0], in_batch=in_batch)
        self.event_timers, self.processing_timers = timers
        self._timers: Sequence[StoredTimers] = timers

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

    @property
    def by_name(self) -> tuple[dict[str, dict[Any, Any]], dict[str, dict[Any, Any]]]:
        """The values of the keys at hand by name: without a namespace, and by namespace."""
        return self.values, self._spaces

    def items(self, name: str) -> list[tuple[Any, Any]]:
        """The keys at hand that have a value without a namespace under a name, and their values."""
        values = self.values[name]
        return [(key, unpickled(values, key)) for key in values]

    def open(self, key: Any) -> None:
        """Have a key at hand that is not yet."""
        key_hash = stable_hash(key)
        number = address(key_hash, self._store.count)
        if number not in self._stored:
            self._take_in(number, self._store.get(number))
        if key not in self.index:
            self._add([key], [key_hash])

    def open_all(self, keys: Iterable[Any]) -> None:
        """Have many keys at hand: quicker than one by one."""
        index = self.index
        new = [key for key in dict.fromkeys(keys) if key not in index]
        if len(new) < 2:
            for key in new:
                self.open(key)
            return
        with without_collection():
            self._open(new, hashes_of(new))

    def open_everything(self) -> None:
        """Have every key at hand."""
        with without_collection():
            self._have(range(self._store.count))

    def open_due(self, kind: int, until_ms: int) -> None:
        """Have every key at hand that has a timer of a kind at or before a time."""
        due = self._store.schedules[kind].due(until_ms)
        if due:
            with without_collection():
                self._have(due)

    def next_of_others(self, kind: int) -> int | None:
        """The earliest timer of a kind of the keys that are not at hand, in milliseconds; None if there is none."""
        return self._store.schedules[kind].next_but(self._stored)

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
            self._have(due)
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
            if self._stored:
                self._write()
            self.index.clear()
            self.keys.clear()
            self._hashes.clear()
            self.values.clear()
            self._spaces.clear()
            self._stored.clear()
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
            self._open(keys, np.array(bucket.hashes, np.uint64))
            for name, (owners, are_pickled, values) in bucket.values.items():
                self.values[name].update(owned(keys, owners, map(Pickled, values) if are_pickled else values))
            for name, (owners, _, values) in bucket.spaces.items():
                mine = self._spaces[name]
                for key, value in owned(keys, owners, map(Pickled, values)):
                    mine[key] = value if key not in mine else unpickled(mine, key) | live(value)
            places = np.fromiter(map(self.index.__getitem__, keys), np.int64, len(keys))
            for timers, (plain, spaced) in zip(self._timers, bucket.timers, strict=True):
                timers.take_in(self.keys, 0, (placed(plain, places), placed(spaced, places)))
                timers.number = max(timers.number, last_number)

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

    def _open(self, keys: list[Any], hashes: Hashes) -> None:
        """Have keys at hand, given their hashes."""
        self._have(np.flatnonzero(np.bincount(addresses(hashes, self._store.count))).tolist())
        are_new = [key not in self.index for key in keys]
        self._add(list(compress(keys, are_new)), list(compress(hashes.tolist(), are_new)))

    def _have(self, numbers: Iterable[int]) -> None:
        """Have all keys of some buckets at hand."""
        new = [number for number in numbers if number not in self._stored]
        for number, content in self._store.get_many(new).items():
            self._take_in(number, content)

    def _take_in(self, number: int, content: bytes | None) -> None:
        """Have the keys of a bucket at hand.

        Raises:
            StateError: if a key does not have the hash that it was stored with.
        """
        if content is None:
            self._stored[number] = _NOTHING
            return
        bucket = Bucket.from_bytes(content)
        keys = bucket.keys
        self._check(bucket)
        self._stored[number] = _Stored(content, len(keys), bucket.earliest, bucket.count_timers())
        self._bring_up(bucket)

    def _bring_up(self, bucket: Bucket) -> None:
        """Have the keys of a bucket at hand, with what is kept of them."""
        keys, first = bucket.keys, len(self.keys)
        self._add(keys, bucket.hashes)
        for mine, columns in ((self.values, bucket.values), (self._spaces, bucket.spaces)):
            for name, (owners, are_pickled, values) in columns.items():
                mine[name].update(owned(keys, owners, map(Pickled, values) if are_pickled else values))
        for timers, columns_of_timers in zip(self._timers, bucket.timers, strict=True):
            timers.take_in(keys, first, columns_of_timers)

    def _add(self, keys: list[Any], hashes: list[int]) -> None:
        first = len(self.keys)
        self.index.update(zip(keys, range(first, first + len(keys)), strict=True))
        self.keys += keys
        self._hashes += hashes

    def _check(self, bucket: Bucket) -> None:
        """Refuse a key that hashes otherwise than when it was stored: one of a bucket is looked at, for all of them."""
        keys = bucket.keys
        if not self.index.keys().isdisjoint(keys):
            raise _other_hash(next(key for key in keys if key in self.index))
        if _PLAIN.issuperset(map(type, keys)):
            return
        key, key_hash = next((key, h) for key, h in zip(keys, bucket.hashes, strict=True) if type(key) not in _PLAIN)
        if stable_hash(key) != key_hash:
            raise _other_hash(key)

    def _contents(self, moved: tuple[int, list[int]] | None = None) -> dict[int, _Stored]:
        """Return the contents to store of the keys at hand, by bucket.

        Given how many buckets there were, and the numbers of some, only of the keys that were in those.
        """
        hashes = np.array(self._hashes, np.uint64)
        numbers = addresses(hashes, self._store.count)
        if moved is not None:
            before, some = moved
            numbers[~np.isin(addresses(hashes, before), some)] = NO_BUCKET
        buckets = buckets_of(self.keys, hashes, numbers, self.values, self._spaces, self._timers)
        return {
            number: _Stored(bucket.to_bytes(), len(bucket.keys), bucket.earliest, bucket.count_timers())
            for number, bucket in buckets.items()
        }

    def _write(self) -> None:
        """Write the buckets that have changed, and those whose keys move because there are more buckets now."""
        store, known = self._store, dict(self._stored)
        new = dict.fromkeys(known, _NOTHING) | self._contents()
        changed: dict[int, _Stored] = {}
        while True:
            update = {number: now for number, now in new.items() if now.content != known.get(number, _NOTHING).content}
            entries = sum(now.entries - known.get(number, _NOTHING).entries for number, now in update.items())
            size = sum(now.size - known.get(number, _NOTHING).size for number, now in update.items())
            known |= update
            changed |= update
            before = store.count
            moving = store.grow(entries, size)
            if not moving:
                break
            self._have(moving)
            known = self._stored | known
            new = dict.fromkeys(moving, _NOTHING) | self._contents((before, moving))
        for number in sorted(changed):
            now, then = changed[number], self._stored.get(number, _NOTHING)
            store.put(number, now.content)
            if store.timers is not None:
                store.timers += now.timers - then.timers
            for kind, (old_ms, time_ms) in enumerate(zip(then.earliest, now.earliest, strict=True)):
                if old_ms == time_ms or (kind == EXPIRY and _may_wait(old_ms, time_ms)):
                    continue
                store.schedules[kind].set(number, time_ms)
        for number in self._looked_through:
            store.schedules[EXPIRY].set(number, known[number].earliest[EXPIRY])


def _may_wait(known_ms: int | None, time_ms: int | None) -> bool:
    """Whether it does not matter that a bucket is looked through earlier than need be, which saves telling."""
    return known_ms is not None and time_ms is not None and known_ms < time_ms


def _other_hash(key: Any) -> StateError:
    return StateError(
        f"the key {shown(key)}, a {type(key).__name__}, has another hash than when it was stored, so that its state "
        "would not be found: its class has other fields now, or its values have changed. Classes of keys must stay "
        "as they are; undo the change, or start with a new checkpoint location"
    )
