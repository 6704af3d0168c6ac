"""The user's functions as operators have them: on columns while that gives the same, else called with each element.

Each function here raises ``NotTraceable`` where the user's stays Python, or gives values of another type than wanted.
Those that are given columns raise a ``Guard`` where Python might give something else for one of the elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any, NoReturn

import pyarrow as pa

from eventide.api.functions import ProcessFunction
from eventide.common.column_expression import ColumnExpression
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import CompositeTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from eventide.errors import DataError
from eventide.runtime.elements.elements import Columns
from eventide.runtime.tracing.admission import NotThereYet, NotTraceable
from eventide.runtime.tracing.evaluation import Arguments, evaluated, fits, flattened, truths
from eventide.runtime.tracing.expressions import (
    Beside,
    Branch,
    Composite,
    Computation,
    Expression,
    Field,
    Result,
    Tree,
    Whole,
    leaves,
    parts_of,
)
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import reason_of
from eventide.runtime.tracing.symbols import TRUTHS
from eventide.runtime.tracing.tracing import WHOLE_TYPES, Arrange, Trace, has_untyped_part, trace

_MOST_TRACES = 256
_traces: dict[tuple[Any, tuple[TypeInformation, ...], bool, Arrange | None], Trace | str] = {}


def traced(
    function: Callable[..., Any], *types: TypeInformation, several: bool = False, arrange: Arrange | None = None
) -> Trace:
    """The trace of a function, which is made again where something that it takes from outside has changed.

    A function that was refused stays Python. With ``several``, the function returns or yields any number of results;
    ``arrange`` makes its arguments from values of the types.
    """
    try:
        known = _traces.get((function, types, several, arrange))
    except TypeError as error:
        raise NotTraceable("it cannot be hashed") from error
    if known is None or (isinstance(known, Trace) and not known.admission.is_current()):
        if len(_traces) >= _MOST_TRACES:
            _traces.clear()
        try:
            known = trace(function, types, several=several, arrange=arrange)
        except NotThereYet:
            raise
        except NotTraceable as reason:
            known = str(reason)  # the error itself would keep the batches of all that it was raised through
        _traces[function, types, several, arrange] = known
    if isinstance(known, str):
        raise NotTraceable(known)
    return known


def mapped(
    function: Callable[..., Any], columns: Columns, declared: TypeInformation | None
) -> tuple[pa.Array, TypeInformation]:
    """The results of a function for each element, as a column of the declared type, or else of the function's own."""
    if isinstance(function, ColumnExpression):
        try:
            return function.of_rows(columns.values), function.result_type
        except DataError as error:
            raise Guard("an expression that cannot be computed") from error
    found = traced(function, columns.type_info)
    kind = result_type(found, declared)
    with guarded():
        return evaluated(found.tree, _arguments(found, columns), kind), kind


def combined(function: Callable[..., Any], kind: TypeInformation, ones: pa.Array, others: pa.Array) -> pa.Array:
    """The results of a reduce function for pairs of elements of a type."""
    found = traced_reduce(function, kind)
    for column in (ones, others):
        check_none(found, column, kind)
    with guarded():
        return evaluated(found.tree, Arguments([ones, others]), kind)


def traced_reduce(function: Callable[..., Any], kind: TypeInformation) -> Trace:
    """The trace of a function that makes one element of two, of a type."""
    found = traced(function, kind, kind)
    if not _stays(found.result_type(), kind):
        raise NotTraceable(f"it returns {found.result_type()}, and its elements are {kind}")
    return found


def _stays(given: TypeInformation, kind: TypeInformation) -> bool:
    """Whether values of a type that a trace gives are the same values as those of a type, where they fit it."""
    if isinstance(given, CompositeTypeInfo) and isinstance(kind, CompositeTypeInfo):
        are_alike = type(given) is type(kind) and len(given.types) == len(kind.types)
        names_fit = isinstance(kind, TupleTypeInfo) or given.field_names == kind.field_names
        return are_alike and names_fit and all(map(_stays, given.types, kind.types))
    return given == kind or (str(given) in WHOLE_TYPES and str(kind) in WHOLE_TYPES)


def flat_mapped(function: Callable[..., Any], columns: Columns, declared: TypeInformation | None) -> Columns:
    """All that a function gives for the elements, with their times and numbers."""
    found = traced(function, columns.type_info, several=True)
    kind = result_type(found, declared)
    return _flattened(found, columns, {None: kind}, _arguments(found, columns))[None]


def _flattened(
    found: Trace, columns: Columns, types: dict[str | None, TypeInformation], arguments: Arguments
) -> dict[str | None, Columns]:
    with guarded():
        outputs = flattened(found.tree, arguments, types)
    return {
        tag: replace(columns.at(pa.array(origins)), type_info=types[tag], values=values)
        for tag, (values, origins) in outputs.items()
    }


def processed(
    function: Callable[..., Any], columns: Columns, declared: TypeInformation | None
) -> dict[str | None, Columns]:
    """All that ``process_element`` of a function without state gives, by side output, with the elements' times."""
    found = traced_process(function, columns.type_info)
    types, times = output_types(found, declared), columns.timestamps_or_nulls()
    check_none(found, times, Types.LONG())
    return _flattened(found, columns, types, _arguments(found, columns, times))


def traced_process(function: Callable[..., Any], type_info: TypeInformation) -> Trace:
    """The trace of ``process_element``, whose context knows the timestamp of the element and nothing else."""
    return traced(function, type_info, Types.LONG(), several=True, arrange=_with_context)


class _TracedTimestamp(ProcessFunction.Context):
    """The timestamp of an element, as a traced function sees it."""

    def __init__(self, timestamp: Any) -> None:
        self._timestamp = timestamp

    def timestamp(self) -> int:
        at: int = self._timestamp
        return at

    def timer_service(self) -> NoReturn:
        raise NotTraceable("it asks for timers or the time of its operator")


def _with_context(values: Sequence[Any]) -> tuple[Any, _TracedTimestamp]:
    element, timestamp = values
    return element, _TracedTimestamp(timestamp)


def output_types(found: Trace, declared: TypeInformation | None) -> dict[str | None, TypeInformation]:
    """The types of the columns of all outputs, by side output."""
    by_tag: dict[str | None, TypeInformation | None] = dict(found.side_outputs.items())
    if any(tag is None for _, leaf in leaves(found.tree) for tag, _ in leaf.outputs):
        by_tag[None] = declared
    if not by_tag:
        raise NotTraceable("it never has a result")
    return {tag: _fitting(found.result_type(tag, each), each) for tag, each in by_tag.items()}


def result_type(found: Trace, declared: TypeInformation | None) -> TypeInformation:
    """The type of the column of results."""
    if found.side_outputs:
        raise NotTraceable("it returns a pair with an OutputTag")
    return _fitting(found.result_type(declared=declared), declared)


def _fitting(kind: TypeInformation, declared: TypeInformation | None) -> TypeInformation:
    if declared is None or declared.is_pickled:
        if has_untyped_part(kind):
            raise NotTraceable("it returns a field that is always None")
        return kind
    if not fits(kind, declared):
        raise NotTraceable(f"it returns {kind}, and {declared} is declared")
    return declared


def filtered(function: Callable[..., Any], columns: Columns) -> pa.Array:
    """Whether what a function gives is true for each element."""
    found = traced_truth(function, columns.type_info)
    with guarded():
        return truths(found.tree, _arguments(found, columns))


def traced_truth(function: Callable[..., Any], type_info: TypeInformation) -> Trace:
    """The trace of a function of which it matters whether its result is true."""
    found = traced(function, type_info)
    for _, leaf in leaves(found.tree):
        result = leaf.result
        if isinstance(result, Field | Computation) and result.kind not in TRUTHS:
            raise NotTraceable(f"it returns a {result.kind.__name__}, which has no truth value on columns")
    return found


def traced_whole(function: Callable[..., Any], *types: TypeInformation) -> Trace:
    """The trace of a function that gives whole numbers."""
    found = traced(function, *types)
    if not fits(found.result_type(), Types.LONG()):
        raise NotTraceable(f"it returns {found.result_type()}, not whole numbers")
    return found


def traced_time(function: Callable[..., Any], type_info: TypeInformation) -> Trace:
    """The trace of a function of an element and its timestamp that gives a timestamp."""
    return traced_whole(function, type_info, Types.LONG())


def timestamps(function: Callable[..., Any], columns: Columns) -> pa.Array:
    """The results of a function of each element and its former timestamp, which is ``MIN_MS`` where there is none."""
    found = traced_time(function, columns.type_info)
    before = columns.timestamps_or_nulls().fill_null(MIN_MS)
    with guarded():
        return evaluated(found.tree, _arguments(found, columns, before), Types.LONG())


def accumulated(function: Callable[..., Any], columns: Columns, start: object, kind: TypeInformation) -> pa.Array:
    """The results of an aggregate function's ``add`` for each element and one and the same accumulator."""
    found = traced(function, columns.type_info, kind)
    with guarded():
        before = pa.repeat(kind.to_arrow([start])[0], len(columns))
        return evaluated(found.tree, _arguments(found, columns, before), kind)


@contextmanager
def guarded() -> Iterator[None]:
    """Leave to Python what columns refuse in any way: the function has its own answer, or its own error."""
    try:
        yield
    except Guard:
        raise
    except Exception as error:
        raise Guard(reason_of(error)) from error


def _arguments(found: Trace, columns: Columns, *more: pa.Array) -> Arguments:
    check_none(found, columns.values, columns.type_info)
    return Arguments([columns.values, *more])


def check_none(found: Trace, values: pa.Array, type_info: TypeInformation) -> None:
    """Refuse values that are None if a trace treats them as present."""
    if _has_missing_part(values, type_info):
        raise Guard("a tuple or row that is None")
    if not found.takes_none and _has_none(values):
        raise Guard("a field that is None, and the function tests for that")


def _has_missing_part(column: pa.Array, kind: TypeInformation) -> bool:
    """Whether a tuple or row is None: a trace takes all of them for there."""
    if not isinstance(kind, CompositeTypeInfo):
        return False
    return column.null_count > 0 or any(map(_has_missing_part, column.flatten(), kind.types))


def _has_none(column: pa.Array) -> bool:
    if column.null_count:
        return True
    return pa.types.is_struct(column.type) and any(map(_has_none, column.flatten()))


def fields_read(
    function: Callable[..., Any], type_info: TypeInformation, *more: TypeInformation, several: bool = False
) -> frozenset[str] | None:
    """The fields of its first argument, a row, that a function reads; None if it is not known to do without the others.

    The function is traced with rows of these fields alone, too, and has to do the same with them, and to ask them for
    single fields only: one that counts fields, looks for names or compares rows might do something else with other
    rows. A field taken by its place has to be the same one. What `open()` makes is not there yet, and may be anything;
    and another value from outside may be another one in a worker. So all fields count that code names which looks at
    one.

    Args:
        function: the function.
        type_info: the type of the rows.
        more: the types of its other arguments.
        several: whether it returns or yields any number of results.

    >>> from eventide.common.typeinfo import Types
    >>> order = Types.ROW_NAMED(["user", "cents", "note"], [Types.STRING(), Types.LONG(), Types.STRING()])
    >>> sorted(fields_read(lambda e: (e.user, e.cents * 2), order))
    ['cents', 'user']
    >>> fields_read(lambda e: len(e), order) is None
    True
    """
    if not isinstance(type_info, RowTypeInfo) or type_info.names is None:
        return None
    try:
        found = trace(function, [type_info, *more], several=several, is_opened=False)
        names = _names(found.tree, type_info.names)
        if names is None or found.admission.tests_for_none:
            return None
        if not found.admission.is_closed:
            names |= _named_in(found) & {*type_info.names}
        narrow = _narrowed(type_info, names)
        again = trace(function, [narrow, *more], several=several, is_opened=False, by_field=True)
    except NotTraceable:
        return None
    numbers: dict[Any, int] = {}
    return names if _form(found.tree, type_info, numbers) == _form(again.tree, narrow, numbers) else None


def _narrowed(type_info: RowTypeInfo, names: frozenset[str]) -> RowTypeInfo:
    """The type of rows that have some of the fields, at least one."""
    fields = [*zip(type_info.field_names, type_info.types, strict=True)]
    kept = [pair for pair in fields if pair[0] in names] or fields[:1]
    return Types.ROW_NAMED([name for name, _ in kept], [kind for _, kind in kept])


def _named_in(found: Trace) -> frozenset[str]:
    """All that the code of a function, and of those that it calls, has a name for, texts among them."""
    waiting: list[Any] = [one.value.__code__ for one in found.admission.captured if type(one.value) is FunctionType]
    named: set[str] = set()
    while waiting:
        one = waiting.pop()
        if type(one) is CodeType:
            waiting += [*one.co_names, *one.co_consts]
        elif type(one) in (tuple, frozenset):
            waiting += one
        elif type(one) is str:
            named.add(one)
    return frozenset(named)


def _names(tree: Tree, names: tuple[str, ...]) -> frozenset[str] | None:
    """The fields of the first argument in a tree; None if it is there as a whole."""
    found = set()
    for answers, leaf in leaves(tree):
        for one in parts_of(*answers, *leaf.results, *leaf.unused):
            match one:
                case Whole(0) | Field(path=(0,)):
                    return None
                case Field(path=(0, place, *_)):
                    found.add(names[place])
    return frozenset(found)


def _form(tree: Tree, type_info: RowTypeInfo, numbers: dict[Any, int]) -> int:
    """A number for a tree, the same for one that does the same with fields of the same names."""

    def number_of(form: object) -> int:
        return numbers.setdefault(form, len(numbers))

    known: dict[int, int] = {}

    def of(one: Result | Beside) -> int:
        if id(one) not in known:
            known[id(one)] = number_of(form_of(one))
        return known[id(one)]

    def form_of(one: Expression | Result | Beside) -> Any:
        match one:
            case Field(kind, (0, place, *rest), field_type):
                return kind, type_info.field_names[place], *rest, str(field_type)
            case Computation(kind, name, operands):
                return kind, name, *map(of, operands)
            case Composite(parts, names, is_dict, lacks_names):
                return "composite", names, is_dict, lacks_names, *map(of, parts)
            case Beside(tag, tag_type, result):
                return "beside", tag, str(tag_type), of(result)
        return one

    def of_tree(tree: Tree) -> int:
        if isinstance(tree, Branch):
            return number_of(("branch", of(tree.condition), of_tree(tree.if_true), of_tree(tree.if_false)))
        return number_of(("leaf", *map(of, tree.results), "unused", *map(of, tree.unused)))

    return of_tree(tree)
