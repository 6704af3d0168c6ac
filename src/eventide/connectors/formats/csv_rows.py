"""CSV lines: rows as messages, which Flink's schemas write and read, one or many at once."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from eventide.common.typeinfo import BasicTypeInfo, CompositeTypeInfo, ListTypeInfo, RowTypeInfo, TypeInformation
from eventide.common.typeinfo.base import one_array
from eventide.common.types import Row
from eventide.connectors.formats._messages import ReadMany, ReadsRows, WritesRows, row_type_of
from eventide.connectors.formats._texts import SINGLE, TextForm, as_wanted, is_bare, parsed_type, text_form
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_BARE = 24
"""The length above which a text is always written in quotes."""

_END = re.compile(r"[\r\n]")
_BEFORE_A_ROW = re.compile(r"(?:[ \r\n]+|#[^\r\n]*)*")
"""Lines without a row where comments are allowed, and blanks before a row."""
AFTER_ESCAPE = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}
"""Characters that do not stand for themselves after the escape character, and their meanings."""

_LINE_END = r"\r?\n\z"
_NOT_FOR_ARROW = r"\A\z|\A\x{FEFF}|[\r\n]|0[xX]|(?i:nan|inf)"
"""Empty texts; a byte order mark; more than one line; and numbers that Java cannot read."""


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
        r"""The cells of the first line of a text, as Jackson reads it.

        Blanks after the closing quote are skipped. After the escape character, ``n``, ``r``, ``t`` and ``0`` are a line
        feed, a carriage return, a tab and the character zero; any other character stands for itself.

        >>> Dialect(escape="*").cells('"5, 5" ,a*tb')
        ['5, 5', 'a\tb']

        Raises:
            ValueError: if there is no line, or a cell that does not end.
        """
        if not text:
            raise ValueError("it is empty")
        if not any(char is not None and char in text for char in (self.quote, self.escape)):
            return _END.split(text, maxsplit=1)[0].split(self.delimiter)
        pattern, escaped, quote = *_patterns(self.delimiter, self.quote, self.escape), self.quote or ""
        cells: list[str] = []
        at, ends = 0, False
        while not ends:
            found = pattern.match(text, at)
            if found is None:
                raise ValueError(f"cell {len(cells) + 1} has a quote or an escape character out of place")
            bare, quoted, end = found.groups()
            cells.append(bare if quoted is None else quoted.replace(quote * 2, quote))
            at, ends = found.end(), end != self.delimiter
        if self.escape is not None:
            return [escaped.sub(lambda char: AFTER_ESCAPE.get(char[1], char[1]), cell) for cell in cells]
        return cells

    def line(self, cells: Sequence[str]) -> str:
        """Join written cells to a line."""
        if self.quote is not None and [*cells] == [""]:  # a line that is empty is none
            return self.quote * 2 + self.line_end
        return self.delimiter.join(cells) + self.line_end

    def written(self, cell: str, *, is_text: bool = False) -> str:
        """Return a cell, with quotes if it needs them.

        As in Flink, a text is also quoted if it is long, has a character that is not above all delimiters and quotes,
        or has a backslash without an escape character. These are the bytes that Flink 2.3.0 writes: within quotes,
        quotes and escapes are doubled.

        >>> print(Dialect().written("5 + 5", is_text=True), Dialect().written("wren", is_text=True))
        "5 + 5" wren
        >>> print(Dialect(quote="'", escape="*").written("4 o'clock*", is_text=True))
        '4 o''clock**'

        Raises:
            ValueError: if it cannot be written.
        """
        special = {self.delimiter, "\r", "\n", self.quote, self.escape} - {None}
        if self.quote is not None:
            highest = max(self.delimiter, self.quote, *self.line_end)
            seems_special = (
                len(cell) > _LONGEST_BARE
                or min(cell, default="\U0010ffff") <= highest
                or (self.escape is None and "\\" in cell)
            )
            if special.isdisjoint(cell) and not (is_text and seems_special):
                return cell
            doubled = {self.quote, self.escape}
            return self.quote + "".join(char * 2 if char in doubled else char for char in cell) + self.quote
        if special.isdisjoint(cell):
            return cell
        if self.escape is None:
            raise ValueError(f"{cell!r} needs quotes, or an escape character")
        return "".join(self.escape + char if char in special else char for char in cell)


@cache
def _patterns(delimiter: str, quote: str | None, escape: str | None) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a cell, bare or in quotes, with what ends it; and of a character after the escape."""
    d, q, e = ("(?!)" if char is None else re.escape(char) for char in (delimiter, quote, escape))
    but_escape = "" if escape is None else e
    bare = rf"(?!{q})((?:[^{d}\r\n{but_escape}]++|{e}.)*+)"
    quoted = rf"{q}((?:[^{q}{but_escape}]++|{q}{q}|{e}.)*+){q}(?:(?!{d})[\x00-\x09\x0b\x0c\x0e-\x20])*+"
    return re.compile(rf"(?:{bare}|{quoted})({d}|[\r\n]|\Z)", re.DOTALL), re.compile(rf"{e}(.)", re.DOTALL)


def _cell(type_info: TypeInformation, dialect: Dialect, *, lenient: bool, is_part: bool = False) -> TextForm:
    """The text form of a type in a cell, or in a part of the list or the row that a cell holds.

    Raises:
        ProgramError: if the type has no such form.
    """
    form = _value(type_info, dialect, lenient=lenient, may_have_parts=not is_part)
    is_text, separator, null = not is_bare(type_info), dialect.array_delimiter, dialect.null

    def read(text: str) -> Any:
        if text == null and not isinstance(type_info, ListTypeInfo):  # where it stands for one element
            return None
        try:
            return form.read(text)
        except ValueError as error:
            if lenient:
                return None
            raise ValueError(f"expected {type_info!r}, got {text!r}") from error

    def write(value: object) -> str:
        if value is None:
            return dialect.written(null or "")
        return dialect.written(form.write(value), is_text=is_text)

    def write_part(value: object) -> str:
        text = null or "" if value is None else form.write(value)
        if separator in text:
            raise ValueError(f"{text!r} contains {separator!r}, the separator of parts of a cell")
        return text

    return TextForm(read, write_part if is_part else write)


def _value(type_info: TypeInformation, dialect: Dialect, *, lenient: bool, may_have_parts: bool) -> TextForm:
    separator = dialect.array_delimiter
    if may_have_parts and isinstance(type_info, ListTypeInfo):
        part = _cell(type_info.element_type, dialect, lenient=lenient, is_part=True)
        return TextForm(
            lambda text: [part.read(one) for one in text.split(separator)] if text.strip() else [],
            lambda value: separator.join(map(part.write, value)),
        )
    if may_have_parts and isinstance(type_info, CompositeTypeInfo):
        read, write = _codec(type_info, dialect, lenient=lenient, in_a_cell=True)
        return TextForm(
            lambda text: read(text.split(separator)) if text.strip() else None,
            lambda value: separator.join(write(value)),
        )
    form = text_form(type_info)
    if form is None:
        raise ProgramError(
            f"a CSV cell cannot represent {type_info!r}: it holds a single value, or a list or a row of such values"
        )
    # Times without the Z that they end with in JSON, as Java prints them.
    if type_info == BasicTypeInfo("SQL_TIME"):
        return replace(form, write=dt.time.isoformat)
    if type_info == BasicTypeInfo("SQL_TIMESTAMP"):
        return replace(form, write=_java_timestamp)
    return form


def _codec(
    row_type: CompositeTypeInfo, dialect: Dialect, *, lenient: bool, in_a_cell: bool = False
) -> tuple[Callable[[list[str]], Any], Callable[[Any], list[str]]]:
    """Two functions: one reads a row from the texts of its fields, the other writes these."""
    names, is_row = row_type.field_names, isinstance(row_type, RowTypeInfo)
    cells = [_cell(field, dialect, lenient=lenient, is_part=in_a_cell) for field in row_type.field_types]

    def read(texts: list[str]) -> Any:
        if len(texts) != len(cells) and not lenient:
            raise ValueError(f"expected {len(cells)} cell(s), got {len(texts)}")
        values: list[Any] = [None] * len(cells)
        for place, (cell, text) in enumerate(zip(cells, texts, strict=False)):
            try:
                values[place] = cell.read(text)
            except ValueError as error:
                raise ValueError(f"field {names[place]}: {error}") from error
        return Row.of_fields(names, values) if is_row else tuple(values)

    return read, lambda row: [cell.write(value) for cell, value in zip(cells, row, strict=True)]


def _java_timestamp(moment: dt.datetime) -> str:
    text = moment.isoformat(sep=" ")
    return text.rstrip("0") if moment.microsecond else f"{text}.0"


def _read_at_once(messages: Sequence[bytes], row_type: CompositeTypeInfo, dialect: Dialect) -> pa.StructArray | None:
    """The rows of messages, as Arrow reads them; None if Flink might read one differently.

    Each message is one line without quotes, so it cannot contain another line.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as pcsv

    wanted = row_type.arrow_type()
    try:
        texts = pc.replace_substring_regex(pa.array(messages, pa.binary()).cast(pa.string()), _LINE_END, "")
        for char in (dialect.quote, dialect.escape):
            if char is not None and pc.any(pc.match_substring(texts, char)).as_py():
                return None
        if pc.any(pc.match_substring_regex(texts, _NOT_FOR_ARROW)).as_py():
            return None
        lines = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), "\n")
        content = lines[0].as_buffer()
        names = [str(place) for place in range(wanted.num_fields)]
        table = pcsv.read_csv(
            pa.BufferReader(content),
            pcsv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
            pcsv.ParseOptions(
                delimiter=dialect.delimiter, quote_char=False, escape_char=False, ignore_empty_lines=False
            ),
            pcsv.ConvertOptions(
                column_types={name: parsed_type(field.type) for name, field in zip(names, wanted, strict=True)},
                null_values=[] if dialect.null is None else [dialect.null],
                strings_can_be_null=dialect.null is not None,
                true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"],
            ),
        )
        columns = [as_wanted(one_array(table.column(i)), field.type) for i, field in enumerate(wanted)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowCapacityError):
        return None
    known = [column for column in columns if column is not None]
    if len(table) != len(messages) or len(known) < len(columns):
        return None
    return pa.StructArray.from_arrays(known, fields=list(wanted))


@dataclass
class _Builder:
    """The settings of both schemas; each step changes the builder and returns it."""

    type_info: TypeInformation
    dialect: Dialect = field(default_factory=Dialect)

    def set_field_delimiter(self, delimiter: str) -> Self:
        """Set the character between two cells; by default a comma."""
        return self._with(delimiter=one_character("field delimiter", delimiter))

    def set_array_element_delimiter(self, delimiter: str) -> Self:
        """Set the separator of the parts of a list, or of a row, within a cell; by default a semicolon."""
        if not delimiter:
            raise ProgramError("the delimiter of array elements must have a character")
        return self._with(array_delimiter=delimiter)

    def set_quote_character(self, c: str) -> Self:
        """Set the quote character around a cell, in which other characters are literal; by default a double quote."""
        return self._with(quote=one_character("quote character", c))

    def set_escape_character(self, c: str) -> Self:
        """Set the escape character, which makes the next character literal; by default there is none."""
        return self._with(escape=one_character("escape character", c))

    def set_null_literal(self, null_literal: str) -> Self:
        """Set the text of None."""
        return self._with(null=null_literal)

    def _with(self, **changes: str | bool | None) -> Self:
        self.dialect = replace(self.dialect, **changes)  # type: ignore[arg-type]
        return self


@dataclass(frozen=True)
class CsvRowDeserializationSchema(ReadsRows):
    """Reads rows from lines of CSV, by the position of the cells. PyFlink: ``CsvRowDeserializationSchema``.

    It is made with ``CsvRowDeserializationSchema.Builder(type_info)``. Nothing stands for None unless a literal is set,
    so that an empty cell is an empty text, and no number. A list, or a row within the row, stands in one cell; an empty
    cell is a list without elements, and no row. Within a list, the literal stands for an element. A message that is a
    comment has no row.

    >>> from eventide.common import Types
    >>> row_type = Types.ROW_NAMED(["user", "tags"], [Types.STRING(), Types.LIST(Types.LONG())])
    >>> CsvRowDeserializationSchema.Builder(row_type).build().deserialize(b"wren,1;2")
    Row(user='wren', tags=[1, 2])
    """

    format: ClassVar[str] = "CSV"
    row_type: CompositeTypeInfo
    dialect: Dialect = field(default_factory=Dialect)
    ignores_parse_errors: bool = False

    @cached_property
    def _row_of(self) -> Callable[[list[str]], Any]:
        return _codec(self.row_type, self.dialect, lenient=self.ignores_parse_errors)[0]

    def _read(self, message: bytes) -> Any:
        text = message.decode("utf-8-sig")
        if self.dialect.allows_comments and text:
            text = text[_BEFORE_A_ROW.match(text).end() :]  # type: ignore[union-attr]
            if not text:
                return None
        cells, width = self.dialect.cells(text), len(self.row_type.field_types)
        if len(cells) == width + 1 and not cells[width].strip():  # a delimiter may end the line
            cells.pop()
        if len(cells) > width:
            raise ValueError(f"expected {width} cell(s), got {len(cells)}")
        return self._row_of(cells)

    @cached_property
    def _read_many(self) -> ReadMany | None:
        types, dialect = self.row_type.field_types, self.dialect
        known = all(isinstance(field, BasicTypeInfo) and field.name in SINGLE for field in types)
        if not known or not dialect.delimiter.isascii() or dialect.allows_comments:
            return None
        return partial(_read_at_once, row_type=self.row_type, dialect=dialect)

    @dataclass
    class Builder(_Builder):
        """Builds a :class:`CsvRowDeserializationSchema`; each step changes the builder and returns it."""

        _ignores_parse_errors: bool = False

        def set_allow_comments(self, allow_comments: bool) -> Self:
            """Treat a line that begins with ``#`` as a comment, which is skipped, like blank lines before the row."""
            return self._with(allows_comments=allow_comments)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> Self:
            """Read a cell that cannot be read, or is missing, as None.

            A message that is not a line, or has too many cells, has no row.
            """
            self._ignores_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """The schema.

            Raises:
                ProgramError: The type is not a row, or has a part that does not fit into a cell.
            """
            row_type = row_type_of("CsvRowDeserializationSchema", self.type_info)
            schema = CsvRowDeserializationSchema(row_type, self.dialect, self._ignores_parse_errors)
            _ = schema._row_of  # refuses what has no form
            return schema


@dataclass(frozen=True)
class CsvRowSerializationSchema(WritesRows):
    r"""Writes rows as lines of CSV. PyFlink: ``CsvRowSerializationSchema``.

    It is made with ``CsvRowSerializationSchema.Builder(type_info)``. With a null literal that is not a value, a
    :class:`CsvRowDeserializationSchema` with the same settings reads what it writes, except that in place of a list it
    reads None as its only element. Without a literal, None is written as nothing, which is read as an empty text, and
    as a number not at all.

    >>> from eventide.common import Row, Types
    >>> row_type = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.DOUBLE()])
    >>> CsvRowSerializationSchema.Builder(row_type).build().serialize(Row("wren, the", 1.5))
    b'"wren, the",1.5\n'
    """

    form: ClassVar[str] = "line of CSV"
    row_type: CompositeTypeInfo
    dialect: Dialect = field(default_factory=Dialect)

    @cached_property
    def _write(self) -> Callable[[Any], list[str]]:
        return _codec(self.row_type, self.dialect, lenient=False)[1]

    def serialize(self, element: object) -> bytes:
        """Return the line, with its end.

        Raises:
            DataError: The element is not of the type, or has a character that cannot be written.
        """
        declared = self._declared(element)
        try:
            return self.dialect.line(self._write(declared)).encode()
        except ValueError as error:
            raise DataError(f"{element!r} cannot be written as CSV: {error}") from error

    @dataclass
    class Builder(_Builder):
        """Builds a :class:`CsvRowSerializationSchema`; each step changes the builder and returns it."""

        def set_line_delimiter(self, delimiter: str) -> Self:
            r"""Set the end of a line, which may be empty; by default ``\n``."""
            return self._with(line_end=delimiter)

        def disable_quote_character(self) -> Self:
            """Write no quotes; cells that need them cannot be written, unless there is an escape character."""
            return self._with(quote=None)

        def set_null_literal(self, s: str) -> Self:
            return super().set_null_literal(s)

        def set_field_delimiter(self, c: str) -> Self:
            return super().set_field_delimiter(c)

        def build(self) -> CsvRowSerializationSchema:
            """The schema.

            Raises:
                ProgramError: The type is not a row, or has a part that does not fit into a cell.
            """
            schema = CsvRowSerializationSchema(row_type_of("CsvRowSerializationSchema", self.type_info), self.dialect)
            _ = schema._write  # refuses what has no form
            return schema


def one_character(what: str, char: str) -> str:
    """A setting that must be a single character.

    Raises:
        ProgramError: if it is not.
    """
    if len(char) != 1:
        raise ProgramError(f"the {what} of CSV must be a single character, not {char!r}")
    return char
