"""Rolling aggregation: each element of a key is combined with those before it, and the result is emitted.

On columns, the elements of each key are combined in their order, those of all keys together. There are two ways to do
it. A sum, an extreme, a first or last field (a *fold*) is found in one pass over elements that lie side by side by key.
Any other function that can be traced is called with the first elements of all keys and their second ones, with what
comes of that and the third ones, and so on.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from eventide.api.functions import KeyedProcessFunction, KeyedStateStore, ReduceFunction, RuntimeContext
from eventide.api.state import (
    AggregatingState,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.typeinfo import CompositeTypeInfo, DictTypeInfo, TypeInformation
from eventide.common.types import Row
from eventide.errors import DataError, ProgramError
from eventide.runtime.chain.outputs import described
from eventide.runtime.elements.elements import (
    Columns,
    Elements,
    Numbers,
    columns_of_fields,
    from_fields,
    interleave,
    types_of_fields,
)
from eventide.runtime.elements.keys import first_rows, hashes_of_parts, numbers_of_columns
from eventide.runtime.elements.ordering import order_by
from eventide.runtime.exchange.selected_keys import extracted_keys, key_parts
from eventide.runtime.process.functions import Handle, Processing, ProcessSpec, Results
from eventide.runtime.process.operator import KeyedProcessOperator
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.declared import REDUCING
from eventide.runtime.state.key_context import FUNCTION_STATE
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.keyed_columns import KeyedColumns
from eventide.runtime.state.rows_of_keys import NoColumns
from eventide.runtime.state.transaction import TransactionalState
from eventide.runtime.tasks.operator import Key, Operator, OperatorContext, Receive, WithoutClock, is_exact
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import combined
from eventide.runtime.tracing.folds import SUMS, FieldFold, FieldOfExtreme, Fold, How, fold_of
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import reason_of

_NAME = "reduced"
REDUCED = FUNCTION_STATE + _NAME
"""The name under which what a key has lies in its state."""

_Descriptor = TypeVar("_Descriptor", bound=StateDescriptor[Any])

_OF_FUNCTION = "reduce function: "
"""The beginning of the name under which a function's own state is stored, if its name is that of the result."""


class _StateOfFunction(KeyedStateStore):
    """The reduce function's own state.

    A state that has the name of the result is stored under another one; all others are stored under their names.
    """

    def __init__(self, store: KeyedStateStore) -> None:
        self._store = store

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._store.get_state(_beside_result(state_descriptor))

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._store.get_list_state(_beside_result(state_descriptor))

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._store.get_map_state(_beside_result(state_descriptor))

    def get_reducing_state(self, state_descriptor: StateDescriptor[ReducingState[Any]]) -> ReducingState[Any]:
        return self._store.get_reducing_state(_beside_result(state_descriptor))

    def get_aggregating_state(
        self, state_descriptor: StateDescriptor[AggregatingState[Any, Any]]
    ) -> AggregatingState[Any, Any]:
        return self._store.get_aggregating_state(_beside_result(state_descriptor))


def _beside_result(descriptor: _Descriptor) -> _Descriptor:
    """A descriptor with another name, if its own is that of the result."""
    if not isinstance(descriptor, StateDescriptor) or descriptor.name != _NAME:
        return descriptor  # the store says what is wrong with it
    renamed = copy.copy(descriptor)
    renamed.name = _OF_FUNCTION + _NAME
    return renamed


class _Reduces(KeyedProcessFunction):
    """Keeps the result of each key; in batch execution it is emitted at the end, as in Flink."""

    def __init__(self, function: ReduceFunction, element_type: TypeInformation) -> None:
        self.function = function
        self._element_type = element_type
        self.__wrapped__ = function

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the user's function, and find the state."""
        store = runtime_context.state
        own = None if store is None else _StateOfFunction(store)
        self.function.open(replace(runtime_context, state=own))
        descriptor = ReducingStateDescriptor(_NAME, self.function, self._element_type)
        self._state: Any = runtime_context.get_reducing_state(descriptor)

    def close(self) -> None:
        """Close the user's function."""
        self.function.close()

    def process_element(self, value: object, ctx: Any) -> Results:
        """Add an element, and give what the key has with it."""
        self._state.include(value)
        if ctx.in_batch:
            ctx.timer_service().register_event_time_timer(MAX_MS)
            return None
        return (self._state.get(),)

    def on_timer(self, timestamp: int, ctx: object) -> Results:
        """Give what the key has at the end."""
        return (self._state.get(),)


@dataclass(frozen=True, slots=True)
class Rolling(Processing):
    """A ``ReduceFunction`` on a keyed stream."""

    user_function: _Reduces

    @staticmethod
    def of(function: ReduceFunction, kind: str, element_type: TypeInformation) -> Rolling:
        """The rolling aggregation by a function of elements of a type."""
        return Rolling(_Reduces(function, element_type), kind)

    @property
    def function(self) -> ReduceFunction:
        """The function itself."""
        return self.user_function.function

    @property
    def on_element(self) -> tuple[Handle, ...]:
        return (self.user_function.process_element,)

    @property
    def on_timer(self) -> Handle | None:
        """The end of batch execution."""
        return self.user_function.on_timer

    @property
    def may_wait_for_clock(self) -> bool:
        """False: its only timers are of event time."""
        return False


def lower(value: object, other: object) -> Any:
    """The lower of two values; of equal ones the first."""
    return other if _is_lower(other, value) else value


def higher(value: object, other: object) -> Any:
    """The higher of two values; of equal ones the first."""
    return other if _is_lower(value, other) else value


def _is_lower(one: object, other: Any) -> bool:
    """Whether a value is lower than another: NaN is higher than any number, and all NaN are equal, as in Java.

    >>> nan = float("nan")
    >>> _is_lower(1.0, nan), _is_lower(nan, 1.0), _is_lower(nan, nan)
    (True, False, False)
    """
    return bool(one < other or (other != other and one == one))  # noqa: PLR0124 - NaN does not equal itself


class Accumulates(ReduceFunction):
    """Combines one field; the others stay those of the first element."""

    def __init__(self, combine: Callable[[Any, Any], Any], field: int | str) -> None:
        self._combine = combine
        self._field = field

    def reduce(self, value1: object, value2: object) -> Any:
        """Return the first element, with a new value of the field."""
        field = self._field
        return with_field(value1, field, self._combine(field_of(value1, field), field_of(value2, field)))

    def fold(self, type_info: TypeInformation) -> Fold | None:
        """The fold that it is for elements of a type; None if it has to be called."""
        found = _place_and_type(self._field, type_info)
        if found is None or (self._combine is operator.add and str(found[1]) not in _ADDED):
            return None
        place, _ = found
        fields: list[FieldFold] = [How.FIRST] * len(types_of_fields(type_info))
        is_sum = self._combine is operator.add
        fields[place] = How.SUM if is_sum else FieldOfExtreme(((place, self._combine is higher),))
        return Fold(type_info, tuple(fields))


class Chooses(ReduceFunction):
    """The element with the extreme value of a field; of equal ones the first, or the last."""

    def __init__(self, field: int | str, *, highest: bool, first: bool) -> None:
        self._field = field
        self._highest = highest
        self._first = first

    def reduce(self, value1: object, value2: object) -> Any:
        """Return the element with the lower or the higher field; of two equal ones, the first or the second."""
        one, other = field_of(value1, self._field), field_of(value2, self._field)
        if _is_lower(one, other):
            return value2 if self._highest else value1
        if _is_lower(other, one):
            return value1 if self._highest else value2
        return value1 if self._first else value2

    def fold(self, type_info: TypeInformation) -> Fold | None:
        """The fold that it is for elements of a type; None if it has to be called."""
        found = _place_and_type(self._field, type_info)
        if found is None:
            return None
        how = FieldOfExtreme(((found[0], self._highest),), not self._first)
        return Fold(type_info, (how,) * len(types_of_fields(type_info)))


_ADDED = ("BYTE", "SHORT", "INT", "LONG", "DOUBLE")


def _place_and_type(field: int | str, type_info: TypeInformation) -> tuple[int, TypeInformation] | None:
    """The place and type of a field that columns compare and add up as Python does; None for any other."""
    if isinstance(type_info, CompositeTypeInfo):
        names, kinds = type_info.field_names, type_info.types
        place = names.index(field) if field in names else field
        if (
            (isinstance(type_info, DictTypeInfo) and field not in names)
            or not isinstance(place, int)
            or not 0 <= place < len(kinds)
        ):
            return None
        kind = kinds[place]
    else:
        place, kind = 0, type_info
        if field != 0:
            return None
    return (place, kind) if is_exact(kind) or str(kind) in ("FLOAT", "DOUBLE") else None


def field_of(value: object, field: int | str) -> Any:
    """The value of a field, by its place or its name.

    Raises:
        ProgramError: if the element has no such field.

    >>> field_of((1, 2), 1), field_of((1, 2), "f1"), field_of({"a": 3}, "a"), field_of(4, 0)
    (2, 2, 3, 4)
    """
    try:
        if isinstance(value, Row | dict) or (isinstance(value, list | tuple) and isinstance(field, int)):
            return value[field]  # type: ignore[index]
        if isinstance(field, str):
            return value[_place(field)] if type(value) is tuple else getattr(value, field)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise _no_field(value, field) from error
    if field != 0:
        raise _no_field(value, field)
    return value


def with_field(value: Any, field: int | str, new: object) -> Any:
    """A copy of an element that has another value in one field.

    >>> with_field((1, 2), "f1", 5), with_field({"a": 3}, "a", 5), with_field(4, 0, 5)
    ((1, 5), {'a': 5}, 5)
    """
    if isinstance(value, dict):
        return {**value, field: new}
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a namedtuple
        named = {value._fields[field] if isinstance(field, int) else field: new}
        return value._replace(**named)  # type: ignore[attr-defined]
    if isinstance(value, tuple) and not isinstance(value, Row):
        at = _place(field) if isinstance(field, str) else range(len(value))[field]
        return (*value[:at], new, *value[at + 1 :])
    if isinstance(value, Row | list):
        changed = copy.copy(value)
        changed[field] = new  # type: ignore[index]
        return changed
    if isinstance(field, str):
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{field: new})
        changed = copy.copy(value)
        setattr(changed, field, new)
        return changed
    return new


def _place(field: str) -> int:
    """The place of a field of a tuple, whose fields are called f0, f1, …."""
    if not field.startswith("f"):
        raise ValueError(field)
    return int(field[1:])


def _no_field(value: object, field: int | str) -> ProgramError:
    return ProgramError(f"an element of type {type(value).__name__} has no field {field!r}: {value!r:.200}")


_MOST = 2**63
_FEW_STEPS = 64
_WORTH_A_STEP = 32
"""The number of elements that Python handles in the time of one step of all keys on columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingSpec(ProcessSpec):
    """All that describes a rolling aggregation that works on columns, and on objects where it has to.

    ``kind`` is the type of its columns: the declared one, or, if none is declared, that of a trace of the functions
    before it. In the latter case, elements of another type may come at any time, and then it works on objects.
    """

    function: ReduceFunction
    key: Key
    kind: TypeInformation

    @property
    def speed(self) -> str:
        """On columns, and how."""
        how = "in one pass" if fold_or_none(self.function, self.kind) else "the next element of all keys at once"
        return f"columns, {how}"

    def describe(self) -> list[tuple[str, str]]:
        state = "one value for each key, in Arrow columns of which those of touched keys are read"
        return [("function", type(self.function).__name__), ("state", state), *described(self.dead_letters)]


class RollingOperator(WithoutClock, Operator):
    """Emits the new result of the key after each element. Flink: ``StreamGroupedReduceOperator``.

    What columns cannot do as Python does, the function does element by element, for the rest of the micro-batch.
    """

    def __init__(self, spec: RollingSpec, backend: Backend, context: OperatorContext) -> None:
        self._spec = spec
        self._backend = backend
        self._context = context
        self._state = KeyedColumns(backend, spec.key.type_info, context.max_parallelism)
        self._state.declare(REDUCED, spec.output_type, REDUCING)
        self._in_python: KeyedProcessOperator | None = None
        self._results: list[Columns] = []

    @property
    def inputs(self) -> Sequence[Receive]:
        return (self._receive,)

    @property
    def late_until(self) -> int:
        """``MIN_MS``: nothing is late."""
        return MIN_MS

    def reacts_to(self, watermark_ms: int) -> bool:
        """False: no watermark changes anything."""
        return False

    def advance(self, watermark_ms: int) -> None:
        """Nothing happens: there are no timers."""

    def take_outputs(self) -> Mapping[str | None, Elements]:
        results, self._results = self._results, []
        outputs = {} if self._in_python is None else dict(self._in_python.take_outputs())
        if results:
            outputs[None] = Elements(columns=Columns.joined(results))
        return outputs

    def flush(self) -> None:
        (self._in_python or self._state).flush()

    def held(self) -> Mapping[str, int]:
        return (self._in_python or self._state).held()

    def _receive(self, parts: list[Elements]) -> None:
        if self._in_python is None:
            try:
                self._results.append(self._rolled(parts))
                return
            except (Guard, NotTraceable, NoColumns, pa.ArrowException) as error:
                self._context.metrics.count_in_python(self._spec.name, reason_of(error))
                self._state.flush()
                self._in_python = self._operator_in_python()
        elements = interleave(parts)
        elements.keys = extracted_keys(self._spec.key.select, elements)
        self._in_python.inputs[0]([elements])

    def _operator_in_python(self) -> KeyedProcessOperator:
        kind = KeyedState if self._spec.dead_letters is None else TransactionalState
        return KeyedProcessOperator(self._spec, kind(self._backend, self._context.max_parallelism), self._context)

    def _rolled(self, channels: list[Elements]) -> Columns:
        """The results for some elements, after which the state is that of the last of each key.

        Elements stay as they lie in memory, beside the `arrival` of each: the rows of results are taken once. The
        values of their keys are elements that came before.

        Raises:
            NoColumns: if columns would not give the values back as they are.
        """
        key, kind = self._spec.key, self._spec.kind
        columns = Columns.joined([_columns_of(elements, kind) for elements in channels])
        arrival = np.arange(len(columns))
        if len(channels) > 1:
            arrival = np.argsort(columns.sequence.to_numpy(), kind="stable")
        parts, _ = key_parts(columns, key.columns, key.select)
        groups = numbers_of_columns(parts)
        firsts = first_rows(groups)
        keys = [part.take(pa.array(firsts)) for part in parts]
        places = self._state.places_of(hashes_of_parts(keys, key.type_info), keys)
        before = self._state.get_as_they_are(REDUCED, places, kind)
        of_known, before = np.flatnonzero(before.is_valid()), before.drop_null()
        values, known = pa.concat_arrays([before, columns.values]) if len(before) else columns.values, len(before)
        numbers = np.concatenate([of_known, groups])
        of_groups = RollingGroups(numbers, np.concatenate([np.arange(known), known + arrival]), known)
        results = of_groups.rolled(self._spec.function, values, kind)
        last = np.empty(len(firsts), np.int64)
        last[groups[arrival]] = np.arange(len(results))
        self._state.put(REDUCED, places, results.take(pa.array(last)), kind)
        number = sum(map(len, self._results))
        sequence = pa.array(np.arange(number, number + len(results)))
        times = None if columns.timestamps is None else columns.timestamps.take(pa.array(arrival))
        return Columns(columns.type_info, results, times, sequence)


def _columns_of(elements: Elements, kind: TypeInformation) -> Columns:
    """Elements as columns of a type, which give them back as they are.

    Raises:
        Guard: if there are none.
    """
    columns = elements.columns
    if columns is None and kind.keeps(elements.values):
        with suppress(DataError):  # a number beyond 64 bits, or half of a surrogate pair
            columns = elements.as_columns(kind)
    if columns is None or columns.type_info != kind:
        raise Guard("an element of another type than the code before it shows")
    return columns


def fold_or_none(function: ReduceFunction, kind: TypeInformation) -> Fold | None:
    """The fold that a rolling aggregation is; None for any other function, which is called step by step."""
    if isinstance(function, Accumulates | Chooses):
        return function.fold(kind)
    try:
        return fold_of(function.reduce, kind)
    except NotTraceable:
        return None


class RollingGroups:
    """Elements by their group.

    Args:
        numbers: the group of each element, from 0.
        arrival: the places of the elements, in the order in which they came.
        before: how many of these came before, so that their results are not wanted.
    """

    def __init__(self, numbers: Numbers, arrival: Numbers, before: int = 0) -> None:
        self.wanted = arrival[before:]
        self._order = arrival[order_by(numbers[arrival])]
        self._numbers = numbers[self._order]
        self._sizes = np.bincount(numbers)
        self._starts = np.cumsum(self._sizes) - self._sizes

    def rolled(self, function: ReduceFunction, values: pa.Array, kind: TypeInformation) -> pa.Array:
        """For each element, what a function makes of those of its group up to it.

        Raises:
            NotTraceable: if columns might not give what the function gives.
            Guard: if they might not for these elements.
        """
        if len(self._sizes) == len(values):
            return values.take(pa.array(self.wanted))  # nothing is combined with anything
        fold = fold_or_none(function, kind)
        if fold is None:
            return self._step_by_step(function, values, kind)
        if values.null_count:
            raise Guard("an element that is None")
        fields = columns_of_fields(values, kind)
        if not isinstance(function, Accumulates | Chooses):  # these have an order in which NaN has a place
            fold.check(fields)
        chosen = {how: pa.array(self._chosen(how, fields)) for how in {*fold.fields} - SUMS}
        if len({*fold.fields}) == len(chosen) == 1:
            return values.take(chosen[fold.fields[0]])
        rolled = [
            self._summed(field) if how in SUMS else field.take(chosen[how])
            for how, field in zip(fold.fields, fields, strict=True)
        ]
        return from_fields(rolled, kind)

    def _as_they_came(self, found: object) -> Any:
        """The results that are wanted, from those of all elements in the order of their groups."""
        of_places = np.empty_like(found)
        of_places[self._order] = found
        return of_places[self.wanted]

    def _chosen(self, how: FieldFold, fields: Sequence[pa.Array]) -> Numbers:
        """The place of the element that the result of each comes from."""
        if how is How.LAST:
            return self.wanted
        if isinstance(how, FieldOfExtreme):
            chosen = how.choices(fields, self._order, self._numbers)
        else:
            chosen = self._order[self._starts[self._numbers]]
        wanted: Numbers = self._as_they_came(chosen)
        return wanted

    def _summed(self, column: pa.Array) -> pa.Array:
        if column.null_count:
            raise Guard("a field that is None, and is added up")
        numbers = column.to_numpy()[self._order]
        if pa.types.is_floating(column.type):
            return pa.array(self._as_they_came(self._float_sums(numbers)))
        try:
            return pa.array(self._as_they_came(self._sums(numbers))).cast(column.type)
        except pa.ArrowInvalid as error:
            raise Guard("a sum that does not fit its type") from error

    def _sums(self, numbers: Numbers) -> Numbers:
        highest = max(abs(int(numbers.max())), abs(int(numbers.min())))
        if highest * int(self._sizes.max()) >= _MOST:
            raise Guard("a sum with more than 64 bits")
        total = np.cumsum(numbers, dtype=np.int64)  # what is too large in the whole comes out right in the difference
        sums: Numbers = total - (total - numbers)[self._starts][self._numbers]
        return sums

    def _float_sums(self, numbers: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Sums in the order of the elements, each added to those before it: the result of another order is another."""
        sums = numbers.copy()
        with np.errstate(all="ignore"):
            for group in np.flatnonzero(self._sizes > _FEW_STEPS).tolist():
                span = slice(self._starts[group], self._starts[group] + self._sizes[group])
                np.add.accumulate(numbers[span], out=sums[span])
            for at in self._steps(self._sizes <= _FEW_STEPS):
                sums[at] += sums[at - 1]
        return sums

    def _step_by_step(self, function: ReduceFunction, values: pa.Array, kind: TypeInformation) -> pa.Array:
        if values.null_count:
            raise Guard("an element that is None")
        most = int(self._sizes.max())
        if most > _FEW_STEPS and most * _WORTH_A_STEP > len(values):
            raise Guard("few keys with many elements each")
        places = [self._starts[np.argsort(-self._sizes, kind="stable")], *self._steps(np.ones(len(self._sizes), bool))]
        elements = [self._order[at] for at in places]
        made = [values.take(pa.array(elements[0]))]
        for at in elements[1:]:
            made.append(combined(function.reduce, kind, made[-1].slice(0, len(at)), values.take(pa.array(at))))
            if made[-1].null_count:
                raise Guard("a result that is None, after which the key starts again with its next element")
        place_of = np.empty(len(values), np.int64)
        place_of[np.concatenate(elements)] = np.arange(len(values))
        return pa.concat_arrays(made).take(pa.array(place_of[self.wanted]))

    def _steps(self, those: np.ndarray[Any, np.dtype[np.bool_]]) -> Iterator[Numbers]:
        """The second elements of some groups, their third ones, and so on; those of the largest groups first."""
        groups = np.flatnonzero(those)
        groups = groups[np.argsort(-self._sizes[groups], kind="stable")]
        starts, sizes = self._starts[groups], self._sizes[groups]
        for step in range(1, int(sizes.max(initial=0))):
            yield starts[: np.searchsorted(-sizes, -step, side="left")] + step
