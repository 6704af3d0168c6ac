"""One key: in which windows it has something, and what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.runtime.columnar.aggregation import ROWS
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.elements.codec import decode_table
from eventide.why.evidence import Evidence
from eventide.why.standing import Standing
from eventide.why.windows import Phase, WindowStanding, is_on_columns, panes_of, standing_of

_KEY = "__key"
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class KeyStanding:
    """What a key has in a window.

    Attributes:
        window: the window.
        elements: how many elements it stands for; None where that is not kept.
        kept: what is kept of them, as text; "" where that is an aggregate that means nothing yet.
    """

    window: WindowStanding
    elements: int | None
    kept: str


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """What an operator has of a key: by window, or None where its windows are not fixed."""

    standing: Standing
    key: str
    windows: list[KeyStanding] | None


def windows_of_key(evidence: Evidence, standing: Standing, key: str) -> list[KeyStanding] | None:
    """The fixed windows of an operator in which a key has something, earliest first.

    Args:
        evidence: what is known of the job.
        standing: the operator.
        key: the key as text; of several columns, with commas between.

    Returns:
        Nothing where the operator's windows are not fixed: then keys cannot be looked up.

    Raises:
        StateError: the windows keep objects of the program's own classes, and this is not the program.
    """
    panes = panes_of(standing)
    if panes is None:
        return None
    found: dict[int, list[tuple[int | None, str]]] = {}
    for row, chunk in evidence.chunks(standing.operator["id"]):
        held = _in_table(panes, row, chunk, key) if is_on_columns(standing) else _in_objects(evidence, chunk, key)
        for number, elements, kept in held:
            found.setdefault(number, []).append((elements, kept))
    windows = [_together(standing, panes, number, parts) for number, parts in sorted(found.items())]
    return [one for one in windows if one.window.phase is not Phase.GONE]  # whose panes others may still need


def _together(standing: Standing, panes: Panes, number: int, parts: list[tuple[int | None, str]]) -> KeyStanding:
    counts = [elements for elements, _ in parts if elements is not None]
    kept = ", ".join(text for _, text in parts if text)
    window = standing_of(standing, panes, number, None)
    return KeyStanding(window, sum(counts) if counts else None, kept[:_LONGEST])


def _in_table(panes: Panes, pane: int, chunk: bytes, key: str) -> Iterator[tuple[int, int | None, str]]:
    """Partial aggregates of a pane, which belongs to several windows where they slide."""
    table = decode_table(chunk)
    columns = [table.column(name).cast(pa.string()) for name in table.column_names if name.startswith(_KEY)]
    texts = [",".join(map(str, texts)) for texts in zip(*(column.to_pylist() for column in columns), strict=True)]
    if key in texts:
        elements = table.column(ROWS)[texts.index(key)].as_py() if ROWS in table.column_names else None
        for number in panes.windows_at(pane):
            yield number, elements, ""


def _in_objects(evidence: Evidence, chunk: bytes, key: str) -> Iterator[tuple[int, int | None, str]]:
    """What windows keep of each key, or the elements that they must still add."""
    content: Any = evidence.loads(chunk)
    for window, keys, values in content:
        for one, value in zip(keys, values, strict=True):
            if _text(one) == key:
                yield window, None, repr(value)


def _text(key: Any) -> str:
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)
