"""Keyed state and timers of one subtask, stored in buckets by the hash of the key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from itertools import repeat
from typing import Any

import numpy as np

from eventide.errors import StateError
from eventide.runtime.elements.keys import group_of, hashes_of, stable_hash
from eventide.runtime.invoke import shown
from eventide.runtime.state.backend import StateBackend
from eventide.runtime.state.bucket import EXPIRY, Bucket, StoredEntry
from eventide.runtime.state.bucket_store import BucketStore
from eventide.runtime.state.collection import without_collection
from eventide.runtime.state.entries import Entry, read, stored
from eventide.runtime.state.expiring import forget_expired
from eventide.runtime.state.linear_hashing import address, addresses
from eventide.runtime.state.timers import Timers

_BUCKET_BYTES = 2_048
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
"""Keys of these types have the same hash for ever."""


class KeyedState:
    """State by key, namespace and name, and timers by key and namespace: of event time, and of processing time.

    The bucket of a key is read when the key is touched, or one of its timers is due, and of its entries only those that
    are touched or due. What has changed is written once, by :meth:`flush`. The namespace is the window (None for state
    that belongs to the key as a whole).

    Flink: keyed state back end and ``InternalTimerService`` in one, because they share their buckets.
    """

    def __init__(self, backend: StateBackend, max_parallelism: int, bucket_bytes: int = _BUCKET_BYTES) -> None:
        self._max_parallelism = max_parallelism
        self._store = BucketStore(backend, bucket_bytes, ("event times", "clock times", "expiries"))
        self.entries: dict[Any, Entry] = {}
        self._read: dict[int, bytes | None] = {}
        self._buckets: dict[int, Bucket] = {}
        self._checked: set[int] = set()
        self._looked_through: set[int] = set()
        numbers = self._store.numbers or [0, 0]
        self._timers = [Timers(self, kind, number) for kind, number in enumerate(numbers)]
        self.event_timers, self.processing_timers = self._timers

    def read(self, key: Any, namespace: Hashable, name: str) -> Any:
        """The value of a name under a key and namespace, or None."""
        entry = self.entries.get(key) or self.open(key)
        names = entry.values.get(namespace)
        return None if names is None else names.get(name)

    def write(self, key: Any, namespace: Hashable, name: str, value: Any) -> None:
        """Store a value under a key, namespace and name."""
        entry = self.entries.get(key) or self.open(key)
        names = entry.values.get(namespace)
        if names is None:
            entry.values[namespace] = {name: value}
        else:
            names[name] = value

    def take(self, key: Any, namespace: Hashable, name: str) -> Any:
        """Remove a value, and return what it was (None if it was not there)."""
        entry = self.entries.get(key) or self.open(key)
        names = entry.values.get(namespace)
        if names is None:
            return None
        value = names.pop(name, None)
        if not names:
            del entry.values[namespace]
        return value

    def take_all(self, key: Any, namespace: Hashable, prefix: str) -> None:
        """Remove every value under a key and namespace whose name starts with a prefix."""
        entry = self.entries.get(key) or self.open(key)
        for name in [name for name in entry.values.get(namespace, ()) if name.startswith(prefix)]:
            self.take(key, namespace, name)

    def open(self, key: Any) -> Entry:
        """Have the entry of a key that is not at hand yet."""
        key_hash = stable_hash(key)
        number = address(key_hash, self._store.count)
        self._take_in([key_hash], [number], check=type(key) not in _PLAIN)
        return self.entries.get(key) or self._new(key, key_hash)

    def open_all(self, keys: Iterable[Any]) -> None:
        """Have the entries of many keys: quicker than one by one."""
        entries = self.entries
        new = [key for key in dict.fromkeys(keys) if key not in entries]
        if len(new) < 2:
            for key in new:
                self.open(key)
            return
        with without_collection():
            found = hashes_of(new)
            hashes, numbers = found.tolist(), addresses(found, self._store.count).tolist()
            self._have(numbers)
            self._take_in(hashes, numbers, check=not _PLAIN.issuperset(map(type, new)))
            for key, key_hash in zip(new, hashes, strict=True):
                if key not in entries:
                    self._new(key, key_hash)

    def open_everything(self) -> None:
        """Have every entry: for harnesses."""
        self._have(range(self._store.count))
        for number in range(self._store.count):
            self._take_in(self._bucket(number).entries, repeat(number))

    def open_due(self, kind: int, until_ms: int) -> None:
        """Have every entry that has a timer of a kind at or before a time."""
        schedule = self._store.schedules[kind]
        due = schedule.due(until_ms)
        if not due:
            return
        with without_collection():
            self._have(due)
            for number in due:
                bucket = self._bucket(number)
                self._take_in(bucket.due(kind, until_ms), repeat(number))
                later = bucket.later(kind, until_ms)
                if later is not None:
                    schedule.again(number, later)

    def next_of_others(self, kind: int) -> int | None:
        """The earliest timer of a kind of the entries that are not at hand, in milliseconds; None if there is none."""
        schedule = self._store.schedules[kind]
        if not self._buckets:
            return schedule.next_of_untouched()
        while (found := schedule.next()) is not None:
            time_ms, number = found
            bucket = self._buckets.get(number)
            if bucket is None:
                return time_ms
            others = bucket.earliest_of_others(kind, self._read)
            if others == time_ms:
                return time_ms
            schedule.skip()
            if others is not None:
                schedule.again(number, others)
        return None

    def expire(self, clock_ms: int, *, used: bool) -> None:
        """Forget what has expired, of the entries that are at hand and of all others; call it before :meth:`flush`.

        ``used`` says that state with a time to live is in use. When a bucket has something that expires is known from
        when it was written; it may be later by now.
        """
        schedule = self._store.schedules[EXPIRY]
        if not used and not schedule.earliest:
            return
        with without_collection():
            for number in schedule.due(clock_ms):
                self._looked_through.add(number)
                self._take_in(self._bucket(number).due(EXPIRY, clock_ms), repeat(number))
            for entry in self.entries.values():
                forget_expired(entry.values, clock_ms)

    def flush(self) -> None:
        """Write back what has changed; call it once at the end of a micro-batch."""
        with without_collection():
            self._write(self._changed())
        self._store.numbers = [timers.number for timers in self._timers]
        self._store.flush()
        self.entries.clear()
        self._read.clear()
        self._buckets.clear()
        self._checked.clear()
        self._looked_through.clear()
        for timers in self._timers:
            timers.clear()

    def all_entries(self) -> dict[tuple[Any, Hashable], dict[str, Any]]:
        """Every key and namespace that holds values: for harnesses."""
        self.open_everything()
        return {
            (key, namespace): dict(names)
            for key, entry in self.entries.items()
            for namespace, names in entry.values.items()
        }

    def _new(self, key: Any, key_hash: int) -> Entry:
        entry = self.entries[key] = Entry(key_hash, group_of(key_hash, self._max_parallelism))
        return entry

    def _bucket(self, number: int) -> Bucket:
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = Bucket.read(self._store.get(number))
        return bucket

    def _have(self, numbers: Iterable[int]) -> None:
        """Read the buckets with some numbers together."""
        new = set(numbers).difference(self._buckets)
        self._buckets |= {number: Bucket.read(content) for number, content in self._store.get_many(new).items()}

    def _take_in(self, hashes: Iterable[int], numbers: Iterable[int], *, check: bool = True) -> None:
        """Have the entries that have some hashes, given their buckets; ``check`` whether their keys still have those.

        Raises:
            StateError: if one does not.
        """
        known = self._read
        for key_hash, number in zip(hashes, numbers, strict=False):
            if key_hash in known:
                continue
            content = known[key_hash] = self._bucket(number).content(key_hash)
            if content is None and not check:
                continue
            found = [] if content is None else self._entries_of(key_hash, content)
            if check and number not in self._checked:
                self._checked.add(number)
                self._check(found or self._first_entries(number))
            for key, entry in found:
                if key in self.entries:
                    raise _other_hash(key)
                self.entries[key] = entry
                for timers, set_for in zip(self._timers, entry.timers, strict=True):
                    if set_for:
                        timers.take_in(key, entry)

    def _entries_of(self, key_hash: int, content: bytes) -> list[tuple[Any, Entry]]:
        return read(content, key_hash, group_of(key_hash, self._max_parallelism))

    def _first_entries(self, number: int) -> list[tuple[Any, Entry]]:
        """The entries of the first hash in a bucket, if there is any."""
        stored_entries = self._bucket(number).entries
        return next((self._entries_of(key_hash, content) for key_hash, (content, *_) in stored_entries.items()), [])

    def _check(self, entries: list[tuple[Any, Entry]]) -> None:
        """Refuse a key that hashes otherwise than when it was stored: one of a bucket is looked at, for all of them."""
        for key, entry in entries[:1]:
            if stable_hash(key) != entry.hash:
                raise _other_hash(key)

    def _changed(self) -> dict[int, dict[int, StoredEntry | None]]:
        """What is not as it was read, by bucket and hash."""
        of_hash: dict[int, list[tuple[Any, Entry]]] = {}
        for key, entry in self.entries.items():
            of_hash.setdefault(entry.hash, []).append((key, entry))
        other: dict[int, StoredEntry | None] = {}
        for key_hash, entries in of_hash.items():
            new = stored(entries)
            if (new and new[0]) != self._read.get(key_hash):
                other[key_hash] = new
        changed: defaultdict[int, dict[int, StoredEntry | None]] = defaultdict(dict)
        numbers = addresses(np.fromiter(other, np.uint64, len(other)), self._store.count).tolist()
        for (key_hash, new), number in zip(other.items(), numbers, strict=True):
            changed[number][key_hash] = new
        return changed

    def _write(self, changed: dict[int, dict[int, StoredEntry | None]]) -> None:
        before: dict[int, tuple[int | None, ...]] = {}
        nothing = Bucket({}).earliest()
        entries = size = 0
        for number, changes in changed.items():
            bucket = self._bucket(number)
            before[number] = bucket.earliest()
            entries -= len(bucket)
            size += bucket.replace(changes)
            entries += len(bucket)
        new = {number: self._buckets[number] for number in changed}
        for number in self._store.grow(entries, size):
            bucket = self._bucket(number)
            before.setdefault(number, bucket.earliest())
            new[number] = Bucket({})
            new.update(bucket.split(self._store.count))
        for number in sorted(new):
            bucket = new[number]
            self._store.put(number, bucket.stored())
            times = zip(before.get(number, nothing), bucket.earliest(), strict=True)
            for kind, (old_ms, time_ms) in enumerate(times):
                if old_ms == time_ms or (kind == EXPIRY and _may_wait(old_ms, time_ms)):
                    continue
                self._store.schedules[kind].set(number, time_ms)
        for number in self._looked_through:
            bucket = new[number] if number in new else self._buckets[number]
            self._store.schedules[EXPIRY].set(number, bucket.earliest()[EXPIRY])


def _may_wait(known_ms: int | None, time_ms: int | None) -> bool:
    """Whether it does not matter that a bucket is looked through earlier than need be, which saves telling."""
    return known_ms is not None and time_ms is not None and known_ms < time_ms


def _other_hash(key: Any) -> StateError:
    return StateError(
        f"the key {shown(key)}, a {type(key).__name__}, has another hash than when it was stored, so that its state "
        "would not be found: its class has got other fields, or its values are others now. Classes of keys must stay "
        "as they are; undo the change, or start with a new checkpoint location"
    )
