"""Evaluation of a trace on a batch: each way on the rows that take it, and their results in the order of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import CompositeTypeInfo, DecimalTypeInfo, DictTypeInfo, RowTypeInfo, TypeInformation
from eventide.runtime.elements.elements import Numbers
from eventide.runtime.tracing.expressions import (
    Composite,
    Computation,
    Constant,
    Expression,
    Field,
    Leaf,
    Result,
    Tree,
    Whole,
    computations_in,
)
from eventide.runtime.tracing.kernels import KERNELS, Guard, Value, truth
from eventide.runtime.tracing.kinds import AnyDecimal
from eventide.runtime.tracing.tracing import ALWAYS_NONE, WHOLE_TYPES


class Arguments:
    """The columns that stand for the arguments of a function: one for each."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._columns = columns
        self.count = len(columns[0])
        self._found: dict[tuple[int, ...], pa.Array] = {}

    def column(self, path: tuple[int, ...]) -> pa.Array:
        """The column of a field, by its path; the values that it is a part of are nowhere None.

        Raises:
            Guard: if it is.
        """
        if path not in self._found:
            self._found[path] = self._columns[path[0]] if len(path) == 1 else self.part(path)
        return self._found[path]

    def part(self, path: tuple[int, ...]) -> pa.Array:
        """The column of a field that is looked at for the first time."""
        parent = self.column(path[:-1])
        if parent.null_count:
            raise Guard("a tuple or row that is None")
        return pc.struct_field(parent, [path[-1]])


@dataclass(slots=True)
class Rows:
    """Some rows of a batch, which have gone the same way so far.

    Attributes:
        arguments: the columns of the whole batch.
        indices: the places of the rows; None if they are all of them.
        parent: the rows that these are a part of.
        mask: which of the parent's they are.
        values: the values computed for them.
    """

    arguments: Arguments
    indices: Numbers | None = None
    parent: Rows | None = None
    mask: pa.Array | None = None
    values: dict[Expression, Value] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.arguments.count if self.indices is None else len(self.indices)

    def where(self, mask: pa.Array) -> Rows:
        """The rows for which a truth value is true."""
        at = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        return Rows(self.arguments, at if self.indices is None else self.indices[at], self, mask)

    def column(self, path: tuple[int, ...]) -> pa.Array:
        """The column of a field, or of an argument, in these rows."""
        column = self.arguments.column(path)
        return column if self.indices is None else column.take(pa.array(self.indices))

    def value(self, expression: Expression) -> Value:
        """The values of an expression, none of which is null.

        Raises:
            Guard: if Python might give something else in one of the rows.
        """
        if isinstance(expression, Constant):
            value = expression.value
            return value if isinstance(value, pa.Array) else pa.scalar(value)
        known = self._known(expression)
        if known is None:
            known = self._field(expression) if isinstance(expression, Field) else self._computed(expression)
            self.values[expression] = known
        return known

    def _known(self, expression: Expression) -> Value | None:
        if expression in self.values:
            return self.values[expression]
        above = self.parent
        if above is None or self.mask is None or expression not in above.values:
            return None
        return above.values[expression].filter(self.mask)

    def _field(self, field: Field) -> pa.Array:
        column = self._typed(field)
        if column.null_count:
            raise Guard("a field that is None where the function computes with it")
        return column

    def _typed(self, field: Field) -> pa.Array:
        column = self.column(field.path)
        expected = field.type_info.arrow_type()
        return column if column.type == expected else column.cast(expected)

    def _computed(self, operation: Computation) -> Value:
        match operation:
            case Computation(name="is none", operands=(Field(path=path),)):
                return self.column(path).is_null()
            case Computation(name="is in", operands=(Field() as looked_for, Constant(values=(among,)))):
                return KERNELS["is in"](self._typed(looked_for), among)
        return KERNELS[operation.name](*map(self.value, operation.operands))

    def truths(self, condition: Expression) -> pa.Array:
        """Whether a condition is true, in each row; None is not."""
        if isinstance(condition, Field):
            column = self.column(condition.path)
            if column.null_count:
                return truth(column).fill_null(False)
        return truth(self.value(condition))


def evaluated(tree: Tree, arguments: Arguments, type_info: TypeInformation) -> pa.Array:
    """The results of a trace for each row, as a column of their type.

    Raises:
        Guard: if Python might give something else in one of the rows.
    """
    everything = Rows(arguments)
    ways = _ways(tree, everything)
    results = [leaf.result for _, leaf in ways]
    if len(ways) == 1:
        return _column(results[0], ways[0][0], type_info)
    return _Junction(everything, [rows for rows, _ in ways]).column(results, type_info)


class _Junction:
    """The results where several ways come together again: their common part is computed once."""

    def __init__(self, everything: Rows, ways: list[Rows]) -> None:
        self._everything = everything
        self._ways = ways
        self._number_of: pa.Array | None = None

    def column(self, results: Sequence[Result], kind: TypeInformation) -> pa.Array:
        """The results of the ways, one for each, as a column."""
        if not results:
            return pa.array([], kind.arrow_type())
        if all(result == results[0] for result in results):
            return _column(results[0], self._everything, kind)
        if isinstance(kind, CompositeTypeInfo) and all(isinstance(result, Composite) for result in results):
            parts = zip(*(result.parts for result in results if isinstance(result, Composite)), strict=True)
            arrays = [self.column(part, each) for part, each in zip(parts, kind.types, strict=True)]
            return pa.StructArray.from_arrays(arrays, fields=list(kind.arrow_type()))
        is_plain = not pa.types.is_nested(kind.arrow_type())
        if is_plain and all(isinstance(result, Field | Constant) for result in results):
            everything = self._everything
            choices = (
                _scalar(result, kind) if isinstance(result, Constant) else _column(result, everything, kind)
                for result in results
            )
            return pc.choose(self._numbers(), *choices)
        ways = zip(self._ways, results, strict=True)
        return _put_together([(rows, _column(result, rows, kind)) for rows, result in ways], kind.arrow_type())

    def _numbers(self) -> pa.Array:
        """For each row, the number of its way."""
        if self._number_of is None:
            numbers = np.empty(len(self._everything), np.int8)
            for number, rows in enumerate(self._ways):
                numbers[rows.indices] = number
            self._number_of = pa.array(numbers)
        return self._number_of


def _scalar(result: Constant, kind: TypeInformation) -> pa.Scalar:
    """A constant as a value of a type, as Python brings it there."""
    return kind.to_arrow([result.value])[0]


def truths(tree: Tree, arguments: Arguments) -> pa.Array:
    """Whether the result of a trace is true for each row.

    Raises:
        Guard: if Python might give something else in one of the rows.
    """
    parts = [(rows, _truth(leaf.result, rows)) for rows, leaf in _ways(tree, Rows(arguments))]
    return _put_together(parts, pa.bool_())


def flattened(
    tree: Tree, arguments: Arguments, types: Mapping[str | None, TypeInformation]
) -> dict[str | None, tuple[pa.Array, Numbers]]:
    """All results of a trace that has several for each row, by side output: columns, and the row of each result.

    They are in the order of the rows, and those of a row in the order in which the function gives them.

    Raises:
        Guard: if Python might give something else in one of the rows.
    """
    parts: dict[str | None, list[tuple[pa.Array, Numbers]]] = {tag: [] for tag in types}
    for rows, leaf in _ways(tree, Rows(arguments)):
        places = np.arange(len(rows)) if rows.indices is None else rows.indices
        for tag, result in leaf.outputs:
            parts[tag].append((_column(result, rows, types[tag]), places))
    return {tag: _in_order(several, types[tag]) for tag, several in parts.items()}


def _in_order(parts: list[tuple[pa.Array, Numbers]], kind: TypeInformation) -> tuple[pa.Array, Numbers]:
    if not parts:
        return pa.array([], kind.arrow_type()), np.empty(0, np.int64)
    if len(parts) == 1:
        return parts[0]
    of_each = np.concatenate([places for _, places in parts])
    order = np.argsort(of_each, kind="stable")
    return pa.concat_arrays([column for column, _ in parts]).take(pa.array(order)), of_each[order]


def _ways(tree: Tree, rows: Rows) -> list[tuple[Rows, Leaf]]:
    """The end of each way, with the rows that go it; ways that no row goes are left out.

    Raises:
        Guard: if Python might have raised an error on the way.
    """
    if not len(rows):
        return []
    if isinstance(tree, Leaf):
        for operation in tree.unused:
            rows.value(operation)
        return [(rows, tree)]
    mask = rows.truths(tree.condition)
    true = pc.sum(mask).as_py()
    if true == len(rows):
        return _ways(tree.if_true, rows)
    if not true:
        return _ways(tree.if_false, rows)
    return [*_ways(tree.if_true, rows.where(mask)), *_ways(tree.if_false, rows.where(pc.invert(mask)))]


def _put_together(parts: list[tuple[Rows, pa.Array]], kind: pa.DataType) -> pa.Array:
    if not parts:
        return pa.array([], kind)
    if len(parts) == 1:
        return parts[0][1]
    indices = np.concatenate([rows.indices for rows, _ in parts if rows.indices is not None])
    places = np.empty(len(indices), np.int64)
    places[indices] = np.arange(len(indices))
    return pa.concat_arrays([column for _, column in parts]).take(pa.array(places))


def _truth(result: Result, rows: Rows) -> pa.Array:
    match result:
        case Composite() | Whole():  # with fields it is always true
            for operation in computations_in(result):
                rows.value(operation)
            return pa.repeat(pa.scalar(True), len(rows))
        case Constant(values=(value,)):
            return pa.repeat(pa.scalar(bool(value)), len(rows))
    return rows.truths(result)


def _column(result: Result, rows: Rows, kind: TypeInformation) -> pa.Array:
    """The results of some rows as a column of a type."""
    match result:
        case Whole(number):
            return _cast(rows.column((number,)), kind)
        case Composite(parts):
            if not isinstance(kind, CompositeTypeInfo):
                raise Guard("a tuple or row where another type is declared")
            arrays = [_column(part, rows, each) for part, each in zip(parts, kind.types, strict=True)]
            return pa.StructArray.from_arrays(arrays, fields=list(kind.arrow_type()))
        case Constant():
            return pa.repeat(_scalar(result, kind), len(rows))
        case Field():
            return _cast(rows.column(result.path), kind)
        case Computation(kind=found) if found is AnyDecimal:
            return kind.to_arrow(list(map(Decimal, rows.value(result).to_pylist())))
    return _cast(rows.value(result), kind)


def _cast(column: pa.Array, kind: TypeInformation) -> pa.Array:
    """A column as one of a type; the fields of tuples and rows count by position, as in Python."""
    expected = kind.arrow_type()
    if column.type == expected:
        return column
    if isinstance(kind, CompositeTypeInfo):
        arrays = [_cast(field, each) for field, each in zip(column.flatten(), kind.types, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=list(expected), mask=column.is_null())
    try:
        return column.cast(expected)
    except pa.ArrowException as error:
        raise Guard(f"a value that does not fit {kind}") from error


def fits(inferred: TypeInformation, declared: TypeInformation) -> bool:
    """Whether values of a type that a trace gives are brought to a declared type by a cast, as Python's are.

    >>> from eventide.common.typeinfo import Types
    >>> fits(Types.LONG(), Types.INT()), fits(Types.STRING(), Types.LONG())
    (True, False)
    """
    if inferred == declared:
        return True
    if isinstance(inferred, CompositeTypeInfo) and isinstance(declared, CompositeTypeInfo):
        if isinstance(inferred, RowTypeInfo | DictTypeInfo) and not (
            isinstance(declared, RowTypeInfo) and declared.field_names == inferred.field_names
        ):
            return False
        if len(inferred.types) != len(declared.types):
            return False
        return all(map(fits, inferred.types, declared.types))
    if inferred == ALWAYS_NONE:
        return not declared.is_pickled
    if isinstance(inferred, DecimalTypeInfo) and isinstance(declared, DecimalTypeInfo):
        return inferred.scale <= declared.scale
    return str(declared) in _WIDER.get(str(inferred), ())


_WIDER = {**dict.fromkeys(WHOLE_TYPES, (*WHOLE_TYPES, "DOUBLE")), "FLOAT": ("DOUBLE",)}
"""The types that values of a type may be declared as, so that a cast that refuses gives what Python does."""
