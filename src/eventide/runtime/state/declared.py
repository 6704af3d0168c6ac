"""The declared kinds and types of named states and of their rows; another type widens, or is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import pyarrow as pa

from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.typeinfo.widening import Conversion, conversion, obstacle, type_of_text, united
from eventide.errors import StateError
from eventide.runtime.elements.elements import from_fields, types_of_fields
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.extents import HASH


@dataclass(frozen=True, slots=True)
class RowTypes:
    """The type of the keys of some rows, and the names and types of their values.

    A name may be there twice, with different types: each key has a value of one of them.

    >>> import numpy as np
    >>> from eventide.common.typeinfo import Types
    >>> types = RowTypes(Types.STRING(), (("count", Types.LONG()),))
    >>> rows = types.rows([pa.array(["a"])], np.array([7], np.uint64), [pa.array([1])])
    >>> types.keys_of(rows).to_pylist(), [values.to_pylist() for values in types.values_of(rows)]
    (['a'], [[1]])
    """

    key: TypeInformation
    values: tuple[tuple[str, TypeInformation], ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows: hashes, keys, and values."""
        keys = [(f"__key{i}", part.arrow_type()) for i, part in enumerate(types_of_fields(self.key))]
        values = [(f"__value{i}", kind.arrow_type()) for i, (_, kind) in enumerate(self.values)]
        return pa.schema([(HASH, pa.uint64()), *keys, *values])

    def rows(self, keys: Sequence[pa.Array], hashes: Hashes, values: Sequence[pa.Array]) -> pa.RecordBatch:
        """Rows, from the parts of their keys, the hashes of the keys, and the values."""
        return pa.RecordBatch.from_arrays([pa.array(hashes), *keys, *values], schema=self.schema)

    def parts_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The parts of the keys of some rows."""
        return list(rows.columns[1 : len(rows.columns) - len(self.values)])

    def keys_of(self, rows: pa.RecordBatch) -> pa.Array:
        """The keys of some rows as a column of their type."""
        return from_fields(self.parts_of(rows), self.key)

    def values_of(self, rows: pa.RecordBatch) -> Sequence[pa.Array]:
        """The values of some rows, a column for each name and type."""
        return list(rows.columns[len(rows.columns) - len(self.values) :])


@lru_cache
def text_of_types(types: RowTypes) -> bytes:
    """The types of rows as they are stored."""
    return json.dumps([str(types.key), [[name, str(kind)] for name, kind in types.values]]).encode()


@lru_cache
def types_of_text(text: bytes) -> tuple[RowTypes, pa.Schema]:
    """The types of rows, and their schema; pages of one value, of earlier versions, say its name first."""
    key, values, *of_one_value = json.loads(text)
    if of_one_value:
        key, values = values, [[key, *of_one_value]]
    types = RowTypes(type_of_text(key), tuple((name, type_of_text(kind)) for name, kind in values))
    return types, types.schema


DECLARED = "declared types"
"""Under this name lies the text of the type of each named state of an operator."""

_KIND = "kind of "
"""Beginning of the names under which kinds lie beside types; version 0.1.0 stored no kinds."""

VALUE, LIST, MAP, REDUCING, AGGREGATING = "value", "list", "map", "reducing", "aggregating"
"""The kinds of state, each of which is stored in a form of its own."""

_ANYTHING = str(Types.PICKLED_BYTE_ARRAY())
"""The type of a state that may hold any object."""


class DeclaredTypes:
    """Which types the program declares for named states, beside those that it declared when they were stored."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._types: dict[str, str] | None = None
        self._has_changed = False

    def declare(self, name: str, type_info: TypeInformation, kind: str = VALUE) -> Conversion | None:
        """Say the type and the kind of a state; return the conversion of its stored values, None if they stay.

        Raises:
            StateError: if they were stored as another kind of state, or with a type that does not widen to this one.
        """
        known, shown = self._known(), name.partition(":")[2]
        was = known.get(_KIND + name)
        if was is None:
            known[_KIND + name] = kind
            self._has_changed = True
        elif was != kind:
            raise StateError(
                f"the state {shown!r} was stored as {was} state and is now {kind} state, which is stored differently. "
                "Declare the kind that it had, or give the state another name, under which it begins empty"
            )
        before, text = known.get(name), str(type_info)
        if before == text:
            return None
        known[name] = text
        self._has_changed = True
        return None if before is None else _conversion(name, before, text)

    def conversion_from(self, name: str, stored: TypeInformation) -> Conversion | None:
        """Return the conversion of values that were stored with a type to the one that a state has; None if they stay.

        Raises:
            StateError: if they do not fit.
        """
        now, text = self._known().get(name), str(stored)
        return None if now is None or now == text else _conversion(name, text, now)

    def is_to_change(self, name: str, type_info: TypeInformation) -> bool:
        """Whether a state was declared with another type."""
        return self._known().get(name, str(type_info)) != str(type_info)

    def _known(self) -> dict[str, str]:
        if self._types is None:
            self._types = json.loads(self._backend.get(DECLARED) or b"{}")
        return self._types

    def flush(self) -> None:
        """Store what the program has declared, if that is another than before."""
        if self._has_changed:
            self._backend.put(DECLARED, json.dumps(self._types, sort_keys=True).encode())
            self._has_changed = False


def conversion_of_texts(before: str, now: str, what: str) -> Conversion | None:
    """Return the conversion of values, given the texts of their type and of the type that they get.

    Raises:
        StateError: if they do not fit; ``what`` they are is said in it.
    """
    why = obstacle_between(before, now)
    if why is not None:
        raise StateError(
            f"{what} was stored as {before} and is now {now}, which is not wider: {why}. Declare the type that it had, "
            "or give the state another name, under which it begins empty"
        )
    return conversion(type_of_text(before), type_of_text(now))


def obstacle_between(before: str, now: str, *, is_key: bool = False) -> str | None:
    """Why values of a type do not fit another one, given the texts of both; None if they do."""
    if before == now:
        return None
    try:
        types = type_of_text(before), type_of_text(now)
    except ValueError:
        return "they are different"
    return obstacle(*types, is_key=is_key)


def declared_together(of_subtasks: Iterable[bytes]) -> bytes:
    """Unite the declarations of several subtasks: a function may have declared another type in some of them only.

    Values are brought to a united type by :func:`conversions_to`. No field is lost, whichever type came last.
    """
    found: dict[str, list[str]] = {}
    for stored in of_subtasks:
        for name, text in json.loads(stored).items():
            found.setdefault(name, []).append(text)
    return json.dumps({name: reduce(_united, texts) for name, texts in found.items()}, sort_keys=True).encode()


def conversions_to(together: bytes, stored: bytes) -> dict[str, Conversion]:
    """Return the conversions of values of a subtask's declared types to united ones, by the names of their states.

    Raises:
        StateError: if subtasks declared types, or kinds, that have nothing in common.
    """
    now: dict[str, str] = json.loads(together)
    declared: dict[str, str] = json.loads(stored)
    found = {name: _conversion(name, text, now[name]) for name, text in declared.items()}
    return {name: convert for name, convert in found.items() if convert is not None}


def types_of(stored: bytes) -> dict[str, str]:
    """The texts of the types of states, by name, given the declarations as they are stored."""
    declared: dict[str, str] = json.loads(stored)
    return {name: text for name, text in declared.items() if not name.startswith(_KIND)}


def _conversion(name: str, before: str, now: str) -> Conversion | None:
    """The conversion of the values of a state; None if they stay."""
    if now in (before, _ANYTHING):
        return None
    return conversion_of_texts(before, now, f"the state {name.partition(':')[2]!r}")


def _united(one: str, other: str) -> str:
    """The type, or the kind, of states of two; one of them if they have nothing in common."""
    if one in (other, _ANYTHING):
        return one
    try:
        return str(united(type_of_text(one), type_of_text(other)))
    except ValueError:
        return other


def widened(stored: Any, convert: Conversion, *, expires: bool) -> Any:
    """Convert all values of a stored state; each has its time beside it where it expires."""
    if not expires:
        return convert(stored)
    ttl_ms, form, kept = stored
    if isinstance(kept, list):
        return ttl_ms, form, [(time_ms, convert([value])[0]) for time_ms, value in kept]
    if isinstance(kept, dict):
        return ttl_ms, form, {key: (time_ms, convert({key: value})[key]) for key, (time_ms, value) in kept.items()}
    time_ms, value = kept
    return ttl_ms, form, (time_ms, convert(value))
