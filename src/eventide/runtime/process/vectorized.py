"""The operator that hands the elements, and the timers, of many keys at once to a function on columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from eventide.api.functions import KeyedStateStore, VectorizedKeyedProcessFunction
from eventide.api.functions.output_tag import OutputTag
from eventide.api.functions.timers import TimeDomain, VectorizedTimerService
from eventide.api.state import StateDescriptor, ValueStateDescriptor, VectorizedValueState
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError
from eventide.runtime.chain.batch_operators import values_of
from eventide.runtime.chain.chained_operators import Clock, Moment
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Columns, Elements, Numbers, columns_in_time_order, interleaved_columns
from eventide.runtime.elements.keys import first_rows, hashes_of_columns, key_column, numbers_of_columns
from eventide.runtime.exchange.partitioners import KeyGroupPartitioner
from eventide.runtime.invoke import calling
from eventide.runtime.process.operation import identity_of
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.key_context import FUNCTION_STATE
from eventide.runtime.state.keyed_columns import KeyedColumns
from eventide.runtime.state.timer_arrays import TimerArrays
from eventide.runtime.tasks.operator import (
    Key,
    Operator,
    OperatorContext,
    OperatorInput,
    PlannedOperator,
    Receive,
    SortInputs,
)


class _NoCall:
    """Stands where no call is under way."""

    def __getattr__(self, name: str) -> NoReturn:
        raise _no_call()


def _no_call() -> ProgramError:
    return ProgramError(
        "state, timers and outputs belong to a call, and there is none here; get state in open(), and use it, and the "
        "context of the call, in process_batch() and on_timers()"
    )


_NO_CALL: Any = _NoCall()


class StateOfKeys(KeyedStateStore):
    """Where the function finds its state: it stays for as long as it is open, while ``call`` changes.

    On its way to a worker it forgets everything.
    """

    def __init__(self) -> None:
        self.call: _Call = _NO_CALL
        self.declared: dict[str, TypeInformation] = {}
        self.keyed: KeyedColumns | None = None

    def begin(self, keyed: KeyedColumns) -> None:
        """Begin a micro-batch on the state that the operator has in it."""
        self.keyed = keyed
        for name, type_info in self.declared.items():
            keyed.declare(name, type_info)

    def get_vectorized_state(self, state_descriptor: ValueStateDescriptor) -> VectorizedValueState:
        """The state of many keys.

        Raises:
            ProgramError: if it has a time to live, or no declared type, or was declared with another one.
        """
        name, kind = state_descriptor.name, state_descriptor.type_info
        if not isinstance(state_descriptor, ValueStateDescriptor):
            raise self._refused(state_descriptor)
        if state_descriptor.ttl_config is not None:
            raise ProgramError(
                f"the state {name!r} has a time to live, which a function on columns cannot give it; set a timer, and "
                "clear the state when it fires"
            )
        if kind.is_pickled:
            raise ProgramError(
                f"the state {name!r} is of type {kind}, which is no column; declare what it holds, such as Types.LONG()"
            )
        known = self.declared.setdefault(FUNCTION_STATE + name, kind)
        if known != kind:
            raise ProgramError(f"the state {name!r} is declared as {known} and as {kind}; give each a name of its own")
        if self.keyed is not None:
            self.keyed.declare(FUNCTION_STATE + name, kind)
        return _State(self, FUNCTION_STATE + name, kind)

    def _refused(self, state_descriptor: StateDescriptor) -> ProgramError:
        return ProgramError(
            f"the state {state_descriptor.name!r} is asked for as one of a single key, by a function that is called "
            "for many at once; use get_vectorized_state with a ValueStateDescriptor"
        )

    def get_state(self, state_descriptor: Any) -> NoReturn:
        """Refused: it belongs to a single key."""
        raise self._refused(state_descriptor)

    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state

    def __reduce__(self) -> tuple[type[StateOfKeys], tuple[()]]:
        return StateOfKeys, ()


class _State(VectorizedValueState):
    def __init__(self, at: StateOfKeys, name: str, type_info: TypeInformation) -> None:
        self._at = at
        self._name = name
        self._type = type_info

    def get(self, keys: pa.Array) -> pa.Array:
        call = self._at.call
        return call.state.get(self._name, call.places_of(keys, "get"), self._type)

    def put(self, keys: pa.Array, values: Any) -> None:
        call = self._at.call
        stored = values_of(values, self._type)
        places = call.places_of(keys, "put")
        _check_length("put", len(places), len(stored))
        call.state.put(self._name, places, stored, self._type)

    def clear(self, keys: pa.Array) -> None:
        call = self._at.call
        call.state.clear(self._name, call.places_of(keys, "clear"))


class _Call(VectorizedKeyedProcessFunction.OnTimersContext):
    """One call of the function, with its keys and its results.

    Of timers, ``places`` are those of their keys, of which each is there once.
    """

    def __init__(
        self,
        operator: VectorizedProcessOperator,
        keys: pa.Array,
        timestamps: pa.Array | None,
        domain: TimeDomain | None = None,
        places: Numbers | None = None,
    ) -> None:
        self._operator = operator
        self._domain = domain
        self.state = operator.state
        self.keys = keys
        self.timestamps = pa.nulls(len(keys), pa.int64()) if timestamps is None else timestamps
        self.results: dict[str | None, list[tuple[TypeInformation, pa.Array, Numbers]]] = {}
        if places is None:
            self.distinct_keys, numbers = _distinct(keys)
            hashes = hashes_of_columns(_columns_of(self.distinct_keys))
            self.places = self.state.places_of(hashes, operator.stored_keys(self.distinct_keys))
        else:
            self.distinct_keys, numbers = keys, np.arange(len(keys))
            self.places = places
        numbers.flags.writeable = False
        self.key_numbers = numbers

    def timer_service(self) -> VectorizedTimerService:
        return _Timers(self, self._operator.moment)

    def time_domain(self) -> TimeDomain:
        if self._domain is None:
            raise ProgramError("time_domain() tells of the timers that fire; no timer fires here")
        return self._domain

    def collect(self, results: Any, rows: Any = None) -> None:
        self._put(None, self._operator.spec.output_type, results, rows)

    def output(self, output_tag: OutputTag, results: Any, rows: Any = None) -> None:
        if output_tag.type_info.is_pickled:
            raise ProgramError(
                f"the side output {output_tag.tag_id!r} has no declared type, which results in columns need; give "
                "its OutputTag one"
            )
        self._put(output_tag.tag_id, output_tag.type_info, results, rows)

    def _put(self, tag: str | None, type_info: TypeInformation, results: Any, rows: Any) -> None:
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
                f"there are {len(values)} results of {len(origins)} rows; give the rows that they come from, one for "
                "each result"
            )
        if len(origins) and not 0 <= origins.min() <= origins.max() < count:
            raise ProgramError(f"rows are from {origins.min()} to {origins.max()}, and the call has 0 to {count - 1}")
        self.results.setdefault(tag, []).append((type_info, values, origins.astype(np.int64)))

    def check(self) -> None:
        """Refuse what is done when the call is over."""
        if self._operator.spec.state.call is not self:
            raise _no_call()

    def places_of(self, keys: Any, what: str) -> Numbers:
        """Where the state of keys is found."""
        numbers = self.numbers_of(keys, what)
        return self.places if numbers is None else self.places[numbers]

    def numbers_of(self, keys: Any, what: str) -> Numbers | None:
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
                f"{what}: {other!r} is no key of this call; state and timers can be used of the keys in ctx.keys, as "
                "those of a KeyedProcessFunction belong to the key at hand"
            )
        return found


class _Timers(Clock, VectorizedTimerService):
    def __init__(self, call: _Call, moment: Moment) -> None:
        super().__init__(moment)
        self._call = call

    def register_event_time_timers(self, keys: pa.Array, timestamps: Any) -> None:
        self._call.state.timers[0].register(*self._rows("register_event_time_timers", keys, timestamps))

    def register_processing_time_timers(self, keys: pa.Array, timestamps: Any) -> None:
        self._call.state.timers[1].register(*self._rows("register_processing_time_timers", keys, timestamps))

    def delete_event_time_timers(self, keys: pa.Array, timestamps: Any) -> None:
        self._call.state.timers[0].delete(*self._rows("delete_event_time_timers", keys, timestamps))

    def delete_processing_time_timers(self, keys: pa.Array, timestamps: Any) -> None:
        self._call.state.timers[1].delete(*self._rows("delete_processing_time_timers", keys, timestamps))

    def _rows(self, what: str, keys: Any, timestamps: Any) -> tuple[Numbers, Numbers]:
        """The places of keys, and the time of each."""
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
        return places, times.astype(np.int64)


def _check_length(what: str, keys: int, others: int) -> None:
    if keys != others:
        raise ProgramError(f"{what}: there are {others} values for {keys} keys; give one for each")


def _columns_of(keys: pa.Array) -> list[pa.Array]:
    return list(map(key_column, keys.flatten() if pa.types.is_struct(keys.type) else [keys]))


def _distinct(keys: pa.Array) -> tuple[pa.Array, Numbers]:
    """Each key once, in the order in which they come first, and where the key of each row stands there."""
    numbers = numbers_of_columns(_columns_of(keys))
    return keys.take(pa.array(first_rows(numbers))), numbers


@dataclass(frozen=True, slots=True)
class VectorizedProcessSpec:
    """All that describes the operator; picklable."""

    name: str
    function: VectorizedKeyedProcessFunction
    key: Key
    value_type: TypeInformation
    output_type: TypeInformation
    state: StateOfKeys = field(default_factory=StateOfKeys, compare=False, repr=False)

    @property
    def has_timers(self) -> bool:
        """Whether the function does something when timers fire."""
        return type(self.function).on_timers is not VectorizedKeyedProcessFunction.on_timers

    @property
    def needs_clock(self) -> bool:
        """Whether the function may set timers by the clock."""
        return self.has_timers

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
            ("state", "per key, in buckets that are read when one of their keys is touched"),
            ("timers", "by key" if self.has_timers else "none"),
        ]


class VectorizedProcessOperator(Operator):
    """Calls the function with the elements of all keys that come under one watermark, and with the timers due.

    Flink: ``KeyedProcessOperator``.
    """

    def __init__(self, spec: VectorizedProcessSpec, backend: Backend, context: OperatorContext) -> None:
        self.spec = spec
        self.state = KeyedColumns(backend, spec.key.type_info, context.max_parallelism, in_batch=context.in_batch)
        self.moment = Moment(context.watermark_ms, context.clock_ms)
        self._outputs: dict[str | None, list[Columns]] = {}
        spec.state.begin(self.state)

    @property
    def inputs(self) -> Sequence[Receive]:
        return (self._receive,)

    @property
    def late_until(self) -> int:
        """``MIN_MS``: the function takes all elements."""
        return MIN_MS

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: the function may look at the watermark."""
        return True

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, and fire the timers that it passes."""
        self.moment.watermark = watermark_ms
        self._fire(self.state.timers[0], watermark_ms, TimeDomain.EVENT_TIME)

    def advance_clock(self, clock_ms: int) -> None:
        """Fire the timers of processing time that are set for a time or before."""
        self._fire(self.state.timers[1], clock_ms, TimeDomain.PROCESSING_TIME)

    @property
    def next_clock_ms(self) -> int | None:
        return self.state.timers[1].next_ms()

    def timers_left(self) -> int:
        return 0 if self.next_clock_ms is None else self.state.timers[1].count()

    def take_outputs(self) -> Mapping[str | None, Elements]:
        outputs, self._outputs = self._outputs, {}
        found = {}
        for tag, parts in outputs.items():
            columns = Columns.joined(parts)
            columns.sequence = pa.array(np.arange(len(columns)))
            found[tag] = Elements(columns=columns)
        return found

    def flush(self) -> None:
        self.state.expire(self.moment.processing_time)
        self.state.flush()

    def held(self) -> dict[str, int]:
        return self.state.held()

    def _receive(self, parts: list[Elements]) -> None:
        columns = interleaved_columns(parts, self.spec.value_type)
        fields = [columns.field(name) for name in self.spec.key.columns]
        call = _Call(self, _keys(fields, self.spec.key.columns), columns.timestamps)
        self._called(self.spec.function.process_batch, columns.fields(), call, "while it handled a batch")
        for tag, of_tag in call.results.items():
            kinds, values, rows = zip(*of_tag, strict=True)
            together = np.concatenate(rows)
            order = np.argsort(together, kind="stable")
            times = None if columns.timestamps is None else columns.timestamps.take(pa.array(together[order]))
            self._put(tag, kinds[-1], pa.concat_arrays(values).take(pa.array(order)), times)

    def _fire(self, timers: TimerArrays, until_ms: int, domain: TimeDomain) -> None:
        """Fire timers, and put the results out in the order of the timers of all calls.

        One that is set meanwhile for a time that is over counts as one of the time at which that happens.
        """
        results: dict[str | None, list[tuple[TypeInformation, pa.Array, tuple[Numbers, ...]]]] = {}
        before: tuple[Numbers, Numbers] | None = None
        reached: Numbers | None = None
        for places, times, numbers in timers.due(until_ms):
            if not self.spec.has_timers:
                continue
            call = _Call(self, self._keys_at(places), pa.array(times), domain, places)
            self._called(self.spec.function.on_timers, call.timestamps, call, "when timers fired")
            at = times
            if before is not None:
                if reached is None:
                    reached = np.full(len(self.state), MIN_MS)
                reached[before[0]] = before[1]
                at = np.maximum(times, reached[places])
            before = places, at
            if call.results:
                groups = self.state.groups(places)
            for tag, of_tag in call.results.items():
                for kind, values, rows in of_tag:
                    order = numbers[rows], groups[rows], at[rows]
                    results.setdefault(tag, []).append((kind, values, (*order, times[rows])))
        for tag, parts in results.items():
            kinds, arrays, columns = zip(*parts, strict=True)
            *by, times = map(np.concatenate, zip(*columns, strict=True))
            in_order = np.lexsort(by)
            stamps = pa.array(times[in_order]) if domain is TimeDomain.EVENT_TIME else None
            self._put(tag, kinds[-1], pa.concat_arrays(arrays).take(pa.array(in_order)), stamps)

    def _keys_at(self, places: Numbers) -> pa.Array:
        """The keys at some places, as the fields of elements have them."""
        key = self.spec.key
        kinds = {part.name: part.type for part in self.spec.value_type.arrow_type()}
        parts = zip(self.state.keys_at(places), key.columns, strict=True)
        return _keys([part.cast(kinds[name]) for part, name in parts], key.columns)

    def stored_keys(self, keys: pa.Array) -> list[pa.Array]:
        """Some keys, as they are stored."""
        kind = self.spec.key.type_info.arrow_type()
        if not pa.types.is_struct(keys.type):
            return [keys.cast(kind)]
        return [part.cast(field.type) for part, field in zip(keys.flatten(), kind, strict=True)]

    def _put(self, tag: str | None, type_info: TypeInformation, values: pa.Array, times: pa.Array | None) -> None:
        if len(values):
            self._outputs.setdefault(tag, []).append(
                Columns(type_info, values, times, pa.array(np.arange(len(values))))
            )

    def _called(self, function: Callable[[Any, Any], Any], argument: Any, call: _Call, during: str) -> None:
        """Call a method of the function, for which the state is that of the call."""
        self.spec.state.call = call
        try:
            with calling(self.spec.name, during=during):
                returned = function(argument, call)
                if returned is not None:
                    raise ProgramError(
                        f"the function returned a {type(returned).__name__}; results are put out with "
                        "ctx.collect(...), and nothing is returned or yielded"
                    )
        finally:
            self.spec.state.call = _NO_CALL


def _keys(fields: Sequence[pa.Array], names: Sequence[str]) -> pa.Array:
    return fields[0] if len(fields) == 1 else pa.StructArray.from_arrays(fields, names=list(names))


@dataclass(frozen=True, slots=True)
class VectorizedOperation:
    """Description of a function on columns."""

    function: VectorizedKeyedProcessFunction
    result_type: TypeInformation
    kind: str = "keyed process"
    endless: str | None = None
    needs_all: bool = False

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """On columns.

        Raises:
            ProgramError: if the key or the elements are no columns.
        """
        (source,) = inputs
        kind, function = source.value_type, type(self.function).__name__
        if source.key is None or kind.is_pickled:
            raise ProgramError(
                f"{name}: {function} is called with columns, so the type of the elements must be declared; give what "
                "they come from an output_type"
            )
        key = source.key.by_field(kind)
        if not key.is_columnar or not _is_comparable(key, kind):
            raise ProgramError(
                f"{name}: {function} is called with columns, so the key must be given by fields of plain types, as in "
                'key_by("user", "country")'
            )
        spec = VectorizedProcessSpec(name, self.function, key, kind, self.result_type)
        partitioner = KeyGroupPartitioner(ElementCodec(kind), key.select, max_parallelism, key_columns=key.columns)
        return PlannedOperator(
            spec,
            VectorizedProcessOperator,
            (partitioner,),
            f"on columns, because {function} is called with batches",
            identity_of([OperatorInput(kind, key)], max_parallelism),
            (None,),
        )


def _is_comparable(key: Key, value_type: TypeInformation) -> bool:
    """Whether Arrow can tell the keys apart."""
    kinds = {part.name: part.type for part in value_type.arrow_type()}
    try:
        numbers_of_columns([pa.nulls(0, kinds[name]) for name in key.columns])
    except pa.ArrowNotImplementedError:
        return False
    return True
