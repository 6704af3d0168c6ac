"""Functions of two elements that meet, as joins on columns call them: on columns of pairs, or with each pair.

Which rows meet, and the state, do not depend on the function: one that stays Python is called with objects made of the
rows that meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.api.functions import Function, JoinFunction, ProcessJoinFunction
from eventide.common.typeinfo import CompositeTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from eventide.common.windows import TimeWindow
from eventide.errors import DEAD_LETTER_ADVICE
from eventide.runtime.chain.outputs import Collector, DeadLetterOutput
from eventide.runtime.columnar.layout import Array
from eventide.runtime.columnar.operator import Gathered
from eventide.runtime.elements.elements import types_of_fields
from eventide.runtime.elements.ordering import equal_runs
from eventide.runtime.elements.ownership import own
from eventide.runtime.invoke import results_of, user_function_error
from eventide.runtime.joins.interval import JOINING, JoinContext
from eventide.runtime.joins.windowed import OfPairs, obstacle_of_keys
from eventide.runtime.metrics import Metrics
from eventide.runtime.tasks.operator import Key, is_exact
from eventide.runtime.tracing.admission import NotTraceable, says_in_python
from eventide.runtime.tracing.column_functions import check_none, guarded, result_type, traced
from eventide.runtime.tracing.evaluation import Arguments, evaluated, flattened
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import place_of, reason_of, why_python
from eventide.runtime.tracing.tracing import Trace
from eventide.runtime.window.operator import FIRING


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of two tables that meet.

    Attributes:
        tables: the rows of either side.
        at: the places of the rows of each pair in them; -1 is no row.
        times: the time of the results of each pair, in milliseconds.
        keys: the key of a pair, given by its number, as the program's functions know it.
    """

    tables: Sequence[pa.Table]
    at: Sequence[Array]
    times: Array
    keys: Callable[[int], Any]

    def __len__(self) -> int:
        return len(self.at[0])


@dataclass(frozen=True, slots=True)
class InWindow:
    """A window in which pairs meet: those of one key follow each other, and ``groups`` has the number of each key."""

    window: TimeWindow
    groups: Array


@dataclass(frozen=True, slots=True)
class InInterval:
    """An interval of time in which pairs meet: the times of both rows, and which side the newer ones are of."""

    times: Sequence[Array]
    newer: int


Meeting: TypeAlias = InWindow | InInterval


@dataclass(frozen=True, slots=True)
class PairFunction:
    """A function that is called with two elements that meet, and the types of these and of its results; picklable."""

    function: OfPairs | ProcessJoinFunction[Any, Any, Any]
    sides: tuple[CompositeTypeInfo, CompositeTypeInfo]
    type_info: TypeInformation

    def of_side(self, side: int) -> tuple[str, ...]:
        """The fields of one side: all, as another program may go on with the state whose function looks at others."""
        return tuple(self.sides[side].field_names)

    @property
    def traced(self) -> Trace:
        """The trace of the function, which computes it on columns.

        Raises:
            NotTraceable: if it stays Python.
        """
        if isinstance(self.function, OfPairs):
            return traced(self.call, *self.sides, several=self.gives_several)
        return traced(self.call, *self.sides, *[Types.LONG()] * 3, several=True, arrange=_with_context)

    @property
    def gives_several(self) -> bool:
        """Whether the function returns or yields any number of results for two elements, not one."""
        return not (isinstance(self.function, OfPairs) and isinstance(self.function.__wrapped__, JoinFunction))

    @property
    def call(self) -> Callable[..., Any]:
        """The function itself."""
        owner = _owner(self.function)
        call: Callable[..., Any] = owner.join if isinstance(self.function, OfPairs) else owner.process_element
        return call

    def speed(self) -> str:
        """How it is called, and why, for ``explain``."""
        reason = why_python(lambda: result_type(self.traced, self.type_info), self.call, self.sides[0])
        return "the function on columns" if reason is None else f"the function in Python, because {reason}"

    def __repr__(self) -> str:
        return f"what {function_name(_owner(self.function))} gives"


def _with_context(values: Sequence[Any]) -> tuple[Any, Any, JoinContext]:
    context = JoinContext()
    left, right, context.left_ms, context.right_ms, context.time_ms = values
    return left, right, context


class _PairArguments(Arguments):
    """The columns of pairs, each of which is made when it is looked at: two elements, and for some functions times."""

    def __init__(self, pairs: Pairs, sides: Sequence[CompositeTypeInfo], times: Sequence[Array]) -> None:
        super().__init__([*[pa.nulls(len(pairs))] * len(sides), *map(pa.array, times)])
        self._pairs = pairs
        self._sides = sides
        self._at = [pa.array(at) for at in pairs.at]

    def column(self, path: tuple[int, ...]) -> pa.Array:
        if path not in self._found and len(path) == 1 and path[0] < len(self._sides):
            kind = self._sides[path[0]]
            fields = [self.column((*path, place)) for place in range(len(kind.types))]
            self._found[path] = pa.StructArray.from_arrays(fields, fields=list(kind.arrow_type()))
        return super().column(path)

    def part(self, path: tuple[int, ...]) -> pa.Array:
        if len(path) != 2:
            return super().part(path)
        side, place = path
        name = self._sides[side].field_names[place]
        return self._pairs.tables[side].column(name).take(self._at[side]).combine_chunks()

    def check_none(self, found: Trace) -> None:
        """Refuse pairs in which something is None that a trace takes for there; no field is looked at that has none.

        Raises:
            Guard: if there are some.
        """
        for side, kind in enumerate(self._sides):
            for place, (name, each) in enumerate(zip(kind.field_names, kind.types, strict=True)):
                column = self._pairs.tables[side].column(name)
                if isinstance(each, CompositeTypeInfo) or (column.null_count and not found.takes_none):
                    check_none(found, self.column((side, place)), each)


class PairCaller:
    """Calls a function with pairs, in their order, and gathers what it gives.

    Args:
        name: the operator's name.
        function: the function.
        outputs: where the results go.
        metrics: counts the pairs that Python is called with because of what is in them.
        dead_letters: the side output of what the function cannot handle; None: that is an error.
    """

    def __init__(
        self, name: str, function: PairFunction, outputs: Gathered, metrics: Metrics, dead_letters: str | None
    ) -> None:
        self._name = name
        self._function = function
        self._outputs = outputs
        self._metrics = metrics
        self._out = Collector(name, function.type_info)
        self._letters = None
        if dead_letters is not None:
            self._letters = DeadLetterOutput(name, dead_letters, self._out, metrics)

    def call(self, pairs: Pairs, meeting: Meeting) -> None:
        """Call the function, on columns if that gives the same."""
        try:
            self._on_columns(pairs, meeting)
            return
        except Guard as guard:
            self._metrics.count_in_python(self._name, reason_of(guard))
        except NotTraceable:
            pass
        sides = [self._values(pairs, side) for side in (0, 1)]
        if isinstance(meeting, InWindow):
            self._in_window(pairs, meeting, sides)
        else:
            self._in_time(pairs, meeting, sides)
        self._outputs.put_elements(self._out.take())

    def _on_columns(self, pairs: Pairs, meeting: Meeting) -> None:
        found = self._function.traced
        kind = result_type(found, self._function.type_info)
        times = [*meeting.times, pairs.times] if isinstance(meeting, InInterval) else []
        arguments = _PairArguments(pairs, self._function.sides, times)
        with guarded():
            arguments.check_none(found)
            if self._function.gives_several:
                values, origins = flattened(found.tree, arguments, {None: kind})[None]
                result_times = pairs.times[origins]
            else:
                values, result_times = evaluated(found.tree, arguments, kind), pairs.times
        self._outputs.put(kind, values, result_times)

    def _values(self, pairs: Pairs, side: int) -> list[Any]:
        """The elements of one side, pair by pair; one that is in several pairs is the same object there."""
        kind = self._function.sides[side]
        distinct, places = np.unique(pairs.at[side], return_inverse=True)
        rows = pairs.tables[side].take(pa.array(distinct))
        fields = [rows.column(name).combine_chunks() for name in kind.field_names]
        elements = kind.from_arrow(pa.StructArray.from_arrays(fields, fields=list(kind.arrow_type())))
        return list(map(elements.__getitem__, places.tolist()))

    def _in_window(self, pairs: Pairs, meeting: InWindow, sides: Sequence[list[Any]]) -> None:
        join, window = self._function.function.results, meeting.window  # type: ignore[union-attr]
        time_ms = window.max_timestamp()
        for begin, end in equal_runs(meeting.groups):
            width = next(equal_runs(pairs.at[0][begin:end]))[1]
            first, second = sides[0][begin:end:width], sides[1][begin : begin + width]
            key = pairs.keys(begin)
            if self._letters is not None:
                act = partial(join, first, second)
                self._letters.call(act, (), FIRING, time_ms, key, window=window)
                continue
            try:
                self._out.put_results(results_of(join(first, second)), time_ms)
            except Exception as error:
                raise user_function_error(
                    self._name, error, during=FIRING, advice=DEAD_LETTER_ADVICE, key=key, window=window
                ) from error

    def _in_time(self, pairs: Pairs, meeting: InInterval, sides: Sequence[list[Any]]) -> None:
        context, process, put = JoinContext(), self._function.call, self._out.put_results
        times = (array.tolist() for array in (*meeting.times, pairs.times))
        for number, (left, right, *of_pair) in enumerate(zip(*sides, *times, strict=True)):
            context.left_ms, context.right_ms, context.time_ms = of_pair
            if self._letters is not None:
                arguments, pair = (own(left), own(right), context), (own(left), own(right))
                self._letters.call(process, arguments, JOINING, context.time_ms, pairs.keys(number), element=pair)
                continue
            try:
                results = process(own(left), own(right), context)
                if results is not None:
                    put(results, context.time_ms)
            except Exception as error:
                element = sides[meeting.newer][number]
                raise user_function_error(
                    self._name,
                    error,
                    during=JOINING,
                    advice=DEAD_LETTER_ADVICE,
                    key=pairs.keys(number),
                    element=element,
                ) from error


def _owner(function: OfPairs | ProcessJoinFunction[Any, Any, Any]) -> Any:
    """The function object of the user's, or that which was made around a plain function."""
    return function.__wrapped__ if isinstance(function, OfPairs) else function


def function_name(owner: object) -> str:
    """The name of a function in messages: that of its class, or of the plain function."""
    name: str = getattr(getattr(owner, "__wrapped__", type(owner)), "__name__", type(owner).__name__)
    return name


def pair_function(
    function: OfPairs | ProcessJoinFunction[Any, Any, Any], types: Sequence[TypeInformation], result: TypeInformation
) -> PairFunction:
    """A function that gets the pairs of a join on columns, of elements that have fields."""
    first, second = (kind for kind in types if isinstance(kind, CompositeTypeInfo))
    return PairFunction(function, (first, second), result)


def obstacle_of_function(
    function: OfPairs | ProcessJoinFunction[Any, Any, Any], types: Sequence[TypeInformation], keys: Sequence[Key | None]
) -> str | None:
    """Why a join whose pairs a function gets cannot run on columns, and what to change; None if it can."""
    owner = _owner(function)
    name = f"{function_name(owner)}{place_of(owner)}"
    if says_in_python(owner) or says_in_python(getattr(owner, "__wrapped__", None)):
        return f"the program says in_python of {name}"
    if type(owner).open is not Function.open or type(owner).close is not Function.close:
        return f"{name} is opened or closed, and may have state by key"
    for kind in types:
        if not isinstance(kind, RowTypeInfo | TupleTypeInfo):
            return f"{name} is Python, and elements of type {kind} have no fields; declare them with Types.ROW_NAMED"
        if kind.has_exponents:
            return "a field of the elements is a BIG_DEC, which keeps its digits in Python alone; declare its precision"
        if any(field.startswith("__") for field in kind.field_names):
            return "a field of the elements has a name as tables have for themselves, which begins with __"
    obstacle = obstacle_of_keys(keys, types)
    for key in () if obstacle is not None else keys:
        if key is not None and key.columns and not all(map(is_exact, types_of_fields(key.type_info))):
            return (
                f"columns do not tell keys of type {key.type_info} apart as Python does; key by text, whole numbers or "
                "times"
            )
    return obstacle
