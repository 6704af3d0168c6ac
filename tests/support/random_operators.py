"""Random functions of operators: key selectors, timestamp assigners, gaps, and functions of two elements.

What an operator makes of its function on columns must be what the function gives when it is called, errors included.
Run together with the random functions of single elements:

    python -m tests.support.random_operators --cases 10000000 [--seed 1]

A case is one function and one element.
"""

from __future__ import annotations

import argparse
import collections
import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.functions import FlatJoinFunction, ProcessJoinFunction
from eventide.common.typeinfo import DictTypeInfo, TypeInformation, Types
from eventide.common.watermark_strategy import WatermarkStrategy
from eventide.common.windows import TimeWindow
from eventide.datastream.functions import in_python
from eventide.datastream.window import EventTimeSessionWindows
from eventide.errors import EventideError, UserFunctionError
from eventide.runtime.chain.timestamps import AssignTimestamps
from eventide.runtime.columnar.computed_keys import ComputedKey
from eventide.runtime.columnar.gaps import Gaps
from eventide.runtime.columnar.operator import Gathered
from eventide.runtime.columnar.panes import RegularPanes
from eventide.runtime.elements.elements import Columns, Elements, types_of_fields
from eventide.runtime.elements.keys import hashes_of, hashes_of_parts, numbers_of_columns
from eventide.runtime.exchange.selected_keys import key_parts
from eventide.runtime.joins.interval import JoinContext
from eventide.runtime.joins.pairs import InInterval, InWindow, PairCaller, PairFunction, Pairs
from eventide.runtime.joins.windowed import CallableJoin, CallableProcessJoin, FlatJoinsPairs, JoinsPairs
from eventide.runtime.metrics import Metrics
from eventide.runtime.process.rolling import RollingGroups
from eventide.runtime.tasks.operator import Key, is_exact
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import result_type, traced_whole
from eventide.runtime.tracing.folds import fold_of
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.window.reducing_columns import added_by_key, reduced_columns

from .random_functions import (
    FORMS,
    ROWS,
    Layout,
    Maker,
    aggregate_difference,
    difference,
    difference_of_rows,
    process_difference,
    shown,
)

_UNKNOWN = Types.PICKLED_BYTE_ARRAY()
_GROUPS = 4
_OF_KEYS = "jkusqtb"
"""The fields that keys are made of most often."""
_REDUCED = "iijkkfgsubdtqyzx"
"""The fields of elements that are reduced, those more often of which a reduce function makes something."""


@dataclass(frozen=True)
class OperatorCase:
    """A function of an operator, and the elements that it is called with.

    Attributes:
        source: the text of the function.
        function: the function.
        type_info: the type of the elements.
        values: the elements.
        others: further arguments: groups of reduced elements, times, or elements of the other side.
        other_type: the type of the elements of the other side of a join.
    """

    source: str
    function: Callable[..., Any]
    type_info: TypeInformation
    values: list[Any]
    others: list[Any]
    other_type: TypeInformation = _UNKNOWN

    @property
    def columns(self) -> Columns:
        """The elements as columns, in their order, without times."""
        values = self.type_info.to_arrow(self.values)
        return Columns(self.type_info, values, None, pa.array(range(len(values)), pa.int64()))

    def differs(self, of: object, expected: object, found: object) -> str:
        """The message for a result that differs."""
        gives = f"raises {expected!r}" if isinstance(expected, Exception) else f"gives {expected!r}"
        return f"{self.source}\n  of {of!r}\n  {gives}, and its columns {found!r}"


class OperatorMaker(Maker):
    """Makes random functions of operators, and elements for them, from a seed."""

    def key_selector(self, rows: int = ROWS) -> OperatorCase:
        """A function that gives a key of one or several parts."""
        layout = self._of_one()
        source = f"lambda e: {self._key()}"
        return OperatorCase(source, self._made(source), layout.type_info, self._values(layout, rows), [])

    def _key(self) -> str:
        depth = self._random.choice((0, 1, 1, 2))
        return self._one(
            lambda: self._part_of_key(depth),
            lambda: self._part_of_key(depth),
            lambda: f"({self._part_of_key(depth)}, {self._part_of_key(0)})",
            lambda: f"({self._part_of_key(depth)}, {self._field(self._random.choice(_OF_KEYS))})",
            lambda: f"({self._part_of_key(0)},)",
            lambda: f"({self._part_of_key(1)} if {self._bool(1)} else {self._part_of_key(0)})",
            self._result,
        )

    def _part_of_key(self, depth: int) -> str:
        return self._one(
            lambda: self._field(self._random.choice(_OF_KEYS)),
            lambda: self._int(depth),
            lambda: f"({self._int(depth)} % {self._random.choice((2, 3, 10))})",
            lambda: self._str(depth),
            lambda: self._bool(depth),
            lambda: self._any(depth),
        )

    def assigner(self, rows: int = ROWS) -> OperatorCase:
        """A function of an element and its former timestamp that gives a timestamp, in most cases."""
        layout = self._random.choice(FORMS)
        self._layouts = {"e": layout, "before": Layout("plain", ("i",))}
        source = f"lambda e, before: {self._time_ms()}"
        times = [self._random.choice((None, 0, -1, 2**62, *range(20))) for _ in range(rows)]
        return OperatorCase(source, self._made(source), layout.type_info, self._values(layout, rows), times)

    def _time_ms(self) -> str:
        depth = self._random.choice((0, 1, 1, 2, 3))
        return self._one(
            lambda: self._int(depth),
            lambda: self._int(depth),
            lambda: f"max(before, {self._int(depth)})",
            lambda: f"(before if {self._bool(depth)} else {self._int(depth)})",
            lambda: f"int({self._field('t')}.timestamp() * 1000)",
            lambda: f"int({self._float(depth)})",
            lambda: f"({self._moment(0)} - datetime.datetime(1970, 1, 1)) // timedelta(milliseconds=1)",
            lambda: self._any(depth),
            lambda: self._choice_with_none(depth),
        )

    def gap(self, rows: int = ROWS) -> OperatorCase:
        """A function that gives the gap of a session: a positive whole number, in many cases."""
        layout = self._of_one(*FORMS[:2])
        text = self._int(self._random.choice((0, 1, 2)))
        source = "lambda e: " + self._one(
            lambda: f"abs({text}) + 1",
            lambda: f"max({text}, 1)",
            lambda: f"({text} % 7) + 1",
            lambda: f"{self._random.choice((1, 10, True))} if {self._bool(1)} else {text}",
            lambda: text,
            lambda: self._any(1),
        )
        return OperatorCase(source, self._made(source), layout.type_info, self._values(layout, rows), [])

    def join(self, rows: int = ROWS) -> OperatorCase:
        """A function of two elements that gives one result."""
        return self._of_two(lambda: f"lambda a, b: {self._result()}", rows)

    def flat_join(self, rows: int = ROWS) -> OperatorCase:
        """A function of two elements that gives any number of results."""
        return self._of_two(lambda: f"lambda a, b: {self._several()}", rows)

    def interval_join(self, rows: int = ROWS) -> OperatorCase:
        """A function of two elements and the context of their times that gives any number of results."""
        return self._of_two(lambda: f"lambda a, b, ctx: {self._of_times()}", rows)

    def _of_two(self, text: Callable[[], str], rows: int) -> OperatorCase:
        one, other = (self._random.choice(FORMS[:2]) for _ in range(2))
        if self._random.random() < 0.5:
            other = Layout(other.form, tuple(self._random.sample(other.names, 5)))
        self._layouts = {"a": one, "b": other}
        source = text()
        values, others = self._values(one, rows), self._values(other, rows)
        return OperatorCase(source, self._made(source), one.type_info, values, others, other.type_info)

    def _several(self) -> str:
        return self._one(
            lambda: f"[{self._result()}]",
            lambda: f"[{self._int(1)}, {self._int(1)}]",
            lambda: f"[a] if {self._bool(1)} else []",
            lambda: f"[{self._result()}] if {self._bool(1)} else None",
            lambda: f"[x for x in ({self._field('i')}, {self._field('k')}) if x > 0]",
        )

    def _of_times(self) -> str:
        return self._one(
            self._several,
            self._several,
            lambda: f"[(ctx.get_timestamp(), {self._any(1)})]",
            lambda: f"[ctx.get_left_timestamp() - ctx.get_right_timestamp(), {self._int(1)}]",
            lambda: f"[{self._any(1)}] if ctx.get_right_timestamp() {self._compare()} {self._int(0)} else []",
        )

    def reduce(self, rows: int = ROWS) -> OperatorCase:
        """A function that makes one element of two, with elements of several groups."""
        form, width = self._random.choice(("row", "tuple", "dict", "plain")), self._random.choice((1, 2, 3, 4))
        names = list(dict.fromkeys(self._random.choices(_REDUCED, k=width)))
        if self._random.random() < 0.05:
            names.append("r")
        layout = Layout(form, tuple(names[:1] if form == "plain" else names))
        self._layouts = {"a": layout, "b": layout}
        source = f"lambda a, b: {self._reduced(layout)}"
        groups = [self._random.randrange(_GROUPS) for _ in range(rows)]
        return OperatorCase(source, self._made(source), layout.type_info, self._values(layout, rows), groups)

    def _reduced(self, layout: Layout) -> str:
        if self._random.random() < 0.4:
            return self._chosen(layout)
        return self._put_together(layout, [self._reduced_field(layout, name) for name in layout.names])

    def _put_together(self, layout: Layout, fields: Sequence[str]) -> str:
        named = ", ".join(f"{name}={text}" for name, text in zip(layout.names, fields, strict=True))
        by_form = {
            "plain": fields[0],
            "tuple": f"({', '.join(fields)},)",
            "row": f"Row({named})",
            "dict": self._random.choice((f"dict({named})", f"{{**a, **dict({named})}}")),
        }
        return by_form[layout.form]

    def _chosen(self, layout: Layout) -> str:
        """One of two elements, by comparing fields, in one of the ways in which people write that."""
        names = self._random.sample(layout.names, self._random.randint(1, min(2, len(layout.names))))
        sign = self._random.choice(("<", "<=", ">", ">=", "==", "!="))
        (one, other), e = self._random.sample(("a", "b"), 2), "e"
        by = [[layout.ways_to(variable, name)[0] for name in names] for variable in (one, other, e)]
        minus = "-" if {*names} <= {*"ijkfgyz"} and self._random.random() < 0.3 else ""
        keys = [
            f"({', '.join(minus + part for part in parts)},)" if len(parts) > 1 else minus + parts[0] for parts in by
        ]
        best = self._random.choice(("min", "max"))
        return self._one(
            lambda: f"{one} if {keys[0]} {sign} {keys[1]} else {other}",
            lambda: f"{one} if {keys[0]} {sign} {keys[1]} else {other}",
            lambda: f"{best}({one}, {other}, key=lambda e: {keys[2]})",
            lambda: f"sorted([{one}, {other}], key=lambda e: {keys[2]})[{self._random.choice(('0', '-1'))}]",
            lambda: f"{one} if {keys[0]} {sign} {keys[1]} and {self._bool(1)} else {other}",
            lambda: f"{one} if {self._bool(1)} else {other}",
            lambda: self._random.choice("ab"),
        )

    def _reduced_field(self, layout: Layout, name: str) -> str:
        """A field of the result of a reduce function: in most cases one of those that a fold can have."""
        one, other = (layout.ways_to(variable, name)[0] for variable in self._random.sample(("a", "b"), 2))
        by = self._random.choice(layout.names)
        sides = [layout.ways_to(variable, by)[0] for variable in ("a", "b")]
        sign = self._random.choice(("<", "<=", ">", ">="))
        best = self._random.choice(("min", "max"))
        make = self._maker_of(name) or (lambda _: one)
        is_sum = name not in "btqr"
        return self._one(
            lambda: one,
            lambda: f"{one} + {other}" if is_sum else other,
            lambda: f"{one} + {other}" if is_sum else f"({one} and {other})",
            lambda: f"{best}({one}, {other})",
            lambda: f"({one} if {one} {sign} {other} else {other})",
            lambda: f"({one} if {sides[0]} {sign} {sides[1]} else {other})",
            lambda: f"({one} or {other})",
            lambda: make(self._random.choice((0, 1, 2))),
        )

    def _maker_of(self, name: str) -> Callable[[int], str] | None:
        """The method that makes expressions of the type of a field; None if there is none."""
        of_kinds = {
            **dict.fromkeys("ijkyz", self._int),
            **dict.fromkeys("fg", self._float),
            **dict.fromkeys("su", self._str),
            **dict.fromkeys("dx", self._decimal),
            **{"b": self._bool, "t": self._moment, "q": self._day},
        }
        return of_kinds.get(name)


def _result_of(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call, or its error."""
    try:
        return call(*arguments)
    except Exception as error:
        return error


def _is_same(expected: object, found: object) -> bool:
    return not isinstance(expected, Exception) and shown(expected) == shown(found)


def key_difference(case: OperatorCase) -> str | None:
    """How keys, their hashes and their groups on columns differ from those of the selector; None if they do not.

    Raises:
        NotTraceable: if the selector stays Python.
        Guard: if it is called with each of these elements.
    """
    columns, given = case.columns, case.type_info.from_arrow(case.columns.values)
    expected = [_result_of(case.function, element) for element in given]
    parts, kind = key_parts(columns, (), case.function)
    if kind is not None and not isinstance(kind, DictTypeInfo) and all(map(is_exact, types_of_fields(kind))):
        found = hashes_of_parts(parts, kind).tolist()
        for element, key, got in zip(given, expected, found, strict=True):
            if isinstance(key, Exception) or hashes_of([key])[0] != got:
                return case.differs(element, key, f"a key with the hash {got}")
    key = ComputedKey.of(Key(case.function, _UNKNOWN), case.type_info)
    if isinstance(key, str) or key.why:
        raise NotTraceable
    arrays, reason = key.columns(columns)
    if reason is not None:
        raise Guard(reason)
    of_columns = key.of_columns(arrays, key.kind)
    for element, each, got in zip(given, expected, key.kind.from_arrow(of_columns), strict=True):
        if not _is_same(each, got):
            return case.differs(element, each, got)
    numbers: dict[Any, int] = {}
    groups = [numbers.setdefault(each, len(numbers)) for each in expected]
    if numbers_of_columns(arrays).tolist() != groups:
        return case.differs(given, groups, numbers_of_columns(arrays).tolist())
    return None


def assigner_difference(case: OperatorCase) -> str | None:
    """How the timestamps that an assigner gives on columns differ from those of its calls; None if they do not.

    Raises:
        NotTraceable: if the assigner stays Python.
        Guard: if it is called with each of these elements.
    """
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(case.function)
    step = AssignTimestamps("times", 0, strategy)
    columns = Columns(case.type_info, case.columns.values, pa.array(case.others, pa.int64()), case.columns.sequence)
    on_columns = step.on_columns(columns)
    if on_columns is None:
        raise NotTraceable
    given = case.type_info.from_arrow(columns.values)
    elements = Elements(given, case.others, [*range(len(given))])
    expected = _result_of(lambda: step.sort_out(elements)[0].timestamps)
    return None if _is_same(expected, on_columns.timestamps) else case.differs(given, expected, on_columns.timestamps)


def gap_difference(case: OperatorCase) -> str | None:
    """How gaps on columns differ from those that an extractor gives when it is called; None if they do not.

    Raises:
        NotTraceable: if the extractor stays Python.
        Guard: if it is called with each of these elements.
    """
    traced_whole(case.function, case.type_info)
    try:
        gaps, batch = Gaps("gaps", EventTimeSessionWindows.with_dynamic_gap(case.function), ()).column(case.columns)
    except EventideError as error:  # as only the extractor itself, or what is made of its results, raises one
        raise Guard("an error of the extractor") from error
    if batch is not None:
        raise Guard(batch.reason)
    called = Gaps("gaps", EventTimeSessionWindows.with_dynamic_gap(in_python(case.function)), ())
    expected = _result_of(called.column, case.columns)
    if isinstance(expected, Exception) or not expected[0].equals(gaps):
        return case.differs(case.values, expected, gaps)
    return None


class _FlatJoin(FlatJoinFunction[Any, Any, Any]):
    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.__dict__.update(join=function, __wrapped__=function)

    def join(self, first: object, second: object) -> Any:
        return self.__dict__["join"](first, second)


def join_difference(case: OperatorCase) -> str | None:
    """How the results of a function of pairs on columns differ from those of its calls; None if they do not.

    Raises:
        NotTraceable: if the function stays Python.
        Guard: if it is called with each of these pairs.
    """
    return _pairs_difference(case, JoinsPairs(CallableJoin(case.function)))


def flat_join_difference(case: OperatorCase) -> str | None:
    """As `join_difference`, for a function that gives any number of results."""
    return _pairs_difference(case, FlatJoinsPairs(_FlatJoin(case.function)))


def interval_join_difference(case: OperatorCase) -> str | None:
    """As `join_difference`, for a function that knows the times of both elements."""
    return _pairs_difference(case, CallableProcessJoin(case.function))


def _pairs_difference(
    case: OperatorCase, function: JoinsPairs | FlatJoinsPairs | ProcessJoinFunction[Any, Any, Any]
) -> str | None:
    sides: Any = (case.type_info, case.other_type)
    made = PairFunction(function, sides, _UNKNOWN)
    result_type(made.traced, _UNKNOWN)  # before Python is called with what stays there
    columns = [kind.to_arrow(values) for kind, values in zip(sides, (case.values, case.others), strict=True)]
    tables = [
        pa.table(dict(zip(kind.field_names, column.flatten(), strict=True)))
        for kind, column in zip(sides, columns, strict=True)
    ]
    count = len(case.values)
    at = [np.arange(count), np.arange(count) * 7 % count]
    times = [np.arange(count), np.arange(count)[::-1] * 3]
    later = np.maximum(*times)
    is_interval = isinstance(function, ProcessJoinFunction)
    meeting = InInterval(times, 0) if is_interval else InWindow(TimeWindow(0, 100), np.arange(count))
    outputs, metrics = Gathered(), Metrics()
    result_times = later if is_interval else np.full(count, 99)
    pairs = Pairs(tables, at, result_times, lambda number: number)
    try:
        PairCaller("join", made, outputs, metrics, None).call(pairs, meeting)
    except UserFunctionError as error:
        raise Guard("an error of the function") from error
    if metrics.counters():
        raise Guard(*metrics.counters()["join"])
    found = outputs.take().get(None, Elements())
    given = [kind.from_arrow(column) for kind, column in zip(sides, columns, strict=True)]
    expected = _result_of(lambda: _called(case, made, given, at, (*times, result_times)))
    got = [*zip(found.values, found.timestamps, strict=True)]
    if isinstance(expected, Exception) or [*map(shown, expected)] != [*map(shown, got)]:
        return case.differs(given, expected, got)
    return None


def _called(
    case: OperatorCase, made: PairFunction, given: Sequence[list[Any]], at: Sequence[Any], times: Sequence[Any]
) -> list[tuple[Any, int]]:
    """The results of calls with each pair, with their times."""
    results = []
    context = JoinContext()
    for left, right, *of_pair in zip(*at, *times, strict=True):
        context.left_ms, context.right_ms, context.time_ms = map(int, of_pair)
        more = () if isinstance(made.function, JoinsPairs | FlatJoinsPairs) else (context,)
        value = case.function(given[0][left], given[1][right], *more)
        several = ([] if value is None else value) if made.gives_several else [value]
        results += [(each, context.time_ms) for each in several]
    return results


class _Reduce:
    """A reduce function around a plain one."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.reduce = function


def reduce_difference(case: OperatorCase) -> str | None:
    """How rolling and reduced elements on columns differ from what calls give, one after the other; None if not.

    Raises:
        NotTraceable: if the function stays Python.
        Guard: if it is called with each of these elements.
    """
    columns, given = case.columns, case.type_info.from_arrow(case.columns.values)
    found = _fold_difference(case, columns, given)
    if found is not None:
        return found
    arrival = np.random.default_rng(len(case.source)).permutation(len(given))
    groups = np.unique(np.array(case.others), return_inverse=True)[1]
    rolled = RollingGroups(groups, arrival).rolled(_Reduce(case.function), columns.values, case.type_info)  # type: ignore[arg-type]
    kept: dict[int, Any] = {}
    for place, got in zip(arrival.tolist(), case.type_info.from_arrow(rolled), strict=True):
        group, element = int(groups[place]), given[place]
        before = kept.get(group)
        expected = element if before is None else _result_of(case.function, before, element)
        if not isinstance(expected, Exception):
            expected = _result_of(lambda value=expected: case.type_info.as_declared([value])[0])
        if not _is_same(expected, got):
            return case.differs((before, element), expected, got)
        kept[group] = expected
    return None


def _fold_difference(case: OperatorCase, columns: Columns, given: list[Any]) -> str | None:
    """How a fold differs: by pane, after what there was before, and in another order if that does not show."""
    try:
        fold = fold_of(case.function, case.type_info)
    except NotTraceable:
        return None
    panes = [0 if group < 2 else 10 for group in case.others]
    timed = Columns(case.type_info, columns.values, pa.array(panes, pa.int64()), columns.sequence)
    reduced = list[tuple[int, Any]]()
    try:
        found = reduced_columns(fold, RegularPanes(10, 10), None, timed)
        reduced = [*zip(found.panes.tolist(), found.values, strict=True)]
    except Guard:
        pass
    for pane, got in reduced:
        of_pane = [element for element, at in zip(given, panes, strict=True) if at == pane]
        expected = _reduced_in_turn(case, of_pane)
        if not _is_same(expected, got):
            return case.differs((pane, of_pane), expected, got)
        if not fold.shows_order(()):
            expected = _reduced_in_turn(case, of_pane[::-1])  # it may compare others, of which some may be None
            if not isinstance(expected, Exception) and not _is_same(expected, got):
                return case.differs((pane, of_pane[::-1]), expected, f"{got!r} in any order")
    if columns.values.null_count:
        return None  # an element that is None drops what was there before: the function is called
    half = len(given) // 2
    kept: dict[Any, list[Any]] = {}
    for group in {*case.others[:half]}:
        of_group = [e for e, other in zip(given[:half], case.others, strict=False) if other == group]
        value = _reduced_in_turn(case, of_group)
        if isinstance(value, Exception):
            return None
        kept[group] = [value]
    try:
        after = added_by_key(fold, case.others[half:], columns.values.slice(half), kept)
    except Guard:
        return None
    for group, (got,) in after.items():
        of_group = [e for e, other in zip(given[half:], case.others[half:], strict=True) if other == group]
        before = kept.get(group, [])
        value = _reduced_in_turn(case, [*before, *of_group])
        if not _is_same(value, got):
            return case.differs((before, of_group), value, got)
    return None


def _reduced_in_turn(case: OperatorCase, elements: list[Any]) -> Any:
    return _result_of(functools.reduce, case.function, elements)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare traces of random functions with the functions.")
    parser.add_argument("--cases", type=int, default=1_000_000, help="how many functions and elements")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    maker, counts = OperatorMaker(options.seed), collections.Counter[str]()
    kinds: list[tuple[Callable[[], Any], Callable[[Any], str | None], str]] = [
        (maker.aggregate, aggregate_difference, "aggregates"),
        (maker.process, process_difference, "outputs"),
        (maker.row_by_position, difference_of_rows, "rows without names"),
        (maker.key_selector, key_difference, "keys"),
        (maker.assigner, assigner_difference, "timestamps"),
        (maker.gap, gap_difference, "gaps"),
        (maker.join, join_difference, "pairs"),
        (maker.flat_join, flat_join_difference, "flat pairs"),
        (maker.interval_join, interval_join_difference, "pairs in time"),
        *[(maker.reduce, reduce_difference, "reduced")] * 3,
        *[(maker.case, difference, "on columns")] * 6,
    ]
    while counts["cases"] < options.cases:
        make, compare, name = kinds[counts["cases"] // ROWS % len(kinds)]
        case = make()
        counts["cases"] += ROWS
        try:
            found = compare(case)
        except (NotTraceable, Guard) as reason:
            counts[f"{name}: {type(reason).__name__}"] += 1
            continue
        counts[name] += 1
        if found is not None:
            raise SystemExit(found)
    print(dict(sorted(counts.items())))


if __name__ == "__main__":
    main()
