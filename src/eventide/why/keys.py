"""One key: in which windows it has something, and what else an operator keeps of it: values, and timers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.windows import TimeWindow
from eventide.common.words import in_utc
from eventide.pickling.pickles import is_pickle
from eventide.runtime.columnar.aggregation import ROWS
from eventide.runtime.columnar.layout import END, START, VALUE
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.elements.codec import decode_table
from eventide.runtime.joins.interval import ELEMENTS
from eventide.runtime.state.bucket import KINDS_OF_TIME, Bucket, Column
from eventide.runtime.state.bucket_store import is_page, read_buckets
from eventide.runtime.state.expiring import SUFFIX, without_times
from eventide.runtime.state.key_context import FUNCTION_STATE
from eventide.runtime.state.rows_of_keys import bucket_of
from eventide.runtime.state.timers import timers_of
from eventide.runtime.window.element_store import FIRST, LAST
from eventide.runtime.window.operator import CONTENTS
from eventide.why.evidence import Evidence
from eventide.why.standing import OperatorStanding, Phase, WindowStanding, is_on_columns, panes_of, standing_of

_KEY = "__key"
_OWN = "__"
_LONGEST = 200
_TIMERS = ("timer of event time", "timer of processing time")
_SESSIONS = "windows"
_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class KeyStanding:
    """Content of a window for a key.

    Attributes:
        window: the window.
        elements: how many elements it stands for; None if that is not kept.
        kept: its aggregate or elements, as text; "" where an aggregate means nothing yet.
    """

    window: WindowStanding
    elements: int | None
    kept: str


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """State of an operator for a key: by window, and beside that, by its name, such as state and timers of a function.

    Attributes:
        standing: the operator.
        key: the key, as it was asked for.
        windows: earliest first.
        kept: name and text.
    """

    standing: OperatorStanding
    key: str
    windows: list[KeyStanding]
    kept: list[tuple[str, str]]


def answer_of_key(evidence: Evidence, standing: OperatorStanding, key: str) -> KeyAnswer:
    """Return the state of an operator for a key.

    Args:
        evidence: the facts that are known of the job.
        standing: the operator.
        key: the key as text; of several columns, with commas between.

    Raises:
        StateError: something is kept that cannot be shown without the program.
    """
    of_windows, kept = _WindowsOfKey(standing), list[tuple[str, str]]()
    panes, is_table = panes_of(standing), is_on_columns(standing)
    for side, row, content in evidence.stored(standing.operator):
        if row is not None and panes is not None and isinstance(content, bytes):
            held: Iterator[tuple[int, int | None, str]]
            if is_table:
                held = _in_panes(panes, row, content, key)
            elif is_pickle(content):
                held = _in_windows(evidence, content, key)
            else:
                held = _in_tables(row, content, key)
            for number, elements, text in held:
                of_windows.add(panes.window(number), elements, text)
        elif not isinstance(content, bytes) or (row is None and (is_pickle(content) or is_page(content))):
            for entry in entries_of_key(content, evidence.loads, lambda one: _text(one) == key):
                _add_entry(of_windows, kept, entry)
        elif row is None:
            _add_rows(of_windows, kept, f"{side} " if side else "", _rows_of(decode_table(content), key))
    return KeyAnswer(standing, key, of_windows.standings(), kept)


@dataclass(frozen=True, slots=True)
class StateEntry:
    """A value or a timer of a key.

    Attributes:
        name: the name of the value; of a timer, its kind.
        namespace: the window, or whatever else it belongs to; None for the key as a whole.
        value: the value; of a timer, the time as text.
    """

    name: str
    namespace: object
    value: Any

    @property
    def title(self) -> str:
        """The kind of the entry, in words."""
        if self.name in _TIMERS:
            return self.name + self._place
        if self.name == ELEMENTS and self.namespace in (0, 1):
            return f"{_SIDES[self.namespace]} elements"
        return f"state {self.name.removeprefix(FUNCTION_STATE).removesuffix(SUFFIX)!r}{self._place}"

    @property
    def text(self) -> str:
        """The kept value, in words."""
        if self.name in _TIMERS:
            return str(self.value)
        if self.name == ELEMENTS and self.namespace in (0, 1):
            times, values = self.value
            return f"{len(times):,}, of {in_utc(min(times))} to {in_utc(max(times))}: {values!r}"
        return repr(without_times(self.value) if self.name.endswith(SUFFIX) else self.value)

    @property
    def _place(self) -> str:
        if self.namespace is None:
            return ""
        if isinstance(self.namespace, TimeWindow):
            return f" of the window {in_utc(self.namespace.start)} to {in_utc(self.namespace.end)}"
        return f" of {self.namespace!r}"


def entries_of_key(
    stored: bytes | pa.Table, loads: Callable[[bytes], Any], is_asked: Callable[[Any], bool]
) -> Iterator[StateEntry]:
    """Give the entries of keyed state for the keys that are asked for: values first, then timers.

    Args:
        stored: rows of keys, or the content of a bucket.
        loads: reads objects.
        is_asked: says which keys.
    """
    buckets = read_buckets(stored, loads) if isinstance(stored, bytes) else [bucket_of(stored, loads)]
    those = ((found, place) for found in buckets for place, key in enumerate(found.keys) if is_asked(key))
    for found, place in those:
        for name, column in found.values.items():
            for value in _values(column, place, loads):
                if name != _SESSIONS:  # each of which has its contents
                    yield StateEntry(name, None, value)
        for name, column in found.spaces.items():
            for values in _values(column, place, loads):
                yield from (StateEntry(name, namespace, value) for namespace, value in values.items())
        yield from _timers(found, place)


class _WindowsOfKey:
    """The windows of a key, with what was found in their parts."""

    def __init__(self, standing: OperatorStanding) -> None:
        self._standing = standing
        self._found: dict[tuple[int, int], list[tuple[int | None, str]]] = {}

    def add(self, window: TimeWindow, elements: int | None, text: str) -> None:
        self._found.setdefault((window.start, window.end), []).append((elements, text))

    def standings(self) -> list[KeyStanding]:
        """All but those that are gone, whose panes others may still need."""
        windows = [
            self._together(standing_of(self._standing, TimeWindow(*bounds), None), parts)
            for bounds, parts in sorted(self._found.items())
        ]
        return [one for one in windows if one.window.phase is not Phase.GONE]

    @staticmethod
    def _together(window: WindowStanding, parts: list[tuple[int | None, str]]) -> KeyStanding:
        counts = [elements for elements, _ in parts if elements is not None]
        return KeyStanding(
            window, sum(counts) if counts else None, _short(", ".join(text for _, text in parts if text))
        )


def _in_panes(panes: Panes, pane: int, chunk: bytes, key: str) -> Iterator[tuple[int, int | None, str]]:
    """Rows or partial aggregates of a pane, which belongs to several windows where they slide."""
    rows = _rows_of(decode_table(chunk), key)
    if len(rows):
        for number in panes.windows_at(pane):
            yield number, _count(rows), ""


def _in_windows(evidence: Evidence, chunk: bytes, key: str) -> Iterator[tuple[int, int | None, str]]:
    """Give the contents of windows for a key, or the elements that they must still add."""
    content: Any = evidence.loads(chunk)
    for window, keys, values in content:
        for one, value in zip(keys, values, strict=True):
            if _text(one) == key:
                yield window, None, repr(value)


def _in_tables(row: int, chunk: bytes, key: str) -> Iterator[tuple[int, int | None, str]]:
    """Elements of windows that are kept on columns; windows that lie together share them."""
    elements: dict[int, list[Any]] = {}
    for one in _rows_of(decode_table(chunk), key).to_pylist():
        for number in range(one.get(FIRST, row), one.get(LAST, row) + 1):
            elements.setdefault(number, []).append(one[VALUE])
    for number, some in elements.items():
        yield number, len(some), repr(some)


def _add_rows(windows: _WindowsOfKey, kept: list[tuple[str, str]], part: str, rows: pa.Table) -> None:
    """Sessions of a key on columns; of other operators, its rows."""
    if START in rows.column_names:
        for row in rows.to_pylist():
            windows.add(TimeWindow(row[START], row[END]), row.get(ROWS), "")
    elif len(rows):
        shown = [{name: value for name, value in row.items() if not name.startswith(_OWN)} for row in rows.to_pylist()]
        text = ", ".join(map(repr, filter(None, shown)))
        kept.append((f"{part}elements", _short(f"{_count(rows):,}" + (f": {text}" if text else ""))))


def _add_entry(windows: _WindowsOfKey, kept: list[tuple[str, str]], entry: StateEntry) -> None:
    if entry.name == CONTENTS and isinstance(entry.namespace, TimeWindow):
        windows.add(entry.namespace, None, repr(entry.value))
    else:
        kept.append((entry.title, _short(entry.text)))


def _rows_of(table: pa.Table, key: str) -> pa.Table:
    """The rows of a key."""
    columns = [_texts(table.column(name)) for name in table.column_names if name.startswith(_KEY)]
    if not columns:
        return table.slice(0, 0)
    together = columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, ",")
    return table.filter(pc.equal(together, key))


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The text of each key, as `_text` has it for objects: "None" where a key is missing."""
    if pa.types.is_string(column.type) or pa.types.is_integer(column.type):
        return column.cast(pa.string()).fill_null(str(None))
    return pa.chunked_array([pa.array([str(value) for value in column.to_pylist()], pa.string())])


def _count(rows: pa.Table) -> int:
    """How many elements some rows stand for."""
    return int(pc.sum(rows.column(ROWS)).as_py()) if ROWS in rows.column_names else len(rows)


def _text(key: object) -> str:
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _values(column: Column, place: int, loads: Callable[[bytes], Any]) -> list[Any]:
    """The value of the key of a place in a column, if it has one."""
    owners, are_pickled, values = column
    if owners is not None:
        if place not in owners:
            return []
        place = owners.index(place)
    return [loads(values[place]) if are_pickled else values[place]]


def _timers(bucket: Bucket, place: int) -> Iterator[StateEntry]:
    places = list(range(len(bucket.keys)))
    for kind, parts in zip(range(KINDS_OF_TIME), bucket.timers, strict=False):
        for columns in filter(None, parts):
            for time_ms, owner, _ in timers_of(places, columns):
                mine, namespace = (owner, None) if columns[3] is None else owner
                if mine == place and not (kind == 0 and isinstance(namespace, TimeWindow)):  # which fire windows
                    yield StateEntry(_TIMERS[kind], namespace, in_utc(time_ms))
