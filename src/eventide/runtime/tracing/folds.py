"""Reduce functions that are sums, extremes, first or last fields: known from their trace, and so to be associative."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.api.functions import AggregateFunction
from eventide.common.typeinfo import CompositeTypeInfo, DictTypeInfo, RowTypeInfo, TypeInformation
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import traced
from eventide.runtime.tracing.evaluation import Arguments, evaluated
from eventide.runtime.tracing.expressions import (
    Composite,
    Expression,
    Field,
    Kind,
    Leaf,
    Operation,
    Result,
    Whole,
    leaves,
    operations_in,
)
from eventide.runtime.tracing.kernels import Guard


class How(Enum):
    """What a field of the result is, of the fields of all elements, in the order of arrival."""

    FIRST = "first"
    LAST = "last"
    SUM = "sum"
    SUM_IN_ORDER = "sum in order"
    """A sum of floating-point numbers, whose value depends on the order in which they are added: from the left."""


SUMS = frozenset({How.SUM, How.SUM_IN_ORDER})
"""What is added up."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """The field of the element that has the highest or lowest value in the field ``by``, a place.

    Of several such elements it is that of the first one, or with ``last_of_equal`` that of the last one.
    """

    by: int
    is_highest: bool
    last_of_equal: bool


FieldFold: TypeAlias = How | Extreme

_EXACT = (int, str, datetime.datetime, datetime.date)
"""The kinds of values that are ordered, and of which equal ones look the same."""

_CHOOSES = (*_EXACT, float)
"""The kinds of values that elements are chosen by: floating-point numbers as far as `Fold.check` lets them."""

_FLIPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduce function, field by field; elements without fields have one."""

    type_info: TypeInformation
    fields: tuple[FieldFold, ...]

    def shows_order(self, same: Collection[int]) -> bool:
        """Whether the order of elements of several splits can be seen in the result.

        Args:
            same: the places of fields that are the same in all elements that are reduced.
        """
        places = set(range(len(self.fields))).difference(same)
        return any(self.fields[place] is not How.SUM and not self._is_own_extreme(place) for place in places)

    def _is_own_extreme(self, place: int) -> bool:
        """Whether a field is its own extreme, of values of which equal ones look the same."""
        fold, kind = self.fields[place], self.type_info
        kinds = kind.types if isinstance(kind, CompositeTypeInfo) else (kind,)
        return isinstance(fold, Extreme) and fold.by == place and str(kinds[place]) not in ("FLOAT", "DOUBLE")

    def check(self, fields: Sequence[pa.Array]) -> None:
        """Refuse what columns may not add up or compare as Python does: None, and NaN and -0.0 where they are compared.

        Every comparison with NaN is false, and -0.0 equals 0.0.

        Raises:
            Guard: if there is any in one of the fields.
        """
        for place, (how, column) in enumerate(zip(self.fields, fields, strict=True)):
            if how in (How.FIRST, How.LAST) or (isinstance(how, Extreme) and how.by != place):
                continue
            if column.null_count:
                raise Guard("a field that is None, and is added up or compared")
            if isinstance(how, Extreme) and pa.types.is_floating(column.type):
                numbers = column.to_numpy()
                if np.isnan(numbers).any() or (np.signbit(numbers) & (numbers == 0)).any():
                    raise Guard("a number that is compared is NaN or -0.0")


def fold_of(function: Callable[..., Any], type_info: TypeInformation) -> Fold:
    """The fold that a reduce function is.

    The order of elements shows in sums of floating-point numbers, which are added up one after the other, and in the
    highest of them where two are equal: 0.0 and -0.0 are.

    Raises:
        NotTraceable: if it is none that is known.

    >>> from eventide.common.typeinfo import Types
    >>> pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    >>> fold_of(lambda a, b: (a[0], a[1] + b[1]), pair).fields
    (<How.FIRST: 'first'>, <How.SUM: 'sum'>)
    >>> fold_of(lambda a, b: a if a[1] >= b[1] else b, pair).fields[0]
    Extreme(by=1, is_highest=True, last_of_equal=False)
    """
    found = traced(function, type_info, type_info)
    if not found.takes_none:
        raise NotTraceable("it asks whether something is None")
    if not found.admission.is_closed:
        raise NotTraceable("it takes values from outside, which may change")
    kinds = type_info.types if isinstance(type_info, CompositeTypeInfo) else ()
    if any(isinstance(kind, CompositeTypeInfo) for kind in kinds):
        raise NotTraceable("its elements have tuples or rows inside, which may be None")
    if any(leaf.unused for _, leaf in leaves(found.tree)):
        raise NotTraceable("it computes what it does not use, which might raise an error")
    width = len(type_info.types) if isinstance(type_info, CompositeTypeInfo) else 1
    ways = [(answers, _fields(leaf.result, type_info, width)) for answers, leaf in leaves(found.tree)]
    chosen_by: set[Expression] = set()
    folds = [_fold(place, ways, chosen_by) for place in range(width)]
    if any(condition not in chosen_by for answers, _ in ways for condition in answers):
        raise NotTraceable("it asks for a condition that nothing follows from, which might raise an error")
    for fold in folds:
        if isinstance(fold, Extreme) and not _agrees(folds[fold.by], fold):
            raise NotTraceable("it does not keep the field by which it chooses")
    return Fold(type_info, tuple(folds))


@dataclass(frozen=True, slots=True)
class AggregateFold:
    """An aggregate function whose accumulators are sums, counts, highest and lowest values of what elements give.

    So the accumulators of some elements and of some others make that of all: field by field, as ``fold`` says. Its
    ``type_info`` is the type of accumulators, and ``start`` the accumulator of no elements.
    """

    type_info: TypeInformation
    start: Any
    fold: Fold


def aggregate_fold_of(
    function: AggregateFunction[Any, Any, Any], type_info: TypeInformation, *, in_order: bool = False
) -> AggregateFold:
    """The fold that an aggregate function is, known from its ``create_accumulator`` and ``add`` alone.

    Raises:
        NotTraceable: if it is none whose result is the same whatever the order of elements; or ``in_order``, none that
            adds elements up one after the other.

    >>> from eventide.common.typeinfo import Types
    >>> class Mean(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return {"sum": 0, "count": 0}
    ...     def add(self, value, accumulator):
    ...         return {"sum": accumulator["sum"] + value, "count": accumulator["count"] + 1}
    ...     def get_result(self, accumulator):
    ...         return accumulator["sum"] / accumulator["count"]
    ...     def merge(self, acc_a, acc_b):
    ...         raise NotImplementedError
    >>> aggregate_fold_of(Mean(), Types.LONG()).fold.fields
    (<How.SUM: 'sum'>, <How.SUM: 'sum'>)
    """
    started = traced(function.create_accumulator)
    kind = started.result_type()
    added = traced(function.add, type_info, kind)
    if not started.admission.is_closed or not added.admission.is_closed:
        raise NotTraceable("it takes values from outside, which may change")
    if not isinstance(started.tree, Leaf) or not added.takes_none:
        raise NotTraceable("it asks whether something is None")
    if _is_nested(type_info) or _is_nested(kind):
        raise NotTraceable("its elements or accumulators have tuples or rows inside, which may be None")
    if any(leaf.unused for _, leaf in leaves(added.tree)):
        raise NotTraceable("it computes what it does not use, which might raise an error")
    if added.result_type() != kind:
        raise NotTraceable(f"it starts with {kind}, and goes on with {added.result_type()}")
    start = kind.from_arrow(evaluated(started.tree, Arguments([pa.nulls(1)]), kind))[0]
    width = len(kind.types) if isinstance(kind, CompositeTypeInfo) else 1
    ways = [(answers, _fields(leaf.result, kind, width)) for answers, leaf in leaves(added.tree)]
    starts = [*start.values()] if type(start) is dict else start if type(start) is tuple else [start]
    fields = tuple(_growth(place, ways, starts[place], in_order=in_order) for place in range(width))
    _check_conditions(ways, fields)
    return AggregateFold(kind, start, Fold(kind, fields))


def _is_nested(kind: TypeInformation) -> bool:
    return isinstance(kind, CompositeTypeInfo) and any(isinstance(part, CompositeTypeInfo) for part in kind.types)


_Ways: TypeAlias = "Sequence[tuple[dict[Expression, bool], tuple[Any, ...]]]"


def _growth(place: int, ways: _Ways, start: Any, *, in_order: bool) -> FieldFold:
    """How a field of the accumulator, the second argument, grows by what the first one gives."""
    results = [parts[place] for _, parts in ways]
    before = _Place(1, place)
    if all(_place_of(result) == before for result in results):
        return How.FIRST
    for kind, how in _SUMS[: 1 + in_order]:
        if all(_place_of(result) == before or _adds(result, before, kind) for result in results):
            if repr(start) != repr(kind()):
                raise NotTraceable(f"its field {place} is a sum that starts with {start!r}, not with {kind()!r}")
            return how
    for condition in _asked_by_all(answers for answers, _ in ways):
        found = _grows_by(condition, place, ways, _CHOOSES if in_order else _EXACT)
        if found is not None:
            return found
    if any(isinstance(result, Operation) and result.kind is float for result in results):
        raise NotTraceable(f"its field {place} is no sum of whole numbers: that of others depends on their order")
    raise NotTraceable(f"its field {place} is no sum of whole numbers, no highest or lowest value, and does not stay")


_SUMS: tuple[tuple[Kind, How], ...] = ((int, How.SUM), (float, How.SUM_IN_ORDER))
"""Sums by the kind of numbers that they are of."""


def _adds(result: Any, before: _Place, kind: Kind) -> bool:
    """Whether a result is a number of the accumulator plus one that the element gives."""
    match result:
        case Operation(found, "add", (left, right)) if found is kind:
            return any(
                one.kind is kind and _place_of(one) == before and not _looks_at_accumulator(other)
                for one, other in ((left, right), (right, left))
            )
    return False


def _grows_by(condition: Expression, place: int, ways: _Ways, kinds: Collection[Kind] = _CHOOSES) -> Extreme | None:
    """The extreme that a field is if a condition compares it with what the element gives, and chooses between both."""
    before = _Place(1, place)
    match condition:
        case Operation(_, name, (left, right)) if name in _FLIPPED and left.kind is right.kind and left.kind in kinds:
            is_flipped = _place_of(right) == before
            kept, new = (right, left) if is_flipped else (left, right)
            if _place_of(kept) != before or _looks_at_accumulator(new):
                return None
        case _:
            return None
    takes_new = {answers[condition]: _is_same(parts[place], new) for answers, parts in ways}
    if len(takes_new) < 2 or takes_new[True] == takes_new[False]:
        return None
    if not all(_is_same(parts[place], new if takes_new[answers[condition]] else kept) for answers, parts in ways):
        return None
    relation = name if is_flipped else _FLIPPED[name]  # of the new value to the kept one
    relation = relation if takes_new[True] else _NEGATED[relation]
    return Extreme(place, relation in ("gt", "ge"), last_of_equal=False)


def _is_same(result: Any, other: Expression) -> bool:
    return bool(result == other) or (_place_of(other) is not None and _place_of(result) == _place_of(other))


def _looks_at_accumulator(result: Result) -> bool:
    parts = [result, *(part for operation in operations_in(result) for part in operation.operands)]
    return any(isinstance(part, Field) and part.path[0] == 1 for part in parts)


def _check_conditions(ways: _Ways, fields: tuple[FieldFold, ...]) -> None:
    """Check that sums do not depend on the accumulator, and that nothing else follows from what it is compared with."""
    of_sums: dict[frozenset[Any], dict[frozenset[Any], list[Any]]] = {}
    for answers, parts in ways:
        asked = {one: answer for one, answer in answers.items() if _looks_at_accumulator(one)}
        if any(all(_grows_by(one, place, ways) is None for place in range(len(fields))) for one in asked):
            raise NotTraceable("it asks for a condition on the accumulator that is no highest or lowest value")
        rest = frozenset(item for item in answers.items() if item[0] not in asked)
        sums = [part for part, how in zip(parts, fields, strict=True) if how in SUMS]
        of_sums.setdefault(frozenset(asked.items()), {})[rest] = sums
    first, *others = of_sums.values()
    if any(other != first for other in others):
        raise NotTraceable("a sum depends on what the accumulator is")


def _fields(result: Result, type_info: TypeInformation, width: int) -> tuple[Result | _Place, ...]:
    """The fields of a result, which is of the type of the elements."""
    match result:
        case Whole(number) if isinstance(type_info, CompositeTypeInfo):
            return tuple(_Place(number, place) for place in range(width))
        case Composite(parts, names, is_dict) if isinstance(type_info, CompositeTypeInfo):
            expected = type_info.names if isinstance(type_info, RowTypeInfo | DictTypeInfo) else None
            if len(parts) == width and names == expected and is_dict == isinstance(type_info, DictTypeInfo):
                return parts
        case _ if not isinstance(type_info, CompositeTypeInfo):
            return (result,)
    raise NotTraceable("its result is not of the type of the elements")


@dataclass(frozen=True, slots=True)
class _Place:
    """The field of an argument, whatever is known of it."""

    number: int
    place: int


def _place_of(result: Any) -> _Place | None:
    match result:
        case _Place():
            return result
        case Field(path=(number,)):
            return _Place(number, 0)
        case Field(path=(number, place)):
            return _Place(number, place)
    return None


def _fold(
    place: int, ways: Sequence[tuple[dict[Expression, bool], tuple[Any, ...]]], chosen_by: set[Expression]
) -> FieldFold:
    results = [parts[place] for _, parts in ways]
    places = [_place_of(result) for result in results]
    old, new = _Place(0, place), _Place(1, place)
    if all(found == old for found in places):
        return How.FIRST
    if all(found == new for found in places):
        return How.LAST
    for kind, how in _SUMS:
        if all(_is_sum(result, old, new, kind) for result in results):
            return how
    if all(found in (old, new) for found in places):
        for condition in _asked_by_all(answers for answers, _ in ways):
            takes_new = {answers[condition]: found == new for (answers, _), found in zip(ways, places, strict=True)}
            is_decisive = all(
                takes_new[answers[condition]] == (found == new)
                for (answers, _), found in zip(ways, places, strict=True)
            )
            if is_decisive and (extreme := _extreme(condition, replaces_if=takes_new.get(True, False))) is not None:
                chosen_by.add(condition)
                return extreme
    raise NotTraceable(f"its field {place} is no sum of whole numbers, no extreme, and not the first or last one")


def _is_sum(result: Any, old: _Place, new: _Place, of: Kind) -> bool:
    match result:
        case Operation(kind, "add", (Field() as left, Field() as right)):
            is_wide = of is int or str(left.type_info) == str(right.type_info) == "DOUBLE"
            return (
                is_wide and {kind, left.kind, right.kind} == {of} and {_place_of(left), _place_of(right)} == {old, new}
            )
    return False


def _asked_by_all(answers: Iterable[dict[Expression, bool]]) -> list[Expression]:
    first, *others = answers
    return [condition for condition in first if all(condition in other for other in others)]


def _extreme(condition: Expression, *, replaces_if: bool) -> Extreme | None:
    """What is chosen by a comparison of a field of both, where the newer element replaces if it is as said."""
    match condition:
        case Operation(_, name, (Field() as left, Field() as right)) if name in _FLIPPED and left.kind in _CHOOSES:
            first, second = _place_of(left), _place_of(right)
            if first is None or second is None or first.place != second.place or first.number == second.number:
                return None
            relation = name if first.number == 1 else _FLIPPED[name]
            relation = relation if replaces_if else _NEGATED[relation]
            return Extreme(first.place, relation in ("gt", "ge"), relation in ("ge", "le"))
    return None


def _agrees(kept: FieldFold, chosen: Extreme) -> bool:
    """Whether the field that elements are chosen by is kept as that of the chosen one."""
    return isinstance(kept, Extreme) and (kept.by, kept.is_highest) == (chosen.by, chosen.is_highest)
