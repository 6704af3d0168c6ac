"""Tracing: a function is called once for each way through it, with symbols, and what it does with them is noted."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import chain, repeat
from typing import Any, TypeAlias

import pyarrow as pa

from eventide.api.functions.output_tag import OutputTag
from eventide.common.typeinfo import (
    BasicTypeInfo,
    CompositeTypeInfo,
    DecimalTypeInfo,
    DictTypeInfo,
    RowTypeInfo,
    TypeInformation,
    Types,
)
from eventide.common.types import Row, RowKind
from eventide.errors import ProgramError
from eventide.runtime.tracing.admission import Admitted, NotTraceable, admitted
from eventide.runtime.tracing.containers import CONTAINERS
from eventide.runtime.tracing.decimal_sizes import decimal_size
from eventide.runtime.tracing.expressions import (
    Beside,
    Branch,
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
    constant,
    leaves,
)
from eventide.runtime.tracing.kinds import AnyDecimal
from eventide.runtime.tracing.replaced import OPERATORS, PATTERNS, REPLACED
from eventide.runtime.tracing.symbols import (
    Symbol,
    TracedObject,
    TracePath,
    Unknown,
    argument,
    go_on,
    operand_of,
    plain,
)

_MOST_LEAVES = 16
Arrange: TypeAlias = Callable[[Sequence[Any]], Iterable[Any]]
"""Makes the arguments of a call from one value for each type that is traced: some may be parts of one object."""

_CONSTANTS = (int, float, bool, str, Decimal, datetime.date, datetime.timedelta, type(None))


@dataclass(frozen=True, slots=True)
class Trace:
    """The computation of a function for arguments of some types, whatever their values.

    Attributes:
        admission: tells whether what the function takes from outside has changed since then.
        types: the types of the arguments.
        tree: its branches and results.
    """

    admission: Admitted
    types: tuple[TypeInformation, ...]
    tree: Tree

    @property
    def takes_none(self) -> bool:
        """Whether a field may be None that is only handed on."""
        return not self.admission.tests_for_none

    @property
    def side_outputs(self) -> dict[str, TypeInformation]:
        """The types that tags declare of its side outputs.

        Raises:
            NotTraceable: if two tags of one name declare different ones.
        """
        beside = [one for _, leaf in leaves(self.tree) for one in leaf.results if isinstance(one, Beside)]
        declared = {one.tag: one.type_info for one in beside}
        if any(declared[one.tag] != one.type_info for one in beside):
            raise NotTraceable("it has two tags of one name and different types")
        return declared

    def result_type(self, tag: str | None = None, declared: TypeInformation | None = None) -> TypeInformation:
        """The type of all of its results, or of those for a side output.

        Rows whose fields have no names have those of a declared row with as many fields.

        Raises:
            NotTraceable: if they have no type in common that columns can have.
        """
        results = [result for _, leaf in leaves(self.tree) for found, result in leaf.outputs if found == tag]
        if not results:
            raise NotTraceable("it never has a result")
        try:
            kind = reduce(_common, (_type(result, self.types, declared) for result in results))
        except ProgramError as error:
            raise NotTraceable(f"its results have no type: {error}") from error
        if kind is None:
            raise NotTraceable("it returns None")
        return kind


class FieldsOfRow(Row):
    """A row that is asked for single fields alone: other rows with these fields give a function the same.

    >>> row = FieldsOfRow.of(Row(user=1, n=2))
    >>> row.user, row["n"], row[1]
    (1, 2, 2)
    >>> len(row)
    Traceback (most recent call last):
    eventide.runtime.tracing.admission.NotTraceable: it looks at a row as a whole
    """

    __slots__ = ()

    @staticmethod
    def of(row: Row) -> FieldsOfRow:
        """Make one with the fields of a row."""
        made = FieldsOfRow(*row)
        made.set_field_names(row.get_field_names() or [])
        return made

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotTraceable("it looks at a row as a whole")

    def __getitem__(self, item: Any) -> Any:
        return self._refuse() if isinstance(item, slice) else super().__getitem__(item)

    __bool__ = __len__ = __iter__ = __contains__ = __eq__ = __hash__ = __call__ = _refuse
    __copy__ = __reduce__ = __repr__ = __str__ = __format__ = as_dict = _refuse
    get_field_names = get_fields_by_names = has_field_names = get_row_kind = set_row_kind = _refuse


def trace(
    function: Callable[..., Any],
    types: Sequence[TypeInformation],
    *,
    several: bool = False,
    arrange: Arrange | None = None,
    is_opened: bool = True,
    by_field: bool = False,
) -> Trace:
    """Trace a function over arguments of some types; with ``several``, one that has any number of results.

    Where its object is still to be opened, what it reads of that is unknown, and the trace cannot be evaluated.

    Raises:
        NotTraceable: if columns might not give what the function gives; with ``by_field``, also if it asks its first
            argument, a row, for anything but single fields.
    """
    unopened: list[Unknown] = []

    def unknown(name: str) -> Unknown:
        unopened.append(Unknown(Computation(Unknown, f"attribute {name}", ()), TracePath([], {})))
        return unopened[-1]

    admission = admitted(function, REPLACED, {**CONTAINERS, **PATTERNS}, OPERATORS, None if is_opened else unknown)
    answers: list[bool] = []
    ways: list[tuple[dict[Expression, bool], Leaf]] = []
    known: dict[Any, Computation] = {}
    while True:
        way = TracePath(answers, known)
        for attribute in unopened:
            go_on(attribute, way)
        arguments = [argument((number,), kind, way) for number, kind in enumerate(types)]
        if by_field:
            arguments[0] = FieldsOfRow.of(arguments[0])
        ways.append(_one_way(admission.function, arguments, way, several=several, arrange=arrange))
        if len(ways) > _MOST_LEAVES:
            raise NotTraceable(f"there are more than {_MOST_LEAVES} ways through it")
        answers = [*way.asked.values()]
        while answers and not answers[-1]:
            answers.pop()
        if not answers:
            return Trace(admission, tuple(types), _tree(ways))
        answers[-1] = False


def _one_way(
    function: Callable[..., Any],
    arguments: list[Any],
    way: TracePath,
    *,
    several: bool,
    arrange: Arrange | None,
) -> tuple[dict[Expression, bool], Leaf]:
    before = _content(arguments)
    try:
        value = function(*(arguments if arrange is None else arrange(arguments)))
        values = ([] if value is None else value) if several else [value]
        results = tuple((_output if several else _checked)(one, arguments) for one in values)
    except NotTraceable:
        raise
    except Exception as error:  # whatever the function raises, it raises again where it is called with values
        raise NotTraceable(f"it raised {error!r} when it was traced") from error
    if _content(arguments) != before:
        raise NotTraceable("it changes its argument")
    used = {*computations_in(*results, *way.asked)}
    return dict(way.asked), Leaf(results, tuple(one for one in way.computed if one not in used))


def _content(value: Any) -> Any:
    """All that arguments consist of, by which a change is noticed."""
    if type(value) is dict:
        return [(name, _content(part)) for name, part in value.items()]
    return [_content(part) for part in value] if type(value) in (tuple, list, Row) else id(value)


def _output(value: object, arguments: list[Any]) -> Result | Beside:
    """One of several results, or a pair of a tag and one for its side output."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], OutputTag):
        tag, beside = value
        return Beside(tag.tag_id, tag.type_info, _checked(beside, arguments))
    return _checked(value, arguments)


def _checked(value: object, arguments: list[Any]) -> Result:
    """A result, in which no object that can be changed has two places: columns would make two objects of it."""
    objects = [*_changeable(value)]
    if len({*objects}) < len(objects):
        raise NotTraceable("it returns one object in two places")
    return _result(value, arguments)


def _changeable(value: Any) -> Iterator[Any]:
    """The identity of each row and dict in a result, and each field that is a list, say."""
    if type(value) in (Row, dict):
        yield id(value)
    if isinstance(value, Symbol) and operand_of(value).kind is object:
        yield operand_of(value)
    if type(value) in (Row, dict, tuple):
        for part in value.values() if type(value) is dict else value:
            yield from _changeable(part)


def _result(value: object, arguments: list[Any]) -> Result:
    for number, given in enumerate(arguments):
        if value is given and isinstance(value, tuple | Row | dict):
            return Whole(number)
    if isinstance(value, Symbol):
        return operand_of(value)
    if isinstance(value, tuple):
        return Composite(_parts(value, arguments))
    if type(value) is Row:
        names = value.get_field_names()
        if value.get_row_kind() is not RowKind.INSERT or (names is not None and len(names) != len(value)):
            raise NotTraceable("it returns a row that lacks values for its names, or whose kind is not INSERT")
        parts = _parts(list(value), arguments)
        return Composite(parts, lacks_names=True) if names is None else Composite(parts, tuple(map(plain, names)))
    if type(value) is dict:
        keys = tuple(map(plain, value))
        if not all(type(key) is str for key in keys):
            raise NotTraceable("it returns a dict whose keys are not all text")
        return Composite(_parts([*value.values()], arguments), keys, is_dict=True)
    value = plain(value)
    is_local = type(value) is datetime.datetime and value.tzinfo is None and not value.fold
    if type(value) not in _CONSTANTS and not is_local:
        what = value._what if isinstance(value, TracedObject) else f"a {type(value).__name__}"
        raise NotTraceable(f"it returns {what}")
    return constant(value)


def _parts(values: Sequence[Any], arguments: list[Any]) -> tuple[Result, ...]:
    if not values:
        raise NotTraceable("it returns a tuple, row or dict without fields")
    return tuple(_result(value, arguments) for value in values)


def _tree(ways: list[tuple[dict[Expression, bool], Leaf]]) -> Tree:
    """The ways as a tree: they are in the order in which they were found, those of True before those of False."""
    asked, leaf = ways[0]
    if not asked:
        return leaf
    condition = next(iter(asked))
    below: dict[bool, list[tuple[dict[Expression, bool], Leaf]]] = {True: [], False: []}
    for answers, found in ways:
        rest = dict(answers)
        below[rest.pop(condition)].append((rest, found))
    return Branch(condition, _tree(below[True]), _tree(below[False]))


WHOLE_TYPES = ("BYTE", "SHORT", "INT", "LONG")
"""The types of whole numbers."""

_TYPES: dict[type, TypeInformation] = {
    int: Types.LONG(),
    float: Types.DOUBLE(),
    bool: Types.BOOLEAN(),
    str: Types.STRING(),
    datetime.date: Types.SQL_DATE(),
    datetime.datetime: Types.SQL_TIMESTAMP(),
    datetime.timedelta: BasicTypeInfo("TIME_DELTA"),
}
"""The types of computed values and constants, by their kinds."""


def _type(result: Result, types: Sequence[TypeInformation], declared: TypeInformation | None) -> TypeInformation | None:
    """The type of the values of a result; None for None, which fits every type.

    Raises:
        NotTraceable: if columns have none.
    """
    match result:
        case Whole(number):
            return types[number]
        case Composite(parts, names, is_dict, lacks_names):
            of_parts = declared.types if isinstance(declared, CompositeTypeInfo) else ()
            if lacks_names:
                if not isinstance(declared, RowTypeInfo) or len(of_parts) != len(parts):
                    raise NotTraceable("it returns a row whose fields have no names, and no row like it is declared")
                names = tuple(declared.field_names)
            unknown = repeat(None, len(parts))
            kinds = [_type(part, types, each) for part, each in zip(parts, chain(of_parts, unknown), strict=False)]
            return _composite(kinds, names, is_dict=is_dict)
        case Field(type_info=kind):
            return kind
        case Constant(values=(None,)):
            return None
        case Constant(values=(int() as value,)) if not -(2**63) <= value < 2**63:
            raise NotTraceable(f"it returns {value}, which has more than 64 bits")
        case Constant(values=(float() as value,)) if math.isnan(value):
            raise NotTraceable("it returns NaN")
    if result.kind is AnyDecimal:
        if not isinstance(declared, DecimalTypeInfo):
            raise NotTraceable(
                "it returns a decimal whose number of digits follows from its value; round it, or declare "
                "BIG_DEC(precision, scale)"
            )
        return declared
    if result.kind is Decimal and (size := decimal_size(result)) is not None:
        return Types.BIG_DEC(*size)
    if result.kind not in _TYPES:
        raise NotTraceable(f"it returns a {result.kind.__name__}")
    return _TYPES[result.kind]


def _composite(
    parts: Sequence[TypeInformation | None], names: Sequence[str] | None, *, is_dict: bool = False
) -> TypeInformation:
    kinds = [ALWAYS_NONE if part is None else part for part in parts]
    if names is None:
        return Types.TUPLE(kinds)
    return DictTypeInfo(kinds, names) if is_dict else Types.ROW_NAMED(list(names), kinds)


@dataclass(frozen=True)
class _AlwaysNone(TypeInformation[None]):
    """Stands for the type of a field that is always None, until another result says more."""

    def arrow_type(self) -> pa.DataType:
        return pa.null()

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        return pa.nulls(len(values))

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        return [None] * len(array)


ALWAYS_NONE: TypeInformation = _AlwaysNone()


def _common(one: TypeInformation | None, other: TypeInformation | None) -> TypeInformation | None:
    """The type of values of two types; None if both are always None."""
    if one is None or one in (ALWAYS_NONE, other):
        return other
    if other is None or other == ALWAYS_NONE:
        return one
    if isinstance(one, CompositeTypeInfo) and isinstance(other, CompositeTypeInfo):
        names = one.field_names if isinstance(one, RowTypeInfo | DictTypeInfo) else None
        if type(one) is type(other) and one.field_names == other.field_names:
            kinds = [_common(*pair) for pair in zip(one.types, other.types, strict=True)]
            return _composite(kinds, names, is_dict=isinstance(one, DictTypeInfo))
    if str(one) in WHOLE_TYPES and str(other) in WHOLE_TYPES:
        return Types.LONG()
    if {str(one), str(other)} == {"FLOAT", "DOUBLE"}:
        return Types.DOUBLE()
    if isinstance(one, DecimalTypeInfo) and isinstance(other, DecimalTypeInfo) and one.scale == other.scale:
        return max(one, other, key=lambda kind: kind.precision)
    raise NotTraceable(f"it returns values of several types, {one} and {other}")


def has_untyped_part(kind: TypeInformation) -> bool:
    """Whether a part of a type is always None, so that nothing else is known of it."""
    return kind == ALWAYS_NONE or (isinstance(kind, CompositeTypeInfo) and any(map(has_untyped_part, kind.types)))


def key_fields(function: Callable[..., Any], type_info: TypeInformation) -> tuple[str, ...] | None:
    """The fields of an element that a key selector returns, by their names; None if it returns anything else.

    >>> key_fields(lambda event: (event["user"], event["day"]), Types.ROW_NAMED(["user", "day"], [Types.LONG()] * 2))
    ('user', 'day')
    >>> from operator import itemgetter
    >>> key_fields(itemgetter(1), Types.TUPLE([Types.STRING(), Types.LONG()]))
    ('f1',)
    """
    if not isinstance(type_info, CompositeTypeInfo):
        return None
    if any(isinstance(kind, CompositeTypeInfo) for kind in type_info.types):  # a row that is None is not seen
        return None
    try:
        found = trace(function, [type_info])
    except NotTraceable:
        return None
    if found.admission.tests_for_none or not found.admission.is_closed:
        return None
    if not isinstance(found.tree, Leaf) or found.tree.unused:
        return None
    result = found.tree.result
    if isinstance(result, Composite) and result.lacks_names:
        return None
    parts = result.parts if isinstance(result, Composite) and result.names is None else (result,)
    if not all(isinstance(part, Field) and len(part.path) == 2 for part in parts):
        return None
    if isinstance(result, Composite) and len(parts) == 1:  # a tuple of one is not its field
        return None
    return tuple(type_info.field_names[part.path[1]] for part in parts if isinstance(part, Field))
