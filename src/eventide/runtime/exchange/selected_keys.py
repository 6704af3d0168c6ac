"""Keys of elements on their way to a subtask: found by a selector or in columns, and the subtask of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.functions import KeySelector
from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError, TypeMismatch
from eventide.runtime.elements.elements import Columns, Elements, columns_of_fields
from eventide.runtime.elements.keys import NoKey, hashes_of, subtasks_of_hashes, unhashable
from eventide.runtime.elements.ownership import only_looks, own_each
from eventide.runtime.invoke import last_of
from eventide.runtime.tracing.column_functions import mapped
from eventide.runtime.tracing.kernels import Guard

_SELDOM_REFUSED = frozenset({str, int, bool, bytes, type(None), tuple})
"""The types of keys that are not looked at one by one: of these, only a tuple may be no key."""


class SubtasksOfKeys(dict[Any, int]):
    """The subtask of each key, worked out when a key is seen for the first time, for all that are new together."""

    def __init__(self, max_parallelism: int, subtasks: int) -> None:
        super().__init__()
        self._max_parallelism = max_parallelism
        self._subtasks = subtasks

    def _find(self, keys: list[Any]) -> None:
        new = [key for key in dict.fromkeys(keys) if key not in self]
        if new:
            found = subtasks_of_hashes(hashes_of(new), self._max_parallelism, self._subtasks)
            self.update(zip(new, found.tolist(), strict=True))

    def dealt_out(
        self, keys: list[Any], values: Callable[[], list[Any]] | None
    ) -> Iterator[tuple[int, np.ndarray[Any, Any] | None]]:
        """Which indices of some keys go to which subtask; None stands for all indices.

        Args:
            keys: the keys.
            values: gives the elements that they belong to, for a message; None if they are not available.

        Raises:
            NoKey: for a key that has no hash, or none that is the same in every process, naming its element.
        """
        try:
            found = list(map(self.get, keys))
            if None in found:
                self._find(keys)
                found = list(map(self.get, keys))
            owner = np.array(found)
        except (TypeError, DataError):
            of_keys = [{} for _ in keys] if values is None else [{"element": value} for value in values()]
            for key, of in zip(keys, of_keys, strict=True):
                self.check(key, **of)
            raise
        if self._subtasks == 1:
            yield 0, None
            return
        for subtask in range(self._subtasks):
            at = np.flatnonzero(owner == subtask)
            if len(at):
                yield subtask, at

    def check_all(self, keys: list[Any], values: list[Any]) -> None:
        """Refuse keys if one of them cannot be a key; the error names its element if the elements are available."""
        if _SELDOM_REFUSED.issuperset(map(type, keys)):
            return
        try:
            self._find(keys)
        except (TypeError, DataError):
            for key, value in zip(keys, values, strict=True):
                self.check(key, element=value)
            raise

    def check(self, key: object, **of: object) -> None:
        """Refuse a key that cannot be one, naming its element, if that is known."""
        try:
            if key not in self:
                self._find([key])
        except (TypeError, DataError) as error:
            reason = error if isinstance(error, DataError) else unhashable(key)
            raise NoKey(reason, **of) from error


def keys_in(columns: Columns, names: Sequence[str], key_type: TypeInformation | None) -> list[Any]:
    """The key of each element, given by one field of it, or by several, whose values make a tuple."""
    fields = [columns.field(name) for name in names]
    array = fields[0] if len(fields) == 1 else pa.StructArray.from_arrays(fields, names=list(names))
    return [] if key_type is None else key_type.from_arrow(array)


def key_parts(
    columns: Columns, names: Sequence[str], select: Callable[[Any], Any]
) -> tuple[list[pa.Array], TypeInformation | None]:
    """The parts of the keys, as columns: fields that have a name, or what the key selector gives; and the type of that.

    Raises:
        NotTraceable: if the selector stays Python.
        Guard: if Python has to be called for one of these elements.
    """
    if columns.values.null_count:
        raise Guard("an element that is None")
    if names:
        return [columns.field(name) for name in names], None
    keys, kind = mapped(select, columns, None)
    return columns_of_fields(keys, kind), kind


def selectors(select: Callable[[Any], Any] | None) -> list[tuple[str, Any]]:
    """The user-defined key selectors that a function calls, which are objects: to be opened and closed.

    A function that finds keys in several ways names them in ``selects``.
    """
    owners = map(selector_of, getattr(select, "selects", (select,)))
    return [("key selector", owner) for owner in owners if owner is not None]


def selector_of(select: Callable[[Any], Any] | None) -> KeySelector | None:
    """The user-defined key selector that a function is the method of; None if it is none."""
    owner = getattr(select, "__self__", None)
    return owner if isinstance(owner, KeySelector) else None


def declared_keys(keys: list[Any], kind: TypeInformation | None, elements: Elements) -> list[Any]:
    """Keys as values of their declared type, before they are hashed: what is one key to that type goes one way.

    Raises:
        NoKey: if one is not of that type, naming the element.
    """
    if kind is None or kind.is_pickled:
        return keys
    try:
        return kind.as_declared(keys)
    except TypeMismatch as error:
        raise NoKey(error, element=elements.values[error.index]) from error


def extracted_keys(select: Callable[[Any], Any], elements: Elements, kind: TypeInformation | None = None) -> list[Any]:
    """The key of each element, of its declared type; a selector that may keep or change what it sees is shown copies.

    Raises:
        NoKey: if the selector raised, or gave a key of another type, naming the element.
    """
    return declared_keys(_selected(select, elements), kind, elements)


def _selected(select: Callable[[Any], Any], elements: Elements) -> list[Any]:
    of_elements = getattr(select, "of_elements", None)
    if of_elements is not None:
        try:
            found: list[Any] = of_elements(elements.values)
        except Exception:
            found = []  # one by one, the element shows that is to blame
        if len(found) == len(elements):
            return found
    values = iter(elements.values if only_looks(select) else own_each(elements.values))
    try:
        return [select(value) for value in values]
    except Exception as error:
        raise NoKey(error, element=last_of(elements.values, values)) from error
