"""Rows as messages of CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from eventide.common.serialization import DeserializationSchema, SerializationSchema, bytes_of
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.common.types import Row
from eventide.datastream.formats import _csv_columns
from eventide.datastream.formats._csv_values import Dialect, reader, writer
from eventide.datastream.formats._messages import bytes_of_column, halved, row_type_of, said
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class _Builder:
    """What the builders of both schemas have; each step changes the builder and returns it."""

    type_info: TypeInformation
    dialect: Dialect = field(default_factory=Dialect)

    def set_field_delimiter(self, delimiter: str) -> Self:
        """Set the character between two cells; by default a comma."""
        return self._with(delimiter=_one("field delimiter", delimiter))

    def set_array_element_delimiter(self, delimiter: str) -> Self:
        """Set what stands between the parts of a list, or of a row, within a cell; by default a semicolon."""
        if not delimiter:
            raise ProgramError("the delimiter of array elements must have a character")
        return self._with(array_delimiter=delimiter)

    def set_quote_character(self, c: str) -> Self:
        """Set the character around a cell in which others have no meaning; by default a double quote."""
        return self._with(quote=_one("quote character", c))

    def set_escape_character(self, c: str) -> Self:
        """Set the character that takes the meaning from the next one; by default there is none."""
        return self._with(escape=_one("escape character", c))

    def set_null_literal(self, null_literal: str) -> Self:
        """Set the text that stands for None."""
        return self._with(null=null_literal)

    def _with(self, **changes: Any) -> Self:
        self.dialect = replace(self.dialect, **changes)
        return self


@dataclass(frozen=True)
class CsvRowDeserializationSchema(DeserializationSchema[Row]):
    """Reads rows from lines of CSV, by the position of the cells. PyFlink: ``CsvRowDeserializationSchema``.

    It is made with ``CsvRowDeserializationSchema.Builder(type_info)``. Nothing stands for None unless a literal is set,
    so that an empty cell is an empty text, and no number. A list, or a row within the row, stands in one cell, and what
    is empty is a list without elements.

    >>> from eventide.common import Types
    >>> row_type = Types.ROW_NAMED(["user", "tags"], [Types.STRING(), Types.LIST(Types.LONG())])
    >>> CsvRowDeserializationSchema.Builder(row_type).build().deserialize(b"wren,1;2")
    Row(user='wren', tags=[1, 2])
    """

    row_type: CompositeTypeInfo
    dialect: Dialect = field(default_factory=Dialect)
    ignores_parse_errors: bool = False

    @cached_property
    def _read(self) -> Callable[[str], Any]:
        return reader(self.row_type, self.dialect, lenient=self.ignores_parse_errors)

    def deserialize(self, message: bytes | str | None) -> Any:
        """Return the row of the first line; None for a comment or no message.

        If parse errors are ignored, it is None for what is no line too. A ``map`` leaves None in; see
        :meth:`DeserializationSchema.deserialize`.

        Raises:
            DataError: There is no line, it has more or fewer cells, or a cell is not of its type.
        """
        if message is None:
            return None
        content = bytes_of(message)
        try:
            text = content.decode()
            if self.dialect.allows_comments and text.startswith("#"):
                return None
            return self._read(text)
        except ValueError as error:
            if self.ignores_parse_errors:
                return None
            raise DataError(f"the message {said(content)} cannot be read as CSV of {self.row_type}: {error}") from error

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self.row_type

    def deserialize_column(self, messages: pa.Array) -> pa.Array:
        """Return the rows as a struct; see :meth:`DeserializationSchema.deserialize_column`.

        Lines of text, truth values, numbers, dates and points in time are read by Arrow, where there are no quotes.
        """
        return self.deserialize_all(bytes_of_column(messages))

    def deserialize_all(self, messages: Sequence[bytes | None]) -> pa.Array:
        """Return the same of messages that are objects; see :meth:`DeserializationSchema.deserialize_all`."""
        if not _csv_columns.are_for_arrow(self.row_type, self.dialect):
            return self._one_by_one(messages)
        return halved(messages, self._at_once, self._one_by_one)

    def _at_once(self, messages: Sequence[bytes]) -> pa.Array | None:
        return _csv_columns.read_at_once(messages, self.row_type, self.dialect)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row_type, self.dialect, self.ignores_parse_errors)

    @dataclass
    class Builder(_Builder):
        """Builds a :class:`CsvRowDeserializationSchema`; each step changes the builder and returns it."""

        _ignores_parse_errors: bool = False

        def set_allow_comments(self, allow_comments: bool) -> Self:
            """Let a line that begins with ``#`` be a comment, which is left out."""
            return self._with(allows_comments=allow_comments)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> Self:
            """Take a cell that cannot be read, or is not there, as None, and leave out what is no line at all."""
            self._ignores_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """The schema.

            Raises:
                ProgramError: The type is no row, or has a part that a cell has no form of.
            """
            row_type = row_type_of("CsvRowDeserializationSchema", self.type_info)
            schema = CsvRowDeserializationSchema(row_type, self.dialect, self._ignores_parse_errors)
            _ = schema._read  # refuses what has no form
            return schema


@dataclass(frozen=True)
class CsvRowSerializationSchema(SerializationSchema):
    r"""Writes rows as lines of CSV. PyFlink: ``CsvRowSerializationSchema``.

    It is made with ``CsvRowSerializationSchema.Builder(type_info)``. With a null literal that is no value, a
    :class:`CsvRowDeserializationSchema` with the same settings reads what it writes. Without one, None is written as
    nothing, which is read as an empty text, and as a number not at all.

    >>> from eventide.common import Row, Types
    >>> row_type = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.DOUBLE()])
    >>> CsvRowSerializationSchema.Builder(row_type).build().serialize(Row("wren, the", 1.5))
    b'"wren, the",1.5\n'
    """

    row_type: CompositeTypeInfo
    dialect: Dialect = field(default_factory=Dialect)

    @cached_property
    def _write(self) -> Callable[[Any], str]:
        return writer(self.row_type, self.dialect)

    def serialize(self, element: Any) -> bytes:
        """Return the line, with its end.

        Raises:
            DataError: The element is not of the type, or has a character that cannot be written.
        """
        if element is None:
            raise DataError(f"there is no line of CSV for None; it should be of {self.row_type}")
        [declared] = self.row_type.as_declared([element])
        try:
            return self._write(declared).encode()
        except ValueError as error:
            raise DataError(f"{element!r} cannot be written as CSV: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row_type, self.dialect)

    @dataclass
    class Builder(_Builder):
        """Builds a :class:`CsvRowSerializationSchema`; each step changes the builder and returns it."""

        def set_line_delimiter(self, delimiter: str) -> Self:
            r"""Set what ends a line, which may be nothing; by default ``\n``."""
            return self._with(line_end=delimiter)

        def disable_quote_character(self) -> Self:
            """Write no quotes; what would need them cannot be written then, unless there is an escape character."""
            return self._with(quote=None)

        def set_null_literal(self, s: str) -> Self:
            """Set the text that stands for None."""
            return super().set_null_literal(s)

        def set_field_delimiter(self, c: str) -> Self:
            """Set the character between two cells; by default a comma."""
            return super().set_field_delimiter(c)

        def build(self) -> CsvRowSerializationSchema:
            """The schema.

            Raises:
                ProgramError: The type is no row, or has a part that a cell has no form of.
            """
            schema = CsvRowSerializationSchema(row_type_of("CsvRowSerializationSchema", self.type_info), self.dialect)
            _ = schema._write  # refuses what has no form
            return schema


def _one(what: str, char: str) -> str:
    if len(char) != 1:
        raise ProgramError(f"the {what} of CSV must be a single character, not {char!r}")
    return char
