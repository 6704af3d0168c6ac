"""Elements of scenarios that come as columns, and a function that runs on columns in every other micro-batch only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa

from eventide.api.source import IDLE
from eventide.common import Row, Types
from eventide.testing import ScriptedSource

_TEXTS = ("k", "s", "do", "m")
_NUMBERS = ("id", "ts", "v", "wm", "in")
ELEMENT = Types.ROW_NAMED([*_TEXTS, *_NUMBERS], [*[Types.STRING() for _ in _TEXTS], *[Types.LONG() for _ in _NUMBERS]])
_PADDING = " ", "\N{EM SPACE}"
"""White space around the keys of micro-batches in turn: functions on columns do not strip text beyond ASCII."""


def with_fields(event: dict[str, Any]) -> dict[str, Any]:
    """An element of a script that has all fields of all scenarios, None where it says nothing of them."""
    return {name: event.get(name) for name in ELEMENT.field_names}


def without_padding(element: Row) -> Row:
    """An element whose key has no white space before and after it."""
    return Row(**{**element.as_dict(), "k": element["k"].strip()})


class InColumns(ScriptedSource):
    """Plays a script whose elements are dicts as record batches: its elements are rows, whose keys are padded."""

    def __init__(self, splits: list[str], batches: list[list[Any]], bounded: bool = True) -> None:
        padded = [[_padded(entry, _PADDING[number % 2]) for entry in batch] for number, batch in enumerate(batches)]
        super().__init__(splits, padded, ELEMENT, bounded)

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        for number in range(start, end):
            items = super().read(split, number, number + 1)
            for is_mark, run in groupby(items, lambda item: item is IDLE):
                if is_mark:
                    yield from run
                else:
                    yield pa.RecordBatch.from_pylist([*run], pa.schema(ELEMENT.arrow_type()))


def _padded(entry: Any, padding: str) -> Any:
    """An entry of a script whose element's key is padded; marks stay as they are."""
    if not isinstance(entry, tuple):
        return entry
    split, element = entry
    return split, {**element, "k": f"{padding}{element['k']}{padding}"}


def beyond_ascii(batches: list[list[dict[str, Any]]]) -> int:
    """How many record batches of a script's micro-batches have keys that no function on columns strips."""
    found = 0
    for number, batch in enumerate(batches):
        if not _PADDING[number % 2].isascii():
            of_splits: dict[str, list[bool]] = {}
            for event in batch:
                if "s" in event:
                    of_splits.setdefault(event["s"], []).append("id" in event)
            found += sum(has_elements for marks in of_splits.values() for has_elements, _ in groupby(marks))
    return found
