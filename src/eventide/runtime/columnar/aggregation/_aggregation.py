"""Aggregates computed on Arrow tables: of rows, of partial results, and to the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import pyarrow as pa

from eventide.aggregates import ColumnAggregate
from eventide.common.typeinfo import TypeInformation, type_info_from_arrow
from eventide.errors import DataError, ProgramError
from eventide.runtime.columnar.aggregation._accumulators import RowCount, ValueByTime, ValueList
from eventide.runtime.columnar.aggregation._catalogue import Measure, measure
from eventide.runtime.columnar.aggregation._groups import Accumulator, Grouping, Groups, Later

ROWS = "__rows"
"""The column of how many rows went into a group."""


@dataclass(frozen=True)
class Aggregation:
    """Some aggregates, computed together: in one pass over the rows, and with one copy of what they share.

    `partial` makes one row for each group, `merge` makes one of many such rows, `finish` makes the results. Merging
    is associative: however rows are cut into parts, and the parts are put together in their order, the result is the
    same, up to the rounding of doubles. It pickles.

    Attributes:
        aggregates: What is computed, in the order of the results.
        input_types: The columns that it is computed of, each once, with the types that their values are taken as.
    """

    aggregates: tuple[ColumnAggregate, ...]
    input_types: tuple[tuple[str, pa.DataType], ...]

    @staticmethod
    def of(aggregates: Sequence[ColumnAggregate], input_types: Mapping[str, pa.DataType]) -> Aggregation:
        """Return the computation of some aggregates on columns of these types; other columns may be among them.

        Raises:
            ProgramError: There is no aggregate, two have the same name, or one does not take a column of its type.

        >>> from eventide.aggregates import count, mean, sum_
        >>> aggregation = Aggregation.of([count(), sum_("x"), mean("x").alias("m")], {"x": pa.float64()})
        >>> aggregation.input_columns, aggregation.result_names
        (('x',), ('count', 'sum(x)', 'm'))
        >>> [f"{field.name}: {field.type}" for field in aggregation.partial_fields]
        ['__rows: int64', 'p0: double', 'p1: int64']
        >>> rows = pa.table({"key": ["a", "b", "a"], "x": [1.0, None, 2.0]})
        >>> partials = aggregation.partial(rows, ["key"])
        >>> [column.to_pylist() for column in aggregation.finish(aggregation.merge(partials, ["key"]))]
        [[2, 1], [3.0, None], [1.5, None]]
        """
        if not aggregates:
            raise ProgramError("aggregate: expected at least one aggregate, such as count()")
        for name, times in Counter(a.output_name for a in aggregates).items():
            if times > 1:
                message = f"aggregate: {times} results are called {name!r}; give them other names with .alias(...)"
                raise ProgramError(message)
        columns = {a.column: None for a in aggregates if a.column is not None}
        types = tuple((column, _type_of(column, input_types).arrow_type()) for column in columns)
        aggregation = Aggregation(tuple(aggregates), types)
        _ = aggregation._results  # what does not fit is refused now
        return aggregation

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The columns of rows that are needed, beside those to group by."""
        return tuple(name for name, _ in self.input_types)

    @property
    def uses_timestamps(self) -> bool:
        """Whether rows need the column TIMESTAMP."""
        return any(isinstance(accumulator, ValueByTime) for accumulator in self._kept)

    @property
    def keeps_order(self) -> bool:
        """Whether the order of rows shows in a result."""
        return any(isinstance(accumulator, ValueList) for accumulator in self._kept)

    @property
    def partial_fields(self) -> list[pa.Field]:
        """The columns of partial results, beside those to group by: ROWS, then p0, p1, ..."""
        return [
            pa.field(name, kind)
            for accumulator, names in self._kept.items()
            for name, kind in zip(names, accumulator.types, strict=True)
        ]

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the results."""
        return tuple(aggregate.output_name for aggregate in self.aggregates)

    def partial(self, rows: pa.Table, by: Sequence[str]) -> pa.Table:
        """Return one row for each group of rows: the columns of `by`, and the partial results.

        Args:
            rows: The columns of `by`, those of `input_columns`, and TIMESTAMP if that is used; others are not looked
                at. Rows that stand earlier arrived earlier.
            by: The columns to group by; without any, all rows are one group, and no rows are none.

        Raises:
            DataError: A sum does not fit its type, or a value the type that its column was declared with.
        """
        grouping = Grouping(rows, by, {name: _typed(rows.column(name), name, kind) for name, kind in self.input_types})
        laters = [accumulator.partial(grouping) for accumulator in self._kept]
        return self._table(by, grouping.run(), laters)

    def merge(self, partials: pa.Table, by: Sequence[str]) -> pa.Table:
        """Return one row for each group of partial results; columns are the same, and earlier rows arrived earlier.

        Raises:
            DataError: A sum does not fit its type.
        """
        grouping = Grouping(partials, by)
        laters = [accumulator.merge(grouping, names) for accumulator, names in self._kept.items()]
        groups = grouping.run()
        if groups.size == partials.num_rows:
            return partials.select([*by, *(field.name for field in self.partial_fields)])
        return self._table(by, groups, laters)

    def finish(self, partials: pa.Table) -> list[pa.Array]:
        """Return the results, an array for each aggregate, with a row for each of `partials`.

        Raises:
            DataError: A result does not fit its type.
        """
        results = []
        for aggregate, (computed, kind) in zip(self.aggregates, self._results, strict=True):
            names = [name for accumulator in computed.accumulators for name in self._kept[accumulator]]
            try:
                result = computed.finish(*(partials.column(name).combine_chunks() for name in names))
                results.append(result if result.type == kind else result.cast(kind))
            except pa.ArrowInvalid as error:
                message = f"{aggregate!r}: a result does not fit {kind}: {error}"
                raise DataError(message) from error
        return results

    @cached_property
    def _results(self) -> list[tuple[Measure, pa.DataType]]:
        """Of each aggregate, what it comes to, and the type of its result."""
        kinds = dict(self.input_types)
        results = []
        for aggregate in self.aggregates:
            kind = None if aggregate.column is None else kinds[aggregate.column]
            result_type = aggregate.result_type(None if kind is None else type_info_from_arrow(kind))
            results.append((measure(aggregate, kind), result_type.arrow_type()))
        return results

    @cached_property
    def _kept(self) -> dict[Accumulator, list[str]]:
        """Each accumulator once, that of ROWS first, with the names of its columns."""
        kept: dict[Accumulator, list[str]] = {RowCount(): [ROWS]}
        numbers = count()
        for computed, _ in self._results:
            for accumulator in computed.accumulators:
                if accumulator not in kept:
                    kept[accumulator] = [f"p{next(numbers)}" for _ in accumulator.types]
        return kept

    def _table(self, by: Sequence[str], groups: Groups, laters: Sequence[Later]) -> pa.Table:
        keys = [pa.field(name, key.type) for name, key in zip(by, groups.keys, strict=True)]
        columns = [column for later in laters for column in later(groups)]
        return pa.Table.from_arrays([*groups.keys, *columns], schema=pa.schema([*keys, *self.partial_fields]))


def _type_of(column: str, input_types: Mapping[str, pa.DataType]) -> TypeInformation:
    """Return the type that the values of a column are taken as.

    Raises:
        ProgramError: There is no such column, or no type for it.
    """
    if column not in input_types:
        message = f"aggregate: there is no column {column!r}; there are {', '.join(map(repr, input_types))}"
        raise ProgramError(message)
    return type_info_from_arrow(input_types[column])


def _typed(column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column with the type that its values are taken as, which it has already unless it is a rare one.

    Raises:
        DataError: A value does not fit.
    """
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        message = f"aggregate: a value of column {name!r} does not fit {kind}: {error}"
        raise DataError(message) from error
