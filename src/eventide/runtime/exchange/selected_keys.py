"""Keys of elements on their way to a subtask: found by a selector or in columns, and the subtask of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.functions import KeySelector
from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError
from eventide.runtime.elements.elements import Columns, Elements, columns_of_fields
from eventide.runtime.elements.keys import NoKey, hashes_of, subtasks_of_hashes, unhashable
from eventide.runtime.elements.ownership import only_looks, own_each
from eventide.runtime.invoke import last_of
from eventide.runtime.tracing.column_functions import mapped
from eventide.runtime.tracing.kernels import Guard


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
        self, keys: list[Any], values: Callable[[], list[Any]]
    ) -> Iterator[tuple[int, np.ndarray[Any, Any] | None]]:
        """Which indices of some keys go to which subtask; None stands for all indices.

        Args:
            keys: the keys.
            values: gives the elements that they belong to, for a message.

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
            for key, value in zip(keys, values(), strict=True):
                self.check(key, value)
            raise
        if self._subtasks == 1:
            yield 0, None
            return
        for subtask in range(self._subtasks):
            at = np.flatnonzero(owner == subtask)
            if len(at):
                yield subtask, at

    def check(self, key: Any, value: Any) -> None:
        """Refuse a key that cannot be one, naming its element."""
        try:
            self._find([key])
        except (TypeError, DataError) as error:
            reason = error if isinstance(error, DataError) else unhashable(key)
            raise NoKey(reason, element=value) from error


def keys_in(columns: Columns, names: Sequence[str], key_type: TypeInformation | None) -> list[Any]:
    """The key of each element, given by one field of it, or by several, whose values make a tuple."""
    fields = [columns.field(name) for name in names]
    array = fields[0] if len(fields) == 1 else pa.StructArray.from_arrays(fields, names=list(names))
    return [] if key_type is None else key_type.from_arrow(array)


def key_parts(columns: Columns, names: Sequence[str], select: Callable[[Any], Any]) -> list[pa.Array]:
    """The parts of the keys, as columns: fields that have a name, or what the key selector gives.

    Raises:
        NotTraceable: if the selector stays Python.
        Guard: if Python has to be called for one of these elements.
    """
    if columns.values.null_count:
        raise Guard("an element that is None")
    if names:
        return [columns.field(name) for name in names]
    keys, kind = mapped(select, columns, None)
    return columns_of_fields(keys, kind)


def selectors(select: Callable[[Any], Any] | None) -> list[tuple[str, Any]]:
    """The user-defined key selectors that a function calls, which are objects: to be opened and closed.

    A function that finds keys in several ways names them in ``selects``.
    """
    owners = map(selector_of, getattr(select, "selects", (select,)))
    return [("key selector", owner) for owner in owners if owner is not None]


def selector_of(select: Callable[[Any], Any] | None) -> KeySelector | None:
    """The user-defined key selector that a function is the method of; None where it is none."""
    owner = getattr(select, "__self__", None)
    return owner if isinstance(owner, KeySelector) else None


def extracted_keys(select: Callable[[Any], Any], elements: Elements) -> list[Any]:
    """The key of each element; a selector that may keep what it sees, or change it, is shown copies.

    Raises:
        NoKey: if the selector raised, naming the element.
    """
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
