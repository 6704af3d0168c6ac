"""Reduce functions that are sums, extremes, first or last fields: known from their trace, and so to be associative."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.api.functions import AggregateFunction
from eventide.common.typeinfo import CompositeTypeInfo, DictTypeInfo, RowTypeInfo, TypeInformation
from eventide.runtime.elements.elements import Numbers, types_of_fields
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import traced
from eventide.runtime.tracing.evaluation import Arguments, evaluated
from eventide.runtime.tracing.expressions import (
    Composite,
    Computation,
    Expression,
    Field,
    Kind,
    Leaf,
    Result,
    Whole,
    computations_in,
    leaves,
    parts_of,
)
from eventide.runtime.tracing.kernels import Guard

_MOST = 2**63


class How(Enum):
    """How a field of the result follows from that field of all elements, in the order of arrival."""

    FIRST = "first"
    LAST = "last"
    SUM = "sum"
    SUM_IN_ORDER = "sum in order"
    """A sum of floating-point numbers, whose value depends on the order in which they are added: from the left."""


SUMS = frozenset({How.SUM, How.SUM_IN_ORDER})
"""The fields that are sums."""


@dataclass(frozen=True, slots=True)
class FieldOfExtreme:
    """The field of the element that is the highest or lowest by some fields; of several, the first or the last one.

    Attributes:
        by: the places of these fields, each with whether its highest value is chosen, or its lowest. Where elements are
            equal in one, the next decides.
        last_of_equal: whether it is the last of the elements that are equal in all of them.
    """

    by: tuple[tuple[int, bool], ...]
    last_of_equal: bool = False

    def choices(self, fields: Sequence[pa.Array], order: Numbers, groups: Numbers) -> Numbers:
        """For each element, the one that is chosen of those of its group up to it.

        Only elements that are equal in all fields before are compared by the next one.

        Args:
            fields: the fields of elements.
            order: the places of elements in them, side by side by their group.
            groups: the group of each of `order`, a number that never goes down.

        Raises:
            Guard: if a field is None that is compared.
        """
        at = np.arange(len(groups))
        is_chosen = np.zeros(len(groups), bool)
        for place, is_highest in self.by:
            ranks = _ranked(groups, fields[place].take(pa.array(order[at])), is_highest=is_highest)
            best = np.maximum.accumulate(ranks)
            stays = ranks == best
            at, best = at[stays], best[stays]
            begins = np.diff(best, prepend=-1) != 0
            is_alone = begins & np.append(begins[1:], True)
            is_chosen[at[is_alone]] = True
            at, groups = at[~is_alone], np.cumsum(begins)[~is_alone]
            if not len(at):
                break
        is_chosen[at if self.last_of_equal else at[np.diff(groups, prepend=0) != 0]] = True
        choices: Numbers = order[is_chosen][np.cumsum(is_chosen) - 1]
        return choices


def _ranked(groups: Numbers, column: pa.Array, *, is_highest: bool) -> Numbers:
    """Numbers from 0, higher for elements of later groups, and of one group for those with a higher or lower value.

    All NaN are equal, and higher than any number.
    """
    if column.null_count:
        raise Guard("a field that is None, and is compared")
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = np.unique(column.to_numpy(), return_inverse=True)[1]
    elif pa.types.is_integer(kind):
        numbers = column.to_numpy().astype(np.int64)
    elif pa.types.is_temporal(kind):
        numbers = column.view(f"int{kind.bit_width}").to_numpy().astype(np.int64)
    else:
        encoded = pc.dictionary_encode(column)
        numbers = np.empty(len(encoded.dictionary), np.int64)
        numbers[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(numbers))
        numbers = numbers[encoded.indices.to_numpy()]
    lowest, highest = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if (highest - lowest + 1) * (int(groups.max(initial=0)) + 1) >= _MOST:
        numbers = np.unique(numbers, return_inverse=True)[1]
        lowest, highest = 0, int(numbers.max())
    ranks = numbers - lowest if is_highest else highest - numbers
    return groups.astype(np.int64) * (highest - lowest + 1) + ranks


FieldFold: TypeAlias = How | FieldOfExtreme

_EXACT = (int, str, datetime.datetime, datetime.date)
"""The kinds of values that are ordered, and of which equal ones look the same."""

_CHOOSES = (*_EXACT, float)
"""The kinds of values that elements are chosen by: floating-point numbers as far as `Fold.check` lets them."""

_FLOATING = ("FLOAT", "DOUBLE")

_FLIPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduce function, field by field; elements without fields have one.

    ``needed`` are the places of fields that it looks at whether elements are equal in those before or not, beside the
    first by which it chooses. So none of them may be None.
    """

    type_info: TypeInformation
    fields: tuple[FieldFold, ...]
    needed: frozenset[int] = frozenset()

    def shows_order(self, same: Collection[int]) -> bool:
        """Whether the order of elements of several splits can be seen in the result.

        Args:
            same: the places of fields that are the same in all elements that are reduced.
        """
        places = set(range(len(self.fields))).difference(same)
        return any(self.fields[place] is not How.SUM and not self._is_own_extreme(place) for place in places)

    @property
    def takes_few(self) -> bool:
        """Whether few of some elements stand for all of them, whatever other elements come between these.

        Not where it adds up or compares floating-point numbers, or compares several fields: if an element between them
        has NaN or None there, the result follows from each of them.
        """
        kinds = types_of_fields(self.type_info)
        for how in self.fields:
            orders = how.by if isinstance(how, FieldOfExtreme) else ()
            if how is How.SUM_IN_ORDER or len(orders) > 1:
                return False
            if any(str(kinds[place]) in _FLOATING for place, _ in orders):
                return False
        return True

    def _is_own_extreme(self, place: int) -> bool:
        """Whether a field is its own extreme, of values of which equal ones look the same."""
        fold, kinds = self.fields[place], types_of_fields(self.type_info)
        compared = [by for by, _ in fold.by] if isinstance(fold, FieldOfExtreme) else []
        return place in compared and not any(str(kinds[by]) in _FLOATING for by in compared)

    def check(self, fields: Sequence[pa.Array]) -> None:
        """Refuse what columns may not add up or compare as Python does: None, and NaN and -0.0 where they are compared.

        Every comparison with NaN is false, and -0.0 equals 0.0. A field that is compared where others are equal may be
        None in other elements: `FieldOfExtreme.choices` refuses it there.

        Raises:
            Guard: if there is any in one of the fields.
        """
        orders = [how.by for how in self.fields if isinstance(how, FieldOfExtreme)]
        never_none = (
            self.needed | {by[0][0] for by in orders} | {at for at, how in enumerate(self.fields) if how in SUMS}
        )
        if any(fields[place].null_count for place in never_none):
            raise Guard("a field that is None, and is added up or compared")
        for column in [fields[place] for place in {place for by in orders for place, _ in by}]:
            if pa.types.is_floating(column.type):
                numbers = column.drop_null().to_numpy()
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
    FieldOfExtreme(by=((1, True),), last_of_equal=False)
    """
    found = traced(function, type_info, type_info)
    if not found.takes_none:
        raise NotTraceable("it tests whether something is None")
    if not found.admission.is_closed:
        raise NotTraceable("it takes values from outside, which may change")
    if _is_nested(type_info):
        raise NotTraceable("its elements have tuples or rows inside, which may be None")
    width = len(types_of_fields(type_info))
    ways = [(answers, _fields(leaf.result, type_info, width)) for answers, leaf in leaves(found.tree)]
    folds = [_fold(place, ways) for place in range(width)]
    chosen_by = {place for fold in folds if isinstance(fold, FieldOfExtreme) for place, _ in fold.by}
    if any(_compared(one)[0] not in chosen_by for answers, _ in ways for one in answers):
        raise NotTraceable("it tests a condition that its result does not depend on, which might raise an error")
    computed = [one for answers, _ in ways for one in computations_in(*answers)]
    unused = [one for _, leaf in leaves(found.tree) for one in leaf.unused]
    if any(_negated(one) not in chosen_by for one in unused):
        raise NotTraceable("it computes what it does not use, which might raise an error")
    for fold in folds:
        if isinstance(fold, FieldOfExtreme) and any(
            getattr(folds[place], "by", None) != fold.by for place, _ in fold.by
        ):
            raise NotTraceable("it does not keep the fields by which it chooses")
    needed = {place for one in (*computed, *unused) if (place := _negated(one)) is not None}
    orders = {fold.by for fold in folds if isinstance(fold, FieldOfExtreme)}
    needed |= {place for by in orders for answers, _ in ways for place in _compared_too_early(answers, by)}
    return Fold(type_info, tuple(folds), frozenset(needed))


@dataclass(frozen=True, slots=True)
class AggregateFold:
    """An aggregate function whose accumulators are sums, counts, highest and lowest values of what elements give.

    So the accumulators of some elements and of some others make that of all: field by field, as ``fold`` says. Its
    ``type_info`` is the type of accumulators, and ``start`` the accumulator of no elements.
    """

    type_info: TypeInformation
    start: object
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
        raise NotTraceable("it tests whether something is None")
    if _is_nested(type_info) or _is_nested(kind):
        raise NotTraceable("its elements or accumulators have tuples or rows inside, which may be None")
    if any(leaf.unused for _, leaf in leaves(added.tree)):
        raise NotTraceable("it computes what it does not use, which might raise an error")
    if added.result_type() != kind:
        raise NotTraceable(f"it starts with {kind}, and goes on with {added.result_type()}")
    start = kind.from_arrow(evaluated(started.tree, Arguments([pa.nulls(1)]), kind))[0]
    width = len(types_of_fields(kind))
    ways = [(answers, _fields(leaf.result, kind, width)) for answers, leaf in leaves(added.tree)]
    starts = [*start.values()] if type(start) is dict else start if type(start) is tuple else [start]
    fields = tuple(_growth(place, ways, starts[place], in_order=in_order) for place in range(width))
    _check_conditions(ways, fields)
    return AggregateFold(kind, start, Fold(kind, fields))


def _is_nested(kind: TypeInformation) -> bool:
    return isinstance(kind, CompositeTypeInfo) and any(isinstance(part, CompositeTypeInfo) for part in kind.types)


_Ways: TypeAlias = "Sequence[tuple[dict[Expression, bool], tuple[Any, ...]]]"


def _growth(place: int, ways: _Ways, start: object, *, in_order: bool) -> FieldFold:
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
    if any(isinstance(result, Computation) and result.kind is float for result in results):
        raise NotTraceable(
            f"its field {place} is not a sum of whole numbers: a sum of floating-point numbers depends on their order"
        )
    raise NotTraceable(
        f"its field {place} is not a sum of whole numbers, nor a highest or lowest value, and does not stay as it is"
    )


_SUMS: tuple[tuple[Kind, How], ...] = ((int, How.SUM), (float, How.SUM_IN_ORDER))
"""Sums by the kind of numbers that they are of."""


def _adds(result: object, before: _Place, kind: Kind) -> bool:
    """Whether a result is a number of the accumulator plus one that the element gives."""
    match result:
        case Computation(found, "add", (left, right)) if found is kind:
            return any(
                one.kind is kind and _place_of(one) == before and not _looks_at_accumulator(other)
                for one, other in ((left, right), (right, left))
            )
    return False


def _grows_by(
    condition: Expression, place: int, ways: _Ways, kinds: Collection[Kind] = _CHOOSES
) -> FieldOfExtreme | None:
    """The extreme that a field is if a condition compares it with what the element gives, and chooses between both."""
    before = _Place(1, place)
    match condition:
        case Computation(_, name, (left, right)) if name in _FLIPPED and left.kind is right.kind and left.kind in kinds:
            is_flipped = _place_of(right) == before
            kept, new = (right, left) if is_flipped else (left, right)
            if _place_of(kept) != before or _looks_at_accumulator(new):
                return None
        case _:
            return None
    if not all(condition in answers for answers, _ in ways):
        return None
    takes_new = {answers[condition]: _is_same(parts[place], new) for answers, parts in ways}
    if len(takes_new) < 2 or takes_new[True] == takes_new[False]:
        return None
    if not all(_is_same(parts[place], new if takes_new[answers[condition]] else kept) for answers, parts in ways):
        return None
    relation = name if is_flipped else _FLIPPED[name]  # of the new value to the kept one
    relation = relation if takes_new[True] else _NEGATED[relation]
    return FieldOfExtreme(((place, relation in ("gt", "ge")),))


def _is_same(result: object, other: Expression) -> bool:
    return bool(result == other) or (_place_of(other) is not None and _place_of(result) == _place_of(other))


def _looks_at_accumulator(result: Result) -> bool:
    return any(isinstance(part, Field) and part.path[0] == 1 for part in parts_of(result))


def _check_conditions(ways: _Ways, fields: tuple[FieldFold, ...]) -> None:
    """Check that sums do not depend on the accumulator, and that nothing else follows from what it is compared with."""
    of_sums: dict[frozenset[Any], dict[frozenset[Any], list[Any]]] = {}
    for answers, parts in ways:
        asked = {one: answer for one, answer in answers.items() if _looks_at_accumulator(one)}
        if any(all(_grows_by(one, place, ways) is None for place in range(len(fields))) for one in asked):
            raise NotTraceable("it tests a condition on the accumulator that does not choose a highest or lowest value")
        rest = frozenset(item for item in answers.items() if item[0] not in asked)
        sums = [part for part, how in zip(parts, fields, strict=True) if how in SUMS]
        of_sums.setdefault(frozenset(asked.items()), {})[rest] = sums
    first, *others = of_sums.values()
    if any(other != first for other in others):
        raise NotTraceable("a sum depends on the value of the accumulator")


def _fields(result: Result, type_info: TypeInformation, width: int) -> tuple[Result | _Place, ...]:
    """The fields of a result, which is of the type of the elements."""
    match result:
        case Whole(number) if isinstance(type_info, CompositeTypeInfo):
            return tuple(_Place(number, place) for place in range(width))
        case Composite(parts, names, is_dict, False) if isinstance(type_info, CompositeTypeInfo):
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


def _place_of(result: object) -> _Place | None:
    match result:
        case _Place():
            return result
        case Field(path=(number,)):
            return _Place(number, 0)
        case Field(path=(number, place)):
            return _Place(number, place)
    return None


def _fold(place: int, ways: _Ways) -> FieldFold:
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
        taken = [(answers, found == new) for (answers, _), found in zip(ways, places, strict=True)]
        if (extreme := _extreme(taken, frozenset())) is not None:
            return extreme
    raise NotTraceable(f"its field {place} is not a sum of whole numbers, nor the highest, lowest, first or last value")


def _is_sum(result: object, old: _Place, new: _Place, of: Kind) -> bool:
    match result:
        case Computation(kind, "add", (Field() as left, Field() as right)):
            is_wide = of is int or str(left.type_info) == str(right.type_info) == "DOUBLE"
            return (
                is_wide and {kind, left.kind, right.kind} == {of} and {_place_of(left), _place_of(right)} == {old, new}
            )
    return False


def _asked_by_all(answers: Iterable[dict[Expression, bool]]) -> list[Expression]:
    first, *others = answers
    return [condition for condition in first if all(condition in other for other in others)]


def _extreme(ways: Sequence[tuple[dict[Expression, bool], bool]], compared: frozenset[int]) -> FieldOfExtreme | None:
    """The choice that is made by comparing fields of both elements, one after the other; None if it is not chosen so.

    Args:
        ways: the answers on each way, and whether it takes the newer element.
        compared: the places of fields in which both are equal.
    """
    outcomes = {takes_new for _, takes_new in ways}
    if len(outcomes) == 1:
        return FieldOfExtreme((), last_of_equal=outcomes.pop())
    found = dict.fromkeys(_compared(condition)[0] for answers, _ in ways for condition in answers)
    for place in found:
        if place is None or place in compared:
            continue
        of_sign = {sign: [way for way in ways if _is_possible(way[0], place, sign)] for sign in (-1, 0, 1)}
        if_lower, if_higher = ({takes_new for _, takes_new in of_sign[sign]} for sign in (-1, 1))
        if len(if_lower) == len(if_higher) == 1 and if_lower != if_higher:
            rest = _extreme(of_sign[0], compared | {place})
            if rest is not None:
                return FieldOfExtreme(((place, if_lower == {True}), *rest.by), rest.last_of_equal)
    return None


_SIGNS = {"lt": {-1}, "le": {-1, 0}, "eq": {0}, "ne": {-1, 1}, "ge": {0, 1}, "gt": {1}}
"""How the left operand of a comparison may be to the right one where it is true: lower, equal, higher."""


def _compared(condition: Expression) -> tuple[int | None, set[int]]:
    """The place of the field that a condition compares in both elements, and how the older may be to the newer one.

    It may compare the negative of both. The place is None for any other condition.
    """
    match condition:
        case Computation(_, name, (Computation(_, "negate", (left,)), Computation(_, "negate", (right,)))):
            place, signs = _compared(Computation(bool, name, (left, right)))
            return place, {-sign for sign in signs}
        case Computation(_, name, (Field() as left, Field() as right)) if name in _SIGNS and left.kind in _CHOOSES:
            first, second = _place_of(left), _place_of(right)
            if first is not None and second is not None and first.place == second.place:
                if (first.number, second.number) == (0, 1):
                    return first.place, _SIGNS[name]
                if (first.number, second.number) == (1, 0):
                    return first.place, {-sign for sign in _SIGNS[name]}
    return None, set()


def _compared_too_early(answers: dict[Expression, bool], by: Sequence[tuple[int, bool]]) -> Iterator[int]:
    """The fields that a way compares where those before them may differ."""
    asked = {_compared(condition)[0] for condition in answers}
    may_differ = False
    for place, _ in by:
        if may_differ and place in asked:
            yield place
        may_differ |= _is_possible(answers, place, -1) or _is_possible(answers, place, 1)


def _negated(operation: Computation) -> int | None:
    """The place of the field whose negative an operation is; None for any other operation."""
    match operation:
        case Computation(_, "negate", (Field() as field,)) if (found := _place_of(field)) is not None:
            return found.place
    return None


def _is_possible(answers: dict[Expression, bool], place: int, sign: int) -> bool:
    """Whether a way may be gone where a field of the older element is lower (-1), equal (0) or higher (1)."""
    compared = ((_compared(condition), answer) for condition, answer in answers.items())
    return all((sign in signs) == answer for (of, signs), answer in compared if of == place)
