"""Calls of a function with the elements, or the timers, of many keys at once: what it is given, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.api.functions import KeyedStateStore, VectorizedKeyedProcessFunction
from eventide.api.functions.output_tag import OutputTag
from eventide.api.functions.timers import TimeDomain, VectorizedTimerService
from eventide.api.state import (
    MapStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
    VectorizedMapState,
    VectorizedValueState,
)
from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError, ProgramError
from eventide.runtime.chain.batch_operators import values_of
from eventide.runtime.chain.chained_operators import Clock, Moment
from eventide.runtime.chain.outputs import described
from eventide.runtime.elements.elements import Numbers, columns_in_time_order
from eventide.runtime.elements.keys import (
    are_comparable,
    first_rows,
    hashes_of_columns,
    key_column,
    numbers_of_columns,
)
from eventide.runtime.process.functions import may_set_timers_of_clock
from eventide.runtime.state.declared import MAP, VALUE
from eventide.runtime.state.key_context import FUNCTION_STATE
from eventide.runtime.state.keyed_columns import KeyedColumns
from eventide.runtime.tasks.operator import (
    Key,
    SortInputs,
)


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of maps: the number of the map of each, its key there, and its value.

    >>> maps = pa.array([[("a", 1), ("b", 2)], None, [("a", 3)]], pa.map_(pa.string(), pa.int64()))
    >>> entries = Entries.of(maps)
    >>> entries.owners.tolist(), entries.keys.to_pylist()
    ([0, 0, 2], ['a', 'b', 'a'])
    >>> more = Entries(np.array([1, 0]), pa.array(["c", "a"]), pa.array([4, 5]))
    >>> changed = entries.updated(more).without(np.array([2]), pa.array(["a"]))
    >>> changed.owners.tolist(), changed.keys.to_pylist(), changed.values.to_pylist()
    ([0, 0, 1], ['a', 'b', 'c'], [5, 2, 4])
    """

    owners: Numbers
    keys: pa.Array
    values: pa.Array

    def __len__(self) -> int:
        return len(self.owners)

    @staticmethod
    def of(maps: pa.MapArray) -> Entries:
        """Take maps apart; null counts as an empty one."""
        entry = pa.struct([pa.field("key", maps.type.key_type, nullable=False), maps.type.item_field])
        lists = maps.cast(pa.list_(entry))
        counts = lists.value_lengths().fill_null(0).to_numpy()
        keys, values = lists.flatten().flatten()
        return Entries(np.repeat(np.arange(len(maps)), counts), keys, values)

    def maps(self, count: int, kind: TypeInformation) -> pa.MapArray:
        """Put `count` maps together, of entries in the order of their owners; null for an empty one."""
        offsets = np.searchsorted(self.owners, np.arange(count + 1)).astype(np.int32)
        is_empty = pa.array(np.diff(offsets) == 0)
        return pa.MapArray.from_arrays(pa.array(offsets), self.keys, self.values, mask=is_empty).cast(kind.arrow_type())

    def updated(self, others: Entries) -> Entries:
        """Return the entries with others, which take the place of equal ones, and of each other, the last one."""
        owners = np.concatenate([self.owners, others.owners])
        keys, values = (
            pa.concat_arrays(columns) for columns in ((self.keys, others.keys), (self.values, others.values))
        )
        numbers = entry_numbers(self, others.owners, others.keys)
        first = first_rows(numbers)
        last = np.empty(len(first), np.int64)
        last[numbers] = np.arange(len(numbers))
        order = np.argsort(owners[first], kind="stable")
        return Entries(owners[first[order]], keys.take(pa.array(first[order])), values.take(pa.array(last[order])))

    def without(self, owners: Numbers, keys: pa.Array) -> Entries:
        """Return the entries but for some, which are given by their maps and keys."""
        numbers = entry_numbers(self, owners, keys)
        stays = ~np.isin(numbers[: len(self)], numbers[len(self) :])
        return Entries(self.owners[stays], self.keys.filter(pa.array(stays)), self.values.filter(pa.array(stays)))


def entry_numbers(entries: Entries, owners: Numbers, keys: pa.Array) -> Numbers:
    """Numbers of entries and then of others, which are given by their maps and keys; equal ones have one number."""
    of_all: object = pa.array(np.concatenate([entries.owners, owners]))
    return numbers_of_columns([of_all, key_column(pa.concat_arrays([entries.keys, keys]))])


def places_of_last(numbers: Numbers, count: int) -> pa.Array:
    """Where each number after the first `count` is among these; null where it is not.

    >>> places_of_last(np.array([0, 1, 2, 1, 3]), 3).to_pylist()
    [1, None]
    """
    known = np.full(int(numbers.max(initial=-1)) + 1, -1)
    known[numbers[:count]] = np.arange(count)
    found = known[numbers[count:]]
    return pa.array(found, mask=found < 0)


_TimerChange: TypeAlias = Callable[[Numbers, Numbers], None]
"""Sets or deletes timers, given the places of their keys, and their times."""

ResultColumns: TypeAlias = dict[str | None, list[tuple[TypeInformation, pa.Array, Numbers]]]
"""The results of a call by side output (None: the main one): values of a type, and the row that each comes from."""


class _NoCall:
    """Stands where no call is under way."""

    def __getattr__(self, name: str) -> NoReturn:
        raise _no_call()


def _no_call() -> ProgramError:
    return ProgramError(
        "state, timers and outputs belong to a call, and there is none here; get state in open(), and use it, and the "
        "context of the call, in process_batch() and on_timers()"
    )


NO_CALL: Any = _NoCall()


class StateOfKeys(KeyedStateStore):
    """Where the function finds its state: it stays for as long as it is open, while ``call`` changes.

    On its way to a worker it forgets everything.
    """

    def __init__(self) -> None:
        self.call: VectorizedCall = NO_CALL
        self.declared: dict[str, tuple[TypeInformation, str]] = {}

    def begin(self, keyed: KeyedColumns) -> None:
        """Begin a micro-batch on the state that the operator has in it."""
        for name, (type_info, form) in self.declared.items():
            keyed.declare(name, type_info, form)

    def get_vectorized_state(self, state_descriptor: ValueStateDescriptor) -> VectorizedValueState:
        """The values of many keys.

        Raises:
            ProgramError: if it has a time to live, or no declared type, or was declared with another one; or if it is
                asked for in a call, and was not in ``open``.
        """
        return _StateHandleOfKeys(self, *self._declare(state_descriptor, ValueStateDescriptor, VALUE))

    def get_vectorized_map_state(self, state_descriptor: MapStateDescriptor) -> VectorizedMapState:
        """The maps of many keys.

        Raises:
            ProgramError: as for their values; also if Arrow cannot tell the keys of a map apart.
        """
        name, kind = self._declare(state_descriptor, MapStateDescriptor, MAP)
        keys = state_descriptor.key_type
        if keys.is_pickled or state_descriptor.value_type.is_pickled or not are_comparable([keys.arrow_type()]):
            raise ProgramError(
                f"the state {state_descriptor.name!r} has maps of type {kind}, which cannot be columns; declare plain "
                "types, such as Types.STRING() and Types.LONG()"
            )
        return _MapStateOfKeys(self, name, kind, state_descriptor)

    def _declare(
        self, state_descriptor: StateDescriptor, expected: type[StateDescriptor], form: str
    ) -> tuple[str, TypeInformation]:
        """Take down the type of a state of some form; return the name that it is stored under, and the type."""
        name, kind = state_descriptor.name, state_descriptor.type_info
        if not isinstance(state_descriptor, expected):
            raise self._refused(state_descriptor)
        if state_descriptor.ttl_config is not None:
            raise ProgramError(
                f"the state {name!r} has a time to live, which functions on columns do not support; set a timer, and "
                "clear the state when it fires"
            )
        if kind.is_pickled:
            raise ProgramError(
                f"the state {name!r} is of type {kind}, which cannot be a column; declare what it holds, such as "
                "Types.LONG()"
            )
        if self.call is not NO_CALL and FUNCTION_STATE + name not in self.declared:
            raise ProgramError(
                f"the state {name!r} is requested for the first time in a call, when state of its keys is already in "
                "use; get it in open(), and use it in the calls"
            )
        known, _ = self.declared.setdefault(FUNCTION_STATE + name, (kind, form))
        if known != kind:
            raise ProgramError(f"the state {name!r} is declared as {known} and as {kind}; give each a name of its own")
        return FUNCTION_STATE + name, kind

    def _refused(self, state_descriptor: StateDescriptor) -> ProgramError:
        return ProgramError(
            f"the state {state_descriptor.name!r} was requested as state of a single key, in a function called for "
            "many keys; use get_vectorized_state with a ValueStateDescriptor, or get_vectorized_map_state with a "
            "MapStateDescriptor"
        )

    def get_state(self, state_descriptor: Any) -> NoReturn:
        """Refused: it belongs to a single key."""
        raise self._refused(state_descriptor)

    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state

    def __reduce__(self) -> tuple[type[StateOfKeys], tuple[()]]:
        return StateOfKeys, ()


class _StateHandleOfKeys(VectorizedValueState):
    def __init__(self, at: StateOfKeys, name: str, type_info: TypeInformation) -> None:
        self._at = at
        self._name = name
        self._type = type_info

    def get(self, keys: pa.Array) -> pa.Array:
        call = self._at.call
        return call.state.get(self._name, call.places_of(keys, "get"), self._type)

    def put(self, keys: pa.Array, values: object) -> None:
        call = self._at.call
        stored = values_of(values, self._type)
        places = call.places_of(keys, "put")
        _check_length("put", len(places), len(stored))
        call.state.put(self._name, places, stored, self._type)

    def clear(self, keys: pa.Array) -> None:
        call = self._at.call
        call.state.clear(self._name, call.places_of(keys, "clear"))


class _MapStateOfKeys(VectorizedMapState):
    """The map of each key is a value of a column; entries are numbered together to be found."""

    def __init__(self, at: StateOfKeys, name: str, type_info: TypeInformation, descriptor: MapStateDescriptor) -> None:
        self._at = at
        self._name = name
        self._type = type_info
        self._key_type = descriptor.key_type
        self._value_type = descriptor.value_type

    def get(self, keys: pa.Array, map_keys: object) -> pa.Array:
        _, owners, kept = self._kept(keys, "get")
        numbers = entry_numbers(kept, owners, self._map_keys(map_keys, owners, "get"))
        return kept.values.take(places_of_last(numbers, len(kept)))

    def put(self, keys: pa.Array, map_keys: object, values: object) -> None:
        places, owners, kept = self._kept(keys, "put")
        given = Entries(owners, self._map_keys(map_keys, owners, "put"), values_of(values, self._value_type))
        _check_length("put", len(owners), len(given.values))
        self._put(places, kept.updated(given))

    def remove(self, keys: pa.Array, map_keys: object) -> None:
        places, owners, kept = self._kept(keys, "remove")
        self._put(places, kept.without(owners, self._map_keys(map_keys, owners, "remove")))

    def entries(self, keys: pa.Array) -> tuple[Numbers, pa.Array, pa.Array]:
        call = self._at.call
        maps = call.state.get(self._name, call.places_of(keys, "entries"), self._type)
        found = Entries.of(maps)
        return found.owners, found.keys, found.values

    def clear(self, keys: pa.Array) -> None:
        call = self._at.call
        call.state.clear(self._name, call.places_of(keys, "clear"))

    def _kept(self, keys: pa.Array, what: str) -> tuple[Numbers, Numbers, Entries]:
        """The places of some keys, each once; which of them each of these keys is; and the entries of all."""
        call = self._at.call
        places, owners = np.unique(call.places_of(keys, what), return_inverse=True)
        return places, owners, Entries.of(call.state.get(self._name, places, self._type))

    def _map_keys(self, map_keys: object, owners: Numbers, what: str) -> pa.Array:
        found = values_of(map_keys, self._key_type)
        _check_length(what, len(owners), len(found))
        if found.null_count:
            raise DataError(f"{what}: {found.null_count} of the keys in maps are null; leave these entries out")
        return found

    def _put(self, places: Numbers, entries: Entries) -> None:
        self._at.call.state.put(self._name, places, entries.maps(len(places), self._type), self._type)


class VectorizedCall(VectorizedKeyedProcessFunction.OnTimersContext):
    """One call of the function, with its keys and its results.

    It is for ``elements``; or for timers, and ``places`` are those of their keys, of which each is there once.
    """

    def __init__(
        self,
        spec: VectorizedProcessSpec,
        state: KeyedColumns,
        moment: Moment,
        keys: pa.Array,
        timestamps: pa.Array | None,
        *,
        elements: pa.RecordBatch | None = None,
        domain: TimeDomain | None = None,
        places: Numbers | None = None,
    ) -> None:
        self._spec = spec
        self._moment = moment
        self.domain = domain
        self.state = state
        self.elements = elements
        self.keys = keys
        self.timestamps = pa.nulls(len(keys), pa.int64()) if timestamps is None else timestamps
        self.results: ResultColumns = {}
        self.timers: list[tuple[_TimerChange, Numbers, Numbers]] = []
        if places is None:
            self.distinct_keys, numbers = _distinct(keys)
            hashes = hashes_of_columns(_columns_of(self.distinct_keys))
            self.places = state.places_of(hashes, spec.stored_keys(self.distinct_keys))
        else:
            self.distinct_keys, numbers = keys, np.arange(len(keys))
            self.places = places
        numbers.flags.writeable = False
        self.key_numbers = numbers
        self._before = None if spec.dead_letters is None else state.remembered(self.places)

    def commit(self) -> None:
        """Set and delete timers as the function asked."""
        for change, places, times in self.timers:
            change(places, times)

    def rollback(self) -> None:
        """Restore the values that its keys had before the call, for an operator with dead letters."""
        if self._before is not None:
            self.state.restore(self.places, self._before)

    def timer_service(self) -> VectorizedTimerService:
        return _TimersOfKeys(self, self._moment)

    def time_domain(self) -> TimeDomain:
        if self.domain is None:
            raise ProgramError("time_domain() is the domain of the timers that fire; no timer fires here")
        return self.domain

    def collect(self, results: object, rows: object = None) -> None:
        self._put(None, self._spec.output_type, results, rows)

    def output(self, output_tag: OutputTag, results: object, rows: object = None) -> None:
        if output_tag.type_info.is_pickled:
            raise ProgramError(
                f"the side output {output_tag.tag_id!r} has no declared type, which results in columns need; give "
                "its OutputTag one"
            )
        self._put(output_tag.tag_id, output_tag.type_info, results, rows)

    def _put(self, tag: str | None, type_info: TypeInformation, results: object, rows: object) -> None:
        self.check()
        values, count = values_of(results, type_info), len(self.keys)
        origins = np.arange(count) if rows is None else np.asarray(rows)
        if origins.dtype == bool and len(origins) == count:
            origins = np.flatnonzero(origins)
        elif not np.issubdtype(origins.dtype, np.integer) and len(origins):
            raise ProgramError(
                f"rows are of type {origins.dtype}; give the index of a row for each result, or {count} truth values"
            )
        if len(origins) != len(values):
            raise ProgramError(
                f"there are {len(values)} results and {len(origins)} row numbers; give one row number for each result"
            )
        if len(origins) and not 0 <= origins.min() <= origins.max() < count:
            raise ProgramError(
                f"row numbers are from {origins.min()} to {origins.max()}, and the rows of the call are 0 to "
                f"{count - 1}"
            )
        self.results.setdefault(tag, []).append((type_info, values, origins.astype(np.int64)))

    def check(self) -> None:
        """Refuse what is done when the call is over."""
        if self._spec.state.call is not self:
            raise _no_call()

    def places_of(self, keys: object, what: str) -> Numbers:
        """Where the state of keys is found."""
        numbers = self.numbers_of(keys, what)
        return self.places if numbers is None else self.places[numbers]

    def numbers_of(self, keys: object, what: str) -> Numbers | None:
        """Where keys stand among the distinct ones; None for all of these, in their order.

        Raises:
            ProgramError: if one is none of them, or they are of another type.
        """
        if keys is self.distinct_keys:
            return None
        if keys is self.keys:
            return self.key_numbers
        if isinstance(keys, pa.ChunkedArray):
            keys = keys.combine_chunks()
        if not isinstance(keys, pa.Array) or keys.type != self.keys.type:
            kind = keys.type if isinstance(keys, pa.Array) else type(keys).__name__
            raise ProgramError(
                f"{what}: expected keys of the call, as ctx.keys has them, in an Arrow array of {self.keys.type}, and "
                f"got {kind}"
            )
        count = len(self.distinct_keys)
        together = numbers_of_columns(_columns_of(pa.concat_arrays([self.distinct_keys, keys])))
        known = np.full(max(int(together.max(initial=0)) + 1, count), -1)
        known[together[:count]] = np.arange(count)
        found: Numbers = known[together[count:]]
        if len(found) and found.min() < 0:
            other = keys[int(np.argmin(found))].as_py()
            raise ProgramError(
                f"{what}: {other!r} is not a key of this call; use state and timers of the keys in ctx.keys only, as a "
                "KeyedProcessFunction uses those of its current key"
            )
        return found


class _TimersOfKeys(Clock, VectorizedTimerService):
    def __init__(self, call: VectorizedCall, moment: Moment) -> None:
        super().__init__(moment)
        self._call = call

    def register_event_time_timers(self, keys: pa.Array, timestamps: object) -> None:
        self._change(self._call.state.timers[0].register, "register_event_time_timers", keys, timestamps)

    def register_processing_time_timers(self, keys: pa.Array, timestamps: object) -> None:
        self._change(self._call.state.timers[1].register, "register_processing_time_timers", keys, timestamps)

    def delete_event_time_timers(self, keys: pa.Array, timestamps: object) -> None:
        self._change(self._call.state.timers[0].delete, "delete_event_time_timers", keys, timestamps)

    def delete_processing_time_timers(self, keys: pa.Array, timestamps: object) -> None:
        self._change(self._call.state.timers[1].delete, "delete_processing_time_timers", keys, timestamps)

    def _change(self, change: _TimerChange, what: str, keys: object, timestamps: object) -> None:
        """Set or delete timers at the end of the call: no timer fires before."""
        self._call.check()
        places = self._call.places_of(keys, what)
        if isinstance(timestamps, pa.Array | pa.ChunkedArray):
            if timestamps.null_count:
                raise ProgramError(f"{what}: {timestamps.null_count} of the times are null; leave these keys out")
            timestamps = timestamps.to_numpy()
        times = np.asarray(timestamps)
        if not np.issubdtype(times.dtype, np.integer) and times.size:
            raise ProgramError(f"{what}: times are whole milliseconds, and these are of type {times.dtype}")
        if times.ndim == 0:
            times = np.full(len(places), times)
        _check_length(what, len(places), len(times))
        self._call.timers.append((change, places, times.astype(np.int64)))


def _check_length(what: str, keys: int, others: int) -> None:
    if keys != others:
        raise ProgramError(f"{what}: there are {others} values for {keys} keys; give one for each")


def _columns_of(keys: pa.Array) -> list[pa.Array]:
    return list(map(key_column, keys.flatten() if pa.types.is_struct(keys.type) else [keys]))


def _distinct(keys: pa.Array) -> tuple[pa.Array, Numbers]:
    """Each key once, in the order in which they come first, and where the key of each row stands there."""
    numbers = numbers_of_columns(_columns_of(keys))
    return keys.take(pa.array(first_rows(numbers))), numbers


def keys_of_fields(fields: Sequence[pa.Array], names: Sequence[str]) -> pa.Array:
    """Keys, given their fields: these themselves, or structs of several."""
    return fields[0] if len(fields) == 1 else pa.StructArray.from_arrays(fields, names=list(names))


@dataclass(frozen=True, slots=True)
class VectorizedProcessSpec:
    """All that describes the operator; picklable.

    ``dead_letters`` is the side output of elements and timers that its function cannot handle; None: they are errors.
    """

    name: str
    function: VectorizedKeyedProcessFunction
    key: Key
    value_type: TypeInformation
    output_type: TypeInformation
    dead_letters: str | None = None
    state: StateOfKeys = field(default_factory=StateOfKeys, compare=False, repr=False)

    @property
    def has_timers(self) -> bool:
        """Whether the function does something when timers fire."""
        inherited = getattr(self.function.on_timers, "__func__", None)
        return inherited is not VectorizedKeyedProcessFunction.on_timers

    @property
    def needs_clock(self) -> bool:
        """Whether the function may set timers by the clock."""
        return self.has_timers

    @property
    def runs_without_data(self) -> bool:
        """Whether the code of the function does not rule that out."""
        return self.has_timers and may_set_timers_of_clock(self.function)

    @property
    def sort_inputs(self) -> SortInputs:
        """Sorts by timestamps."""
        return partial(columns_in_time_order, self.value_type)

    @property
    def state_of_functions(self) -> KeyedStateStore:
        """Where the function finds its state."""
        return self.state

    def user_functions(self) -> list[Any]:
        """The function, to be opened and closed."""
        return [self.function]

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        return [
            ("function", type(self.function).__name__),
            ("state", "per key, in rows that are read when their keys are touched"),
            ("timers", "by key" if self.has_timers else "none"),
            *described(self.dead_letters),
        ]

    def stored_keys(self, keys: pa.Array) -> list[pa.Array]:
        """Some keys, as they are stored."""
        kind = self.key.type_info.arrow_type()
        if not pa.types.is_struct(keys.type):
            return [keys.cast(kind)]
        return [part.cast(field.type) for part, field in zip(keys.flatten(), kind, strict=True)]

    def key_of(self, keys: pa.Array) -> Any:
        """The object of the one key in an array."""
        kind, parts = self.key.type_info, self.stored_keys(keys)
        stored = parts[0] if len(parts) == 1 else pa.StructArray.from_arrays(parts, fields=list(kind.arrow_type()))
        return kind.from_arrow(stored)[0]
