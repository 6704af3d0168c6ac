"""Whether a program fits a savepoint: state without an operator is named, and values widen to the program's types."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from eventide.api.windows import TimestampedValue
from eventide.common.typeinfo import CompositeTypeInfo
from eventide.common.typeinfo.widening import Conversion, type_of_text
from eventide.errors import StateError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.columnar.operator import ColumnarWindow
from eventide.runtime.joins.interval import ELEMENTS
from eventide.runtime.state.declared import (
    conversion_of_texts,
    conversions_to,
    declared_together,
    obstacle_between,
    widened,
)
from eventide.runtime.state.expiring import SUFFIX
from eventide.runtime.state.operators import MAY_GO, SOURCES, WHOLE_ELEMENTS, changes_of, follows_from_the_program
from eventide.runtime.tasks.operator_task import OperatorTaskSpec
from eventide.runtime.tasks.task import TaskSpec
from eventide.runtime.window.operator import CONTENTS
from eventide.savepoint.directory import Outline, SavedSource
from eventide.savepoint.rows import SUBTASK, VALUE, WINDOW
from eventide.savepoint.tables import form_of, obstacle

KEPT_FIELDS = "kept fields"
"""Parts that follow from the types of elements, and are seen in the tables themselves."""

_DEALT_OUT = ("level", "parallelism", KEPT_FIELDS, SOURCES)
"""Parts of an operator's identity that may change: its state is redistributed, and tables show the kept fields."""

_MOST_SHOWN = 200

DATA_FRAME = "DataFrame"
"""The kind of a source that only Spark can begin at a position."""

Identity: TypeAlias = Mapping[str, str]
"""Identity of an operator's state."""

ELEMENT_TYPES = ("element type", "element types")

BOOTSTRAPPED = "bootstrapped"
"""Mark in the identity of an operator whose state no job has made: it says only what is known of it."""

_KEY_TYPE, _BROADCAST = "key type", "broadcast state"
_CONTENTS = "window contents"

_SIDES = (("left/", "first/"), ("right/", "second/"))
"""The parts of a join's state, by its input."""

_NAME = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""

_BY_NAME = re.compile(rf"MapStateDescriptor\({_NAME}, (MAP\(.*?\))\)(?=, MapStateDescriptor\(|$)", re.DOTALL)


def check_fit(
    savepoint: Outline,
    program: Mapping[str, Any],
    tasks: Iterable[TaskSpec],
    *,
    allow_non_restored: bool,
    placed: Collection[str] = (),
) -> None:
    """Refuse a program that does not fit a savepoint. Operators, sources and sinks that are new in it do.

    Args:
        savepoint: the savepoint.
        program: the identity of the program, of `eventide.plan.identity.program_identity`.
        tasks: its operators.
        placed: the names of DataFrames that the program has begin where they stood.
        allow_non_restored: whether state without an operator may be left behind, and a source at its position.

    Raises:
        StateError: naming each difference.
    """
    header, found = savepoint.header, savepoint.header.program
    changes = []
    if found["max parallelism"] != program["max parallelism"]:
        before, now = found["max parallelism"], program["max parallelism"]
        changes.append(
            f"the max parallelism was {before} and is now {now}, which changes how keys are distributed: take the "
            f"savepoint with --max-parallelism {now}"
        )
    types = {source["name"]: source["element type"] for source in program["sources"]}
    homeless = []
    for source in header.sources:
        if source.name not in types:
            homeless.append(f"the source {source.name!r} is missing in the program")
        elif source.kind == DATA_FRAME and source.name not in placed:
            homeless.append(
                f"the source {source.name!r} is a DataFrame, and only its reader can begin at "
                f"{_shown(source.offsets)}: get that position from env.saved_position({source.name!r}), and pass it to "
                "the reader, such as by the option startingOffsets for Kafka; if the reader has no such option, as for "
                "files, read them with an eventide source"
            )
        elif (other := _other_kind(source.name, found, program)) is not None:
            changes.append(other)
        elif types[source.name] != source.element_type:
            why = _why_not(source, types[source.name])
            changes += [] if why is None else [f"the source {source.name!r} had elements {source.element_type}, {why}"]
    changes += _unclear(found, program)
    planned = {operator: _comparable(one) for operator, one in program["operators"].items()}
    saved = {
        operator: accepted(_comparable(one), planned.get(operator, {})) for operator, one in found["operators"].items()
    }
    changes += changes_of(saved, planned, may_miss=allow_non_restored)
    changes += [] if changes else _obstacles_in_tables(savepoint, tasks)
    changes += [] if allow_non_restored else homeless
    if changes:
        raise StateError(
            f"the program does not fit the savepoint {savepoint.location}: {'; '.join(changes)}. Undo these changes. "
            "An operator that is missing because it has another id keeps its state with the id that it had as its "
            "uid(...); where one, or a source, is gone, from_savepoint(..., allow_non_restored_state=True) leaves its "
            "state behind"
        )


def accepted(before: Identity, now: Identity) -> dict[str, str]:
    """Return the former identity of an operator's state, with the program's types where former ones widen to them."""
    if BOOTSTRAPPED in before:
        before = {**now, **{what: text for what, text in before.items() if what != BOOTSTRAPPED}}
    found = dict(before)
    keeps_columns = before.get(_CONTENTS, "").startswith("AggregatedColumns")
    for what in (*ELEMENT_TYPES, _KEY_TYPE):
        was, becomes = before.get(what), now.get(what)
        if was is None or becomes is None or (keeps_columns and now.get("stored form") != "ColumnarWindow"):
            continue
        if _fit(_types(was), _types(becomes), is_key=what == _KEY_TYPE):
            found[what] = becomes
    if _BROADCAST in before and _BROADCAST in now:
        was_of, becomes_of = _broadcast(before), _broadcast(now)
        if [*was_of] == [*becomes_of] and _fit([*was_of.values()], [*becomes_of.values()], is_key=False):
            found[_BROADCAST] = now[_BROADCAST]
    return found


class Widening:
    """Widening of the values of an operator's state by key.

    Args:
        before: the identity of the operator in the program that was saved.
        now: its identity now.
        declared: the types of its states in each subtask that was saved. States get types that are the same for all.

    Raises:
        StateError: if a type does not widen.
    """

    def __init__(self, before: Identity, now: Identity, declared: Mapping[int, bytes]) -> None:
        together = declared_together(declared.values())
        self._declared = {subtask: conversions_to(together, stored) for subtask, stored in declared.items()}
        self._elements: Sequence[Conversion | None] = ()
        for what in ELEMENT_TYPES:
            if before.get(what) != now.get(what) and what in before and what in now:
                pairs = zip(_types(before[what]), _types(now[what]), strict=True)
                self._elements = [conversion_of_texts(was, becomes, "elements") for was, becomes in pairs]
        self._has_accumulators = before.get(_CONTENTS) == "Aggregated"
        was_of, becomes_of = _broadcast(before), _broadcast(now)
        self._broadcast = {
            name: conversion_of_texts(was, becomes_of[name], f"the broadcast state {name!r}")
            for name, was in was_of.items()
            if name in becomes_of
        }

    def of_rows(self, rows: pa.Table) -> pa.Table:
        """Rows of state by key."""
        if not any(self._declared.values()) and not any(self._elements):
            return rows
        return _with_values(rows, map(self._value_of, rows.to_pylist()))

    def of_broadcast(self, rows: pa.Table, name: str) -> pa.Table:
        """Rows of the broadcast state of a name."""
        convert = self._broadcast.get(name)
        if convert is None:
            return rows
        pickles = zip(*(rows.column(name).to_pylist() for name in ("key_pickle", "value_pickle")), strict=True)
        return _with_values(rows, (_of_broadcast(loads(key), loads(value), convert) for key, value in pickles))

    def _value_of(self, row: dict[str, Any]) -> Any:
        convert = self._of_values(row)
        return row["value_pickle"] if convert is None else dumps(convert(loads(row["value_pickle"])))

    def _of_values(self, row: Mapping[str, Any]) -> Callable[[Any], Any] | None:
        """Return the conversion of the value of a row; None if it stays."""
        if row["kind"] == VALUE:
            name, expires = row["name"].removesuffix(SUFFIX), row["name"].endswith(SUFFIX)
            convert = self._declared.get(row[SUBTASK], {}).get(name)
            if convert is not None:
                return partial(widened, convert=convert, expires=expires)
        if row["kind"] == VALUE and row["name"] == ELEMENTS and len(self._elements) == 2:
            side = self._elements[loads(row["namespace_pickle"])]
            return None if side is None else lambda kept: (kept[0], [side(value) for value in kept[1]])
        if len(self._elements) != 1 or self._elements[0] is None:
            return None
        of_window = row["kind"] == WINDOW or (row["kind"] == VALUE and row["name"] == CONTENTS)
        is_accumulator = self._has_accumulators and not row["chunk"]  # after the first chunk there are elements
        if not of_window or is_accumulator:
            return None
        convert = self._elements[0]
        return lambda kept: [_element(value, convert) for value in kept]


def _with_values(rows: pa.Table, pickles: Iterable[bytes]) -> pa.Table:
    at = rows.column_names.index("value_pickle")
    return rows.set_column(at, rows.schema.field(at), pa.array([*pickles], rows.schema.field(at).type))


def _of_broadcast(key: object, value: tuple[Any], convert: Conversion) -> bytes:
    return dumps((convert({key: value[0]})[key],))


def _unclear(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Why the state of operators without a uid may be that of others: their ids follow from the order of sources."""
    was, becomes = ([source["name"] for source in program["sources"]] for program in (before, now))
    if all(name == other for name, other in zip(was, becomes, strict=False)):
        return []
    if not all({SOURCES, MAY_GO, BOOTSTRAPPED} & one.keys() for one in before["operators"].values()):
        return [
            f"the sources were {', '.join(was)}, and are now {', '.join(becomes)}, and the version that took the "
            "savepoint did not record which watermarks belong to which source; keep the sources in their old order, "
            "and add new ones last"
        ]
    names = {
        one["name"]: operator for operator, one in before["operators"].items() if follows_from_the_program(operator)
    }
    if not names:
        return []
    given = ", ".join(f"{name!r} has the state of uid({operator!r})" for name, operator in names.items())
    return [
        f"the sources were {', '.join(was)}, and are now {', '.join(becomes)}, so ids that follow from the program may "
        f"be those of other operators; add new sources last, or give operators that keep their state a uid: {given}"
    ]


def _other_kind(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Why a source cannot go on where one of that name stood; None if it is of the same kind, or that is not known."""
    kinds = ({source["name"]: source.get("kind") for source in program["sources"]} for program in (before, now))
    was, becomes = (of_program.get(name) for of_program in kinds)
    if was is None or becomes is None or was == becomes:
        return None
    return (
        f"the source {name!r} was a {was} and is a {becomes}, which cannot read its positions: give the new one "
        "another name, and drop the old one with allow_non_restored_state"
    )


def _comparable(identity: Mapping[str, str]) -> dict[str, str]:
    return {what: text for what, text in identity.items() if what not in _DEALT_OUT}


def _shown(offsets: Sequence[Any]) -> str:
    """The position of a DataFrame; a long one is cut."""
    text = json.dumps(offsets[0] if len(offsets) == 1 else offsets)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _why_not(source: SavedSource, now: str) -> str | None:
    """Why a source cannot go on with elements of another type; None if it can."""
    why = obstacle_between(source.element_type, now)
    if why is not None:
        return f"and has {now}: {why}"
    if source.storage is not None:
        return f"and has {now}; elements that it has emitted, and that are not read yet, have the old type"
    return None


def _obstacles_in_tables(savepoint: Outline, tasks: Iterable[TaskSpec]) -> list[str]:
    """Where what operators keep in columns does not fit those that they would keep."""
    changes: list[str] = []
    operators = savepoint.header.program["operators"]
    for task in tasks:
        spec = task.operator if isinstance(task, OperatorTaskSpec) else None
        if isinstance(spec, ColumnarWindow) and task.id in operators:
            why = _other_form(spec, operators[task.id].get("element type", ""))
            if why is not None:
                changes.append(f"operator {task.name!r}: {why}")
                continue
        form = form_of(task)
        if form is not None:
            for part, schema in savepoint.schemas(task.id).items():
                keeps_some = KEPT_FIELDS in task.identity
                had = _fields_of_side(operators.get(task.id, {}), part) if keeps_some else None
                why = obstacle(schema, form.stored_schema(part), may_change=keeps_some, had=had)
                changes += [] if why is None else [f"operator {task.name!r}: {why}"]
    return changes


def _fields_of_side(before: Identity, part: str) -> Collection[str] | None:
    """The fields that the elements of one side of a join had, of which it kept some; None if that is not known."""
    sides = _types(before.get(WHOLE_ELEMENTS, ""))
    if len(sides) < len(_SIDES):
        return None
    kind = type_of_text(next(text for names, text in zip(_SIDES, sides, strict=True) if part in names))
    return kind.field_names if isinstance(kind, CompositeTypeInfo) else None


def _other_form(spec: ColumnarWindow, before: str) -> str | None:
    """Why aggregates of elements of a type, given as text, are not those of what comes; None if they are.

    Sums, and sketches of what there is, have another form for decimal numbers of Arrow's than for integers.
    """
    was = type_of_text(before) if before != str(spec.value_type) else spec.value_type
    if not isinstance(was, CompositeTypeInfo) or not isinstance(spec.value_type, CompositeTypeInfo):
        return None
    types, now = (dict(zip(kind.field_names, kind.types, strict=True)) for kind in (was, spec.value_type))
    for name in spec.aggregation.input_columns:
        becomes = now[name]
        if name not in types or types[name] == becomes or not pa.types.is_decimal(becomes.arrow_type()):
            continue
        if not all(pa.types.is_decimal128(kind.arrow_type()) for kind in (types[name], becomes)):
            return f"{name!r} was {types[name]} and is now {becomes}, whose aggregates are stored in another form"
    return None


def _element(value: object, convert: Conversion) -> Any:
    if isinstance(value, TimestampedValue):
        return TimestampedValue(convert(value.value), value.timestamp)
    return convert(value)


def _types(text: str) -> list[str]:
    """The texts of one type, or of two with a word between."""
    for match in re.finditer(" and ", text):
        parts = [text[: match.start()], text[match.end() :]]
        if all(map(_is_type, parts)):
            return parts
    return [text]


def _is_type(text: str) -> bool:
    try:
        type_of_text(text)
    except ValueError:
        return False
    return True


def _fit(before: Sequence[str], now: Sequence[str], *, is_key: bool) -> bool:
    return len(before) == len(now) and all(
        obstacle_between(was, becomes, is_key=is_key) is None for was, becomes in zip(before, now, strict=True)
    )


def _broadcast(identity: Identity) -> dict[str, str]:
    """The types of broadcast states by their names."""
    return {ast.literal_eval(name): types for name, types in _BY_NAME.findall(identity.get(_BROADCAST, ""))}
