"""Keyed state and timers of one subtask, as objects: rows in extents, which are read when their keys are touched."""

from __future__ import annotations

from base64 import b85decode
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from eventide.common.typeinfo import TypeInformation
from eventide.common.typeinfo.widening import Conversion
from eventide.errors import StateError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.elements import without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.keys import hashes_of, stable_hash
from eventide.runtime.elements.ordering import distinct
from eventide.runtime.invoke import shown
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import PLAIN, Pickled, live, unpickled
from eventide.runtime.state.declared import VALUE, RowTypes, widened
from eventide.runtime.state.expiring import SUFFIX, expiry_of, unexpired, without_times
from eventide.runtime.state.extents import RowStore
from eventide.runtime.state.loaded_rows import GrowingArray, GrowingObjects, LoadedRows, Values
from eventide.runtime.state.rows_of_keys import (
    AS_THEY_ARE,
    KEYS,
    SAMPLE,
    SPACES,
    KeysInRows,
    RowForm,
    remember_key,
    rows_of_objects,
)
from eventide.runtime.state.timers import NO_PLACE, BatchTimers, Numbers, Timers

if TYPE_CHECKING:
    import pyarrow as pa

_KEYS_FOR_ONE = 500
"""The number of keys that take as long to read among all others as one key takes by itself."""

_AS_THEY_ARE = PLAIN | {Pickled, type(None)}
"""The types of what is stored as it is, or not at all."""

_COMPARED = PLAIN - {float} | {Pickled}
"""The types of which two values are stored alike if they are equal; -0.0 equals 0.0."""

_KINDS: tuple[tuple[RowForm, ...], tuple[RowForm, ...]] = (("plain", "pickled"), ("spaces",))


class KeyedState(LoadedRows[GrowingObjects]):
    """State by key, namespace and name, and timers by key and namespace: of event time, and of processing time.

    What is stored of a key is read when the key is touched, or one of its timers is due. The keys that are touched lie
    side by side: for each name there is a dict by key. Values that can be changed stay pickled until they are looked
    at. What has changed is written once, by :meth:`flush`. The namespace is the window (None for state that belongs to
    the key as a whole).

    Flink: keyed state back end and ``InternalTimerService`` in one, because they share their rows.

    Attributes:
        keys: the loaded keys, by their places.
        index: the places of the touched keys.
        values: the state without a namespace, by name and touched key; :meth:`read` unpickles a value at its first use.
    """

    _timers: Sequence[Timers]

    def __init__(self, backend: Backend, max_parallelism: int, *, in_batch: bool = False) -> None:
        self.index: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.values: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self._spaces: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        super().__init__(backend, max_parallelism, in_batch=in_batch)
        kind_of_timers = BatchTimers if in_batch else Timers
        self._timers = self.event_timers, self.processing_timers = [kind_of_timers(self, kind, 0) for kind in (0, 1)]
        self._forget()

    without_limit: Collection[str] = frozenset()
    """The names of values that have no time to live in this program, also if they had one in an earlier one."""

    def _forget(self) -> None:
        super()._forget()
        self._is_touched = GrowingArray(np.bool_)
        self._single = 0
        for of_keys in (self.index, self.keys, self.values, self._spaces):
            of_keys.clear()

    def read(self, key: object, namespace: Hashable, name: str) -> Any:
        """The value of a name under a key and namespace, or None."""
        if key not in self.index:
            self.open(key)
        if namespace is None:
            return unpickled(self.values[name], key)
        spaces = unpickled(self._spaces[name], key)
        return None if spaces is None else spaces.get(namespace)

    def write(self, key: object, namespace: Hashable, name: str, value: object) -> None:
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

    def take(self, key: object, namespace: Hashable, name: str) -> Any:
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

    def take_all(self, key: object, namespace: Hashable, prefix: str) -> None:
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
        if self._declared.is_to_change(name, type_info):
            self.open_everything()  # with the type that was declared before
        convert = self._declared.declare(name, type_info, kind)
        if convert is None:
            return
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

    def open(self, key: object) -> None:
        """Touch a key that was not touched yet.

        If keys are touched one by one, all stored keys are read as soon as that takes no longer than the single reads.
        """
        self._single += 1
        if not self._are_all_at_hand and self._single * _KEYS_FOR_ONE >= self._store.user.get(KEYS, 0):
            self.open_everything()
        if key not in self.index:
            self._open([key], np.array([stable_hash(key)], np.uint64))

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
        new = places[~self._is_touched.array[places]]
        if not len(new):
            return
        new = distinct(new)
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
    def expire(self, clock_ms: int) -> None:
        """Forget what has expired, of the keys that are loaded and of all others; call it before :meth:`flush`.

        When a key has something that expires is known from when it was written; it may be later by now.
        """
        self._have_expiring(clock_ms)
        for _, values in self._expiring():
            self.bring_up(values.owners())
        self.forget_expired(clock_ms)

    def forget_expired(self, clock_ms: int) -> None:
        """Forget what has expired of the keys that were touched; what has no time to live any more stays for good."""
        for name, values in [*self.values.items()]:
            if not name.endswith(SUFFIX):
                continue
            plain = name.removesuffix(SUFFIX)
            for key, stored in self.items(name):
                if plain in self.without_limit:
                    del values[key]
                    self.values[plain].setdefault(key, without_times(stored))
                    continue
                living = unexpired(stored, clock_ms)
                if living is None:
                    del values[key]
                elif living is not stored:
                    values[key] = living

    @without_collection()
    def flush(self) -> None:
        self._note_changes()
        super().flush()

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
        self._have(distinct(hashes))
        places = self._index.find(hashes)
        known = np.flatnonzero(places != NO_PLACE).tolist()
        asked = keys if len(known) == len(keys) else list(map(keys.__getitem__, known))
        found = list(map(self.keys.__getitem__, places[known].tolist()))
        if found != asked:
            for i, key, other in zip(known, asked, found, strict=True):
                if other != key:
                    places[i] = next((twin for twin in self._twins(hashes[i]) if self.keys[twin] == key), NO_PLACE)
        is_new = places == NO_PLACE
        self.bring_up(places[~is_new])
        if is_new.any():
            new = list(compress(keys, is_new.tolist()))
            added = self._new_places(hashes[is_new], [new])
            self._is_touched.array[added] = True
            self.index.update(zip(new, added.tolist(), strict=True))

    def _begin_with(self, store: RowStore) -> None:
        """Check with one stored key, whose class defines its hash, that it still has the same hash.

        Raises:
            StateError: if its hash has changed, so that no state would be found.
        """
        if SAMPLE not in store.user:
            return
        pickled, key_hash = store.user[SAMPLE]
        hashes = np.array([key_hash], np.uint64)
        try:
            _check([loads(b85decode(pickled))], hashes)
        except Exception:  # also if the class is gone
            if store.read(hashes):
                raise
            del store.user[SAMPLE]  # the key has no state any more

    def _end_with(self, store: RowStore, places: Numbers, types: RowTypes) -> None:
        if types.key.is_pickled:
            remember_key(store, map(self.keys.__getitem__, places.tolist()), self._hashes.array[places])

    def _take_in(self, stored: KeysInRows) -> Numbers:
        keys = stored.keys()
        _check(keys, stored.hashes)
        places = self._new_places(stored.hashes, [keys], 0)
        for name, kind, array in stored.values():
            owners = places[np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))]
            held = array.drop_null()
            if name.endswith(SPACES):
                self._values_of((name.removesuffix(SPACES), "spaces")).set(owners, held.to_pylist())
            elif kind.is_pickled:
                self._values_of((name, "pickled")).set(owners, held.to_pylist())
            elif name.endswith(AS_THEY_ARE):
                self._values_of((name.removesuffix(AS_THEY_ARE), "plain")).set(owners, held.to_pylist())
            else:
                self._take_in_typed(name, kind, owners, held)
        return places

    def _take_in_typed(self, name: str, kind: TypeInformation, owners: Numbers, held: pa.Array) -> None:
        """Load values that an operator on columns has stored, with the type that their state had then."""
        objects = kind.from_arrow(held)
        convert = self._declared.conversion_from(name, kind)
        if convert is not None:
            objects = list(map(convert, objects))
        self._set(name, _KINDS[0], owners, [one if type(one) in PLAIN else Pickled(dumps(one)) for one in objects])

    def _column(self, kind: RowForm) -> GrowingObjects:
        return GrowingObjects()

    def _add_keys(self, columns: Sequence[Any]) -> None:
        [keys] = columns
        self.keys += keys
        self._is_touched.extend(False, len(keys))

    def _note_changes(self) -> None:
        """Take over the changed values of the touched keys, and note which keys have such values."""
        has_changed = self._has_changed.array
        for timers in self._timers:
            timers.settle()
            has_changed[list(map(self.index.__getitem__, timers.changed))] = True
        keys, places = [*self.index], np.fromiter(self.index.values(), np.int64, len(self.index))
        for by_name, kinds in zip((self.values, self._spaces), _KINDS, strict=True):
            for name, of_name in by_name.items():
                rows, now = _changed(self._stored_values(name, kinds, places), list(map(of_name.get, keys)))
                if rows:
                    has_changed[places[rows]] = True
                    self._set(name, kinds, places[rows], now)

    def _stored_values(self, name: str, kinds: Sequence[RowForm], places: Numbers) -> list[Any]:
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

    def _set(self, name: str, kinds: Sequence[RowForm], places: Numbers, values: list[Any]) -> None:
        """Give the keys at some places values under a name; None deletes a value."""
        for kind in kinds:
            if (name, kind) in self._values:
                self._values[name, kind].where.array[places] = NO_PLACE
        if PLAIN.issuperset(map(type, values)):
            self._values_of((name, "plain")).set(places, values)
            return
        are_plain = np.fromiter((type(value) in PLAIN for value in values), bool, len(values))
        are_pickled = np.fromiter((type(value) is Pickled for value in values), bool, len(values))
        for kind, those in (("plain", are_plain), (kinds[-1], are_pickled)):
            if those.any():
                held = compress(values, those.tolist())
                self._values_of((name, kind)).set(places[those], list(held if kind == "plain" else map(bytes, held)))

    def _columns_at(self, places: Numbers) -> tuple[RowTypes, pa.RecordBatch]:
        keys = list(map(self.keys.__getitem__, places.tolist()))
        return rows_of_objects(keys, self._hashes.array[places], self._held_at(places))

    def _held_at(self, places: Numbers) -> Iterator[tuple[str, RowForm, Numbers, list[Any]]]:
        """Give the values of the keys at some places, by name and form, with which of the keys have each."""
        for (name, form), values in self._values.items():
            owners = np.flatnonzero(values.where.array[places] != NO_PLACE)
            yield name, form, owners, values.at(places[owners])

    def _expiries(self, values: Values[GrowingObjects], owners: Numbers) -> Iterable[int | None]:
        return (expiry_of(live(Pickled(value))) for value in values.at(owners))


def _changed(before: list[Any], now: list[Any]) -> tuple[list[int], list[Any]]:
    """Return which values have changed, by index, and the new values: pickled, if they can be changed in place."""
    rows = [row for row, (old, new) in enumerate(zip(before, now, strict=True)) if old is not new]
    olds, news = (list(map(values.__getitem__, rows)) for values in (before, now))
    if not _AS_THEY_ARE.issuperset(map(type, news)):
        news = [new if type(new) in _AS_THEY_ARE else Pickled(dumps(new)) for new in news]
    if _COMPARED.isdisjoint(map(type, olds)):
        return rows, news
    differs = [
        type(old) is not type(new) or type(old) not in _COMPARED or old != new
        for old, new in zip(olds, news, strict=True)
    ]
    return list(compress(rows, differs)), list(compress(news, differs))


def _check(keys: list[Any], hashes: Hashes) -> None:
    """Refuse a key that hashes otherwise than when it was stored: one of several is looked at, for all of them."""
    if PLAIN.issuperset(map(type, keys)):
        return
    other = next((i for i, key in enumerate(keys) if type(key) not in PLAIN and key is not None), None)
    if other is not None and stable_hash(keys[other]) != hashes[other]:
        raise StateError(
            f"the key {shown(keys[other])}, a {type(keys[other]).__name__}, has another hash than when it was stored, "
            "so that its state would not be found: its class has other fields now, or its values have changed. Classes "
            "of keys must stay as they are; undo the change, or start with a new checkpoint location"
        )
