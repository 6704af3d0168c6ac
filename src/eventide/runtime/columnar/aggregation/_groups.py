"""One pass over a table that answers all questions about its groups, and the accumulators that ask them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

Ints = np.ndarray[Any, Any]
"""A numpy array of integers."""

Later = Callable[["Groups"], Sequence[pa.Array]]
"""A function that makes columns of the answers, one row for each group."""


class Grouping:
    """A table that is about to be grouped: takes questions, and answers all of them with one call of Arrow's.

    Building the hash table of the keys costs more than the sums, so there is one call however many aggregates there
    are, and a question that two of them ask is asked once.
    """

    def __init__(
        self, table: pa.Table, by: Sequence[str], typed: Mapping[str, pa.ChunkedArray] = MappingProxyType({})
    ) -> None:
        self._table = table
        self._by = list(by)
        self._typed = typed
        self._questions: dict[tuple[str, str], tuple[pa.ChunkedArray | None, Any]] = {}

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of the table, as one of `typed` if it is there."""
        return self._typed[name] if name in self._typed else self._table.column(name)

    def ask(self, name: str, column: pa.ChunkedArray, function: str, options: object = None) -> tuple[str, str]:
        """Ask for Arrow's `function` of each group; return the argument for `Groups.answer`.

        Args:
            name: The name of the column: one of the table's, or one for what was made of it.
            column: As long as the table.
            function: The name of Arrow's function without its ``hash_``.
            options: Arrow's options of that function.
        """
        question = (name, function)
        self._questions.setdefault(question, (column, options))
        return question

    def ask_size(self) -> tuple[str, str]:
        """Ask for the number of rows of each group."""
        self._questions.setdefault(("", "count_all"), (None, None))
        return "", "count_all"

    def ask_rows(self) -> None:
        """Ask for the rows of each group: for `Groups.order`, `offsets` and `ids`."""
        self.ask("", pa.chunked_array([np.arange(self._table.num_rows, dtype=np.int32)]), "list")

    def run(self) -> Groups:
        """Group the table."""
        keys = [self._table.column(name) for name in self._by]
        if not keys:
            keys = [pa.chunked_array([np.zeros(self._table.num_rows, np.int8)])]
        columns, names = list(keys), [f"k{i}" for i in range(len(keys))]
        calls: list[Any] = []
        answers: dict[tuple[str, str], str] = {}
        for number, ((name, function), (column, options)) in enumerate(self._questions.items()):
            if column is None:
                calls.append(([], function))
                answers[name, function] = function
                continue
            columns.append(column)
            names.append(f"c{number}")
            calls.append((f"c{number}", function, options))
            answers[name, function] = f"c{number}_{function}"
        key_names = names[: len(keys)]
        table = pa.Table.from_arrays(columns, names)
        result = table.group_by(key_names, use_threads=False).aggregate(calls)
        found = {question: result.column(name) for question, name in answers.items()}
        return Groups(self._by, [result.column(name) for name in key_names][: len(self._by)], result.num_rows, found)


class Groups:
    """The groups of a table.

    Attributes:
        keys: The columns that the table was grouped by, one row for each group.
        size: How many groups there are.
    """

    def __init__(
        self, by: list[str], keys: list[pa.ChunkedArray], size: int, answers: dict[tuple[str, str], pa.ChunkedArray]
    ) -> None:
        self._by = by
        self._answers = answers
        self.keys = keys
        self.size = size

    def answer(self, question: tuple[str, str]) -> pa.Array:
        """Return what was asked for, one row for each group."""
        return self._answers[question].combine_chunks()

    def describe(self, group: int) -> str:
        """Return the keys of a group in words, for a message."""
        pairs = zip(self._by, self.keys, strict=True)
        return ", ".join(f"{name}={key[group].as_py()!r}" for name, key in pairs) or "all rows"

    @cached_property
    def _rows(self) -> pa.ListArray:
        return self.answer(("", "list"))

    @property
    def order(self) -> Ints:
        """The rows of the table group by group; within a group as they came."""
        order: Ints = self._rows.flatten().to_numpy()
        return order

    @cached_property
    def lengths(self) -> Ints:
        """How many rows each group has."""
        lengths: Ints = self._rows.value_lengths().to_numpy()
        return lengths

    @cached_property
    def offsets(self) -> Ints:
        """Where each group begins in `order`, and, last, where the last one ends."""
        return offsets_of(self.lengths)

    @cached_property
    def ids_in_order(self) -> Ints:
        """The number of the group of each row of `order`."""
        return np.repeat(np.arange(self.size, dtype=np.int32), self.lengths)

    @cached_property
    def ids(self) -> Ints:
        """The number of the group of each row of the table."""
        ids = np.empty(len(self.ids_in_order), np.int32)
        ids[self.order] = self.ids_in_order
        return ids


def answers(*questions: tuple[str, str]) -> Later:
    """Return what makes a column of the answers to each of some questions."""
    return lambda groups: [groups.answer(question) for question in questions]


def sums(grouping: Grouping, names: Sequence[str]) -> Later:
    """Add up columns of the table for each group."""
    return answers(*(grouping.ask(name, grouping.column(name), "sum") for name in names))


def offsets_of(lengths: Ints) -> Ints:
    """Return where stretches of these lengths begin when they follow each other, and where the last one ends.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def lists_by_group(ids: Ints, values: pa.Array, size: int) -> pa.ListArray:
    """Return one list for each group, of the values in their order; `ids` says of each value which list it goes to.

    >>> lists_by_group(np.array([0, 2, 0]), pa.array(["a", "b", "c"]), 3).to_pylist()
    [['a', 'c'], [], ['b']]
    """
    if np.any(ids[1:] < ids[:-1]):
        order = np.argsort(ids, kind="stable")
        values = values.take(pa.array(order))
    offsets = offsets_of(np.bincount(ids, minlength=size))
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=pa.list_(values.type))


class Accumulator(Protocol):
    """Columns of partial results: the smallest that can be merged with others and still give the result.

    Accumulators are values: aggregates whose accumulators are equal share their columns.
    """

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the columns."""

    def partial(self, grouping: Grouping) -> Later:
        """Ask of a table of rows what is needed; return what makes the columns of the answers."""

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Ask the same of a table of partial results, whose columns of this accumulator have these names."""
