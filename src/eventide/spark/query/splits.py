"""The names of splits: what the columns that identify them hold, as one text, for rows and expected values alike."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql import types as spark

from eventide.errors import ProgramError

_NULL = "null"
_NUMBERS = (int, float, Decimal)


def split_name(columns: Sequence[tuple[Column, spark.DataType]]) -> Column:
    """The name of a row's split: its columns as text, with commas between.

    What a text has of commas, and one that reads like a null, is marked with a backslash, so that no two splits share a
    name; a single column of text is taken as it is.
    """
    if len(columns) == 1:
        [(column, kind)] = columns
        return F.coalesce(_null_marked(_as_text(column, kind), kind), F.lit(_NULL))
    texts = [
        F.coalesce(_null_marked(_escaped(_as_text(column, kind), kind), kind), F.lit(_NULL)) for column, kind in columns
    ]
    return F.concat_ws(",", *texts)


def expected_splits(
    data_frame: DataFrame, columns: Sequence[tuple[Column, spark.DataType]], values: Sequence[Any]
) -> tuple[str, ...]:
    """The names of splits that are expected, by the values of their columns: Spark itself names them, as it does rows.

    Raises:
        ProgramError: if a value cannot be one of its column, or there are more or fewer than columns.
    """
    rows = [_row(value, len(columns)) for value in values]
    if not rows:
        return ()
    one_row = data_frame.sparkSession.range(1)
    cells = [
        (_literal(value, kind), value, kind) for row in rows for value, (_, kind) in zip(row, columns, strict=True)
    ]
    cast = [literal.try_cast(kind) for literal, _, kind in cells]
    width = len(columns)
    names = [
        split_name([(cast[at + i], kind) for i, (_, kind) in enumerate(columns)]) for at in range(0, len(cells), width)
    ]
    fits = [_fits(literal, made, value, kind) for (literal, value, kind), made in zip(cells, cast, strict=True)]
    try:
        [answer] = one_row.select(F.array(*names).alias("names"), F.array(*fits).alias("fits")).collect()
    except AnalysisException as error:
        types = ", ".join(kind.simpleString() for _, kind in columns)
        raise ProgramError(
            f"splits: one of {list(values)!r} cannot be a value of its column; those of split_by are of type {types}"
        ) from error
    for (_, value, kind), fit in zip(cells, answer.fits, strict=True):
        if not fit:
            raise ProgramError(
                f"splits: {value!r} cannot be a value of a column of type {kind.simpleString()}, so no row would ever "
                "belong to it; give the values that the columns of split_by have"
            )
    return tuple(answer.names)


def _row(value: Any, width: int) -> tuple[Any, ...]:
    row = tuple(value) if isinstance(value, tuple | list) else (value,)
    if len(row) != width:
        raise ProgramError(f"splits: {value!r} has {len(row)} value(s), and split_by names {width} column(s)")
    return row


def _literal(value: Any, kind: spark.DataType) -> Column:
    """A value for a column; a time without a zone is text to Spark, which then brings its own zone to it or none."""
    if isinstance(value, datetime.datetime) and value.tzinfo is None and isinstance(kind, spark.TimestampNTZType):
        return F.lit(value.isoformat(sep=" "))
    try:
        return F.lit(value)
    except Exception as error:
        raise ProgramError(f"splits: Spark has no value for {value!r}: {error}") from error


def _fits(literal: Column, cast: Column, value: Any, kind: spark.DataType) -> Column:
    """Whether a value is one of a type: Spark casts it, and what it compares with does not change on the way."""
    if value is None:
        return F.lit(True)
    compares = isinstance(value, bool) == isinstance(kind, spark.BooleanType) and (
        (isinstance(value, _NUMBERS) and isinstance(kind, spark.NumericType) and not isinstance(kind, spark.FloatType))
        or (isinstance(value, datetime.date) and isinstance(kind, spark.DateType | spark.TimestampType))
    )
    there = cast.isNotNull()
    return there & F.coalesce(literal == cast, F.lit(False)) if compares else there


def _as_text(column: Column, kind: spark.DataType) -> Column:
    return F.hex(column) if isinstance(kind, spark.BinaryType) else column.cast("string")


def _escaped(text: Column, kind: spark.DataType) -> Column:
    if not isinstance(kind, spark.StringType | spark.CharType | spark.VarcharType):
        return text
    return F.replace(F.replace(text, F.lit("\\"), F.lit("\\\\")), F.lit(","), F.lit("\\,"))


def _null_marked(text: Column, kind: spark.DataType) -> Column:
    if not isinstance(kind, spark.StringType | spark.CharType | spark.VarcharType):
        return text
    return F.when(text == _NULL, F.lit(f"\\{_NULL}")).otherwise(text)
