"""Rows as lines of CSV and back, cell by cell: the meaning that Flink's schemas of CSV have."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eventide.common.typeinfo import (
    BasicTypeInfo,
    CompositeTypeInfo,
    DecimalTypeInfo,
    ListTypeInfo,
    RowTypeInfo,
    TypeInformation,
)
from eventide.common.types import Row
from eventide.datastream.formats._texts import TextForm, text_form
from eventide.errors import ProgramError


def _java_timestamp(moment: dt.datetime) -> str:
    text = moment.isoformat(sep=" ")
    return text.rstrip("0") if moment.microsecond else f"{text}.0"


_UNZONED: dict[str, Callable[[Any], str]] = {"SQL_TIME": dt.time.isoformat, "SQL_TIMESTAMP": _java_timestamp}
"""Times without the Z that JSON has behind them, as Java prints them."""

_NO_TEXTS = frozenset({"BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE", "BIG_DEC"})
_LONGEST_BARE = 24
"""A text with more characters is written in quotes, whatever they are."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The characters of a line; None for those that have no meaning, and for a None that is written as nothing."""

    delimiter: str = ","
    array_delimiter: str = ";"
    quote: str | None = '"'
    escape: str | None = None
    null: str | None = None
    line_end: str = "\n"
    allows_comments: bool = False

    def cells(self, text: str) -> list[str]:
        """The cells of the first line of a text.

        Raises:
            ValueError: if it is none.
        """
        lines = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=self.delimiter,
            quotechar=self.quote,
            escapechar=self.escape,
            quoting=csv.QUOTE_NONE if self.quote is None else csv.QUOTE_MINIMAL,
            strict=True,
        )
        try:
            return next(lines) or [""]
        except (csv.Error, StopIteration) as error:
            raise ValueError(str(error) or "it is empty") from error

    def line(self, cells: Sequence[str]) -> str:
        """Cells that have been written, as a line."""
        if self.quote is not None and [*cells] == [""]:  # a line that is empty is none
            return self.quote * 2 + self.line_end
        return self.delimiter.join(cells) + self.line_end

    def written(self, cell: str, *, is_text: bool = False) -> str:
        """A cell, with quotes where it needs them; a text also where Flink does not look closely whether it does.

        These are the bytes that Flink 2.3.0 writes: within quotes, what has a meaning is doubled.

        >>> print(Dialect().written("5 + 5", is_text=True), Dialect().written("wren", is_text=True))
        "5 + 5" wren
        >>> print(Dialect(quote="'", escape="*").written("4 o'clock*", is_text=True))
        '4 o''clock**'

        Raises:
            ValueError: if there is no way to write it.
        """
        special = {self.delimiter, "\r", "\n", self.quote, self.escape} - {None}
        if self.quote is not None:
            if special.isdisjoint(cell) and not (is_text and self._is_quoted_anyway(cell)):
                return cell
            doubled = {self.quote, self.escape}
            return self.quote + "".join(char * 2 if char in doubled else char for char in cell) + self.quote
        if special.isdisjoint(cell):
            return cell
        if self.escape is None:
            raise ValueError(f"{cell!r} needs quotes, or an escape character")
        return "".join(self.escape + char if char in special else char for char in cell)

    def _is_quoted_anyway(self, text: str) -> bool:
        """Whether a text is long, or has a character that is not above all of those between and around cells."""
        highest = max(self.delimiter, self.quote or "", *self.line_end)
        return len(text) > _LONGEST_BARE or min(text, default="\U0010ffff") <= highest


def reader(row_type: CompositeTypeInfo, dialect: Dialect, *, lenient: bool) -> Callable[[str], Any]:
    """What makes a row out of the text of a line; with ``lenient``, what cannot be read or is not there is None.

    Raises:
        ProgramError: if a type has no form in a cell.
    """
    read = _row(row_type, lambda field: _cell_reader(field, dialect, lenient), lenient)
    return lambda text: read(dialect.cells(text))


def _row(row_type: CompositeTypeInfo, cell: Callable[[TypeInformation], Any], lenient: bool) -> Callable[[Any], Any]:
    names = row_type.field_names
    fields = [*zip(names, map(cell, row_type.field_types), strict=True)]
    is_row = isinstance(row_type, RowTypeInfo)

    def read(texts: list[str]) -> Any:
        if len(texts) != len(fields) and not lenient:
            raise ValueError(f"expected {len(fields)} cell(s), got {len(texts)}")
        values = [_named(name, read_cell, text) for (name, read_cell), text in zip(fields, texts, strict=False)]
        values += [None] * (len(fields) - len(values))
        return Row.of_fields(names, values) if is_row else tuple(values)

    return read


def _named(name: str, read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise ValueError(f"field {name}: {error}") from error


def _cell_reader(type_info: TypeInformation, dialect: Dialect, lenient: bool) -> Callable[[str], Any]:
    read = _value_reader(type_info, dialect, lenient)

    def read_cell(text: str) -> Any:
        if text == dialect.null:
            return None
        try:
            return read(text)
        except ValueError as error:
            if lenient:
                return None
            raise ValueError(f"expected {type_info!r}, got {text!r}") from error

    return read_cell


def _value_reader(type_info: TypeInformation, dialect: Dialect, lenient: bool) -> Callable[[str], Any]:
    if isinstance(type_info, ListTypeInfo):
        _form(type_info.element_type)
        element = _cell_reader(type_info.element_type, dialect, lenient)
        return lambda text: [element(part) for part in text.split(dialect.array_delimiter)] if text else []
    if isinstance(type_info, CompositeTypeInfo):
        for field in type_info.field_types:
            _form(field)
        parts = _row(type_info, lambda field: _cell_reader(field, dialect, lenient), lenient)
        return lambda text: parts(text.split(dialect.array_delimiter))
    return _form(type_info).read


def writer(row_type: CompositeTypeInfo, dialect: Dialect) -> Callable[[Sequence[Any]], str]:
    """What writes a row as a line; it raises a ``ValueError`` where there is no way to write a cell.

    Raises:
        ProgramError: if a type has no form in a cell.
    """
    fields = [_cell_writer(field, dialect) for field in row_type.field_types]
    return lambda row: dialect.line([write(value) for write, value in zip(fields, row, strict=True)])


def _cell_writer(type_info: TypeInformation, dialect: Dialect) -> Callable[[Any], str]:
    is_number = isinstance(type_info, DecimalTypeInfo)
    is_text = not (is_number or (isinstance(type_info, BasicTypeInfo) and type_info.name in _NO_TEXTS))
    text_of = _text_writer(type_info, dialect)

    def write(value: Any) -> str:
        if value is None:
            return dialect.written(_null(dialect))
        return dialect.written(text_of(value), is_text=is_text)

    return write


def _text_writer(type_info: TypeInformation, dialect: Dialect) -> Callable[[Any], str]:
    if isinstance(type_info, ListTypeInfo):
        element = _part_writer(type_info.element_type, dialect)
        return lambda value: dialect.array_delimiter.join(map(element, value))
    if isinstance(type_info, CompositeTypeInfo):
        fields = [_part_writer(field, dialect) for field in type_info.field_types]
        return lambda value: dialect.array_delimiter.join(
            write(part) for write, part in zip(fields, value, strict=True)
        )
    return _form(type_info).write


def _part_writer(type_info: TypeInformation, dialect: Dialect) -> Callable[[Any], str]:
    """A part of a list or row within a cell, which cannot have the character between the parts in it."""
    form = _form(type_info)

    def write(value: Any) -> str:
        text = _null(dialect) if value is None else form.write(value)
        if dialect.array_delimiter in text:
            raise ValueError(f"{text!r} has {dialect.array_delimiter!r} in it, which stands between parts of a cell")
        return text

    return write


def _null(dialect: Dialect) -> str:
    return dialect.null or ""


def _form(type_info: TypeInformation) -> TextForm:
    form = text_form(type_info)
    if form is None:
        raise ProgramError(
            f"a cell of CSV has no form of {type_info!r}: it holds a single value, or a list or a row of such values"
        )
    if isinstance(type_info, BasicTypeInfo) and type_info.name in _UNZONED:
        return replace(form, write=_UNZONED[type_info.name])
    return form
