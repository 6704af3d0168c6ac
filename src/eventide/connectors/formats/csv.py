"""CSV: files, read by Arrow and written by Spark; and messages, each a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, Self

from eventide._absent import says_what_is_absent
from eventide.api.source import Unreadable
from eventide.common.type_variables import T, T_co
from eventide.common.typeinfo import (
    CompositeTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TimeWindowTypeInfo,
    TypeInformation,
    Types,
)
from eventide.common.types import Row
from eventide.connectors.file_system.files import File
from eventide.connectors.file_system.format import (
    StreamFormat,
    as_declared,
    bad_column,
    check_columns,
    good_and_bad,
    type_of_columns,
)
from eventide.connectors.file_system.sink import BulkWriterFactory
from eventide.connectors.formats._texts import lists_of_java, numbers_of_java
from eventide.connectors.formats.csv_files import CsvBlock, CsvBlocks, CsvLines
from eventide.connectors.formats.csv_rows import (
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    Dialect,
    one_character,
)
from eventide.errors import DataError, ProgramError, advised

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.csv

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]

_HEXADECIMAL = re.compile(rb"0[xX]")
_ROW = re.compile(r"\bRow #\d+: ")
_BAD_CELL = re.compile(r"In CSV column #(\d+): (.*)", re.DOTALL)


@dataclass(frozen=True)
class CsvSchema(Generic[T_co]):
    """The columns of CSV files and their format; made with :meth:`builder`. PyFlink: ``CsvSchema``.

    ``row_type`` is a row type with names, or a tuple type by the position of the columns; None means the columns of the
    first file.

    >>> schema = CsvSchema.builder().add_string_column("user").add_number_column("amount").set_use_header().build()
    >>> schema.row_type, len(schema)
    (ROW(user: STRING, amount: LONG), 2)
    """

    row_type: CompositeTypeInfo[T_co] | None
    column_separator: str = ","
    quote_char: str | None = '"'
    escape_char: str | None = None
    null_value: str | None = None
    line_separator: str = "\n"
    use_header: bool = False
    reorder_columns: bool = False
    strict_headers: bool = False
    skip_first_data_row: bool = False
    array_separators: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Start without columns and header, with commas and double quotes."""
        return CsvSchemaBuilder()

    @property
    def needs_names(self) -> bool:
        """Whether the names in the header are used, to find columns or to be checked."""
        if not self.use_header or self.row_type is None:
            return self.use_header
        is_named = isinstance(self.row_type, RowTypeInfo) and self.row_type.names is not None
        return is_named and (self.reorder_columns or self.strict_headers)

    def size(self) -> int:
        """The number of columns; 0 until they are found in a file."""
        return 0 if self.row_type is None else len(self.row_type.field_types)

    def __len__(self) -> int:
        return self.size()


@says_what_is_absent
@dataclass
class CsvSchemaBuilder:
    """Builds a :class:`CsvSchema`; each step changes the builder and returns it."""

    columns: tuple[tuple[str, TypeInformation], ...] = ()
    schema: CsvSchema[Row] = field(default_factory=lambda: CsvSchema(None))

    def build(self) -> CsvSchema[Row]:
        """The schema.

        Raises:
            ProgramError: There are no columns, or two of one name.
        """
        names, types = [name for name, _ in self.columns], [type_info for _, type_info in self.columns]
        return replace(self.schema, row_type=Types.ROW_NAMED(names, types))

    def add_column(self, name: str, type_info: TypeInformation) -> Self:
        """Add a column of any type that CSV can hold, such as ``Types.SQL_TIMESTAMP()``. Not in PyFlink."""
        self.columns = (*self.columns, (name, type_info))
        return self

    def add_string_column(self, name: str) -> Self:
        """Add a column of text."""
        return self.add_column(name, Types.STRING())

    def add_boolean_column(self, name: str) -> Self:
        """Add a column of ``true`` and ``false``; as in Flink, any other text is false."""
        return self.add_column(name, Types.BOOLEAN())

    def add_number_column(self, name: str, number_type: TypeInformation | None = None) -> Self:
        """Add a column of numbers, by default ``Types.LONG()``; the type is one of `Types`, not of ``DataTypes``."""
        return self.add_column(name, number_type or Types.LONG())

    def add_array_column(self, name: str, separator: str = ";", element_type: TypeInformation | None = None) -> Self:
        """Add a column of several values, by default text, with a separator; an empty cell has no values."""
        self.add_column(name, Types.LIST(element_type or Types.STRING()))
        return self._with(array_separators=(*self.schema.array_separators, (name, separator)))

    def add_columns_from(self, schema: CsvSchema) -> Self:
        """Add all columns of another schema."""
        row_type = schema.row_type
        added = () if row_type is None else tuple(zip(row_type.field_names, row_type.field_types, strict=True))
        self.columns = (*self.columns, *added)
        return self._with(array_separators=(*self.schema.array_separators, *schema.array_separators))

    def clear_columns(self) -> Self:
        """Drop all columns."""
        self.columns = ()
        return self._with(array_separators=())

    def set_column_separator(self, char: str) -> Self:
        """Set the character between two columns."""
        return self._with(column_separator=one_character("column separator", char))

    def set_quote_char(self, char: str) -> Self:
        """Set the quote character around a value, within which others are literal; doubled, it is itself literal."""
        return self._with(quote_char=one_character("quote char", char))

    def disable_quote_char(self) -> Self:
        """Read quotes as part of a value."""
        return self._with(quote_char=None)

    def set_escape_char(self, char: str) -> Self:
        """Set the escape character, which makes the next character literal; by default there is none."""
        return self._with(escape_char=one_character("escape char", char))

    def disable_escape_char(self) -> Self:
        """Use no escape character."""
        return self._with(escape_char=None)

    def set_null_value(self, null_value: str) -> Self:
        """Set the text of None; by default, it is an empty value, except in a text column."""
        return self._with(null_value=null_value)

    def set_line_separator(self, separator: str) -> Self:
        r"""Set the end of written lines; ``\n``, ``\r`` and ``\r\n`` are always read."""
        return self._with(line_separator=separator)

    def set_use_header(self, use: bool = True) -> Self:
        """Declare that the first line is a header.

        It is skipped, and columns are found by their position, unless :meth:`set_strict_headers` or
        :meth:`set_reorder_columns` is called.
        """
        return self._with(use_header=use)

    def set_reorder_columns(self, reorder: bool = True) -> Self:
        """Find columns by their names in the header; others are ignored. Not in PyFlink, but in Java's schema."""
        return self._with(reorder_columns=reorder)

    def set_strict_headers(self, strict: bool = True) -> Self:
        """Require a header with exactly the columns of the schema, in their order."""
        return self._with(strict_headers=strict)

    def set_skip_first_data_row(self, skip: bool = True) -> Self:
        """Skip the first line after the header."""
        return self._with(skip_first_data_row=skip)

    def size(self) -> int:
        """The number of columns so far."""
        return len(self.columns)

    def __len__(self) -> int:
        return self.size()

    def _with(self, **changes: object) -> Self:
        self.schema = replace(self.schema, **changes)  # type: ignore[arg-type]
        return self


_OF_SEVERAL = (CompositeTypeInfo, ListTypeInfo, MapTypeInfo, TimeWindowTypeInfo)
"""Types with several parts, which do not fit into a cell."""


def check_csv_types(schema: CsvSchema) -> None:
    """Check that every column of a schema fits into a cell.

    Raises:
        ProgramError: naming the column.
    """
    arrays = {name for name, _ in schema.array_separators}
    row_type = schema.row_type
    for name, type_info in zip(row_type.field_names, row_type.field_types, strict=True) if row_type else ():
        held = type_info.element_type if isinstance(type_info, ListTypeInfo) and name in arrays else type_info
        if held.is_pickled or isinstance(held, _OF_SEVERAL):
            raise ProgramError(
                f"the column {name!r} of a CSV file cannot hold {type_info}; declare it as Types.STRING() and parse it "
                "in a map function, or use add_array_column for a list"
            )


@dataclass(frozen=True)
class CsvReaderFormat(StreamFormat[T_co]):
    """Reads CSV files; made by :meth:`for_schema`.

    >>> schema = CsvSchema.builder().add_string_column("user").add_number_column("amount").build()
    >>> CsvReaderFormat.for_schema(schema).type_info
    ROW(user: STRING, amount: LONG)
    """

    name: ClassVar[str] = "CSV"
    schema: CsvSchema[T_co]

    @staticmethod
    def for_schema(schema: CsvSchema[T]) -> CsvReaderFormat[T]:
        """Read files in the format of a schema.

        Raises:
            ProgramError: A column has a type that does not fit into a cell.
        """
        check_csv_types(schema)
        return CsvReaderFormat(schema)

    @property
    def type_info(self) -> TypeInformation[T_co] | None:
        return self.schema.row_type

    def with_type_of(self, file: File) -> Self:
        import pyarrow as pa

        with file.reading(), file.stream() as stream:
            blocks, names = self._opened(file, stream)
            block = blocks.first()
            if block is not None:
                schema = self._parsed(block.content, names, self._converted(None)).schema
            elif names:
                schema = pa.schema([(name, pa.null()) for name in names])
            else:
                raise DataError("it is empty, so that its columns are not known; declare them with a type_info")
            found = type_of_columns(schema, file)
        return replace(self, schema=replace(self.schema, row_type=check_columns("CSV", found)))

    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        for found in self.stream_sorted_out(file, stream, type_info):
            if isinstance(found, Unreadable):
                raise advised(found.error)
            yield found

    def stream_sorted_out(
        self, file: File, stream: pa.NativeFile, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        """The rows, and the rows that cannot be read; see :meth:`FileFormat.sorted_out`.

        Arrow reads a block of rows as their declared types if it reads them as Flink does. Otherwise, cells are read as
        text first, and then as their declared types.
        """
        blocks, names = self._opened(file, stream)
        wanted = check_columns("CSV", type_info).field_names
        missing = [name for name in wanted if name not in names]
        if missing and names:
            raise DataError(f"the file {file.path} does not have all columns that are asked for: {missing[0]!r}")
        before = 0
        for block in blocks:
            batches = self._typed_at_once(file, type_info, names, block)
            if batches is not None:
                yield from batches
                before += sum(map(len, batches))
                continue
            cells, places, bad = self._cells(file, wanted, names, block, before)
            before += len(places) + len(bad)
            read, unreadable = partial(self._typed, file, type_info), partial(self._unreadable, file, type_info, places)
            yield from good_and_bad(cells, read, unreadable)
            yield from bad

    def _opened(self, file: File, stream: pa.NativeFile) -> tuple[CsvBlocks, list[str]]:
        """The blocks of a file after its header, and the names of its columns; none if they are not known.

        Raises:
            DataError: if the header cannot be read, or has other names than it must have.
        """
        schema = self.schema
        blocks = CsvBlocks(CsvLines(stream, schema.escape_char), self._dialect)
        names = [] if schema.row_type is None or schema.needs_names else schema.row_type.field_names
        header = blocks.take_row() if schema.use_header else None
        if header is not None and schema.needs_names:
            names = self._names_in(header, file)
            if schema.strict_headers and schema.row_type is not None and names != schema.row_type.field_names:
                expected = schema.row_type.field_names
                raise DataError(
                    f"the file {file.path} has the columns {names} in its header, not {expected}; declare those of the "
                    "file, or leave strict headers out, so that columns are found by name"
                )
        if schema.skip_first_data_row:
            blocks.take_row()
        return blocks, names

    def _names_in(self, header: bytes, file: File) -> list[str]:
        try:
            return self._dialect.cells(header.decode("utf-8", "replace"))
        except ValueError as error:
            raise DataError(
                f"the first line of the file {file.path} cannot be read: {error}; close its quotes"
            ) from error

    @property
    def _dialect(self) -> Dialect:
        schema = self.schema
        return Dialect(schema.column_separator, quote=schema.quote_char, escape=schema.escape_char)

    def _has_blank_rows(self, names: list[str]) -> bool:
        """Whether a blank line of a file is a row, whose only cell is an empty text."""
        row_type = self.schema.row_type
        return row_type is not None and len(names) == 1 and row_type.field_types == [Types.STRING()]

    def _typed_at_once(
        self, file: File, type_info: TypeInformation, names: list[str], block: CsvBlock
    ) -> list[pa.RecordBatch] | None:
        """The rows of a block; None if Flink might read them differently, or one cannot be read."""
        import pyarrow as pa
        import pyarrow.compute as pc

        struct = check_columns("CSV", type_info).arrow_type()
        has_integers = any(pa.types.is_integer(field.type) for field in struct)
        if not block.is_plain or (has_integers and _HEXADECIMAL.search(block.content)):
            return None
        try:
            table = self._parsed(block.content, names, self._converted(struct), [field.name for field in struct])
            batches = [self._declared(batch, file, type_info) for batch in table.to_batches()]
        except (pa.ArrowInvalid, DataError):
            return None
        numbers = [column for column in table.columns if pa.types.is_floating(column.type)]
        return None if any(pc.all(pc.is_finite(column)).as_py() is False for column in numbers) else batches

    def _cells(
        self, file: File, wanted: list[str], names: list[str], block: CsvBlock, before: int
    ) -> tuple[pa.RecordBatch, Sequence[int], list[Unreadable]]:
        """Some columns of a block as text, the places of their rows in the file, and the rows that cannot be read."""
        import pyarrow as pa
        from pyarrow import csv as pc

        if block.is_plain:
            as_text = pc.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.binary()), null_values=[], strings_can_be_null=False
            )
            with suppress(pa.ArrowInvalid):
                table = self._parsed(block.content, names, as_text, wanted)
                return table.combine_chunks().to_batches()[0], range(before, before + len(table)), []
        rows, places, bad = [], [], []
        has_blank_rows = self._has_blank_rows(names)
        for place, row in enumerate((row for row in block.rows() if row or has_blank_rows), before):
            try:
                rows.append(self._cells_of(row, len(names)))
                places.append(place)
            except ValueError as error:
                bad.append(self._no_row(file, row, place, block.is_open, len(names), error))
        columns = [[row[names.index(name)].encode("utf-8", "surrogateescape") for row in rows] for name in wanted]
        return pa.RecordBatch.from_arrays([pa.array(column, pa.binary()) for column in columns], wanted), places, bad

    def _cells_of(self, row: bytes, width: int) -> list[str]:
        """The cells of a row, as Flink reads them; bytes that are not text are escaped.

        Raises:
            ValueError: if there are more or fewer, or the row cannot be read.
        """
        cells = self._dialect.cells(row.decode("utf-8", "surrogateescape")) if row else [""]
        if len(cells) == width + 1 and not cells[width].strip():  # a separator may end the line
            cells.pop()
        if len(cells) != width:
            raise ValueError(f"Expected {width} columns, got {len(cells)}")
        return cells

    def _no_row(self, file: File, row: bytes, place: int, is_open: bool, width: int, error: ValueError) -> Unreadable:
        """A row that has no cells, or more or fewer than there are columns."""
        text = row.decode("utf-8", "backslashreplace")
        wrong = f"CSV parse error: Row #{self._number(place)}: {error}: {text:.200}"
        if is_open:
            with suppress(ValueError):
                cells = self._cells_of(row + (self.schema.quote_char or "").encode(), width)
                cells = [cell.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for cell in cells]
                text = self._line(cells)
                wrong = (
                    f"the quote before {cells[-1][:60]!r} is not closed, so that all after it is one value; close it, "
                    "or call disable_quote_char() if quotes are part of values"
                )
        return Unreadable(DataError(f"the file {file.path} cannot be read: {wrong}"), text, file.path, place)

    def _line(self, cells: list[str]) -> str:
        """Cells as a line, with quotes where they are needed."""
        dialect = replace(self._dialect, escape=None, line_end="")
        return dialect.line(cells if dialect.quote is None else [*map(dialect.written, cells)])

    def _number(self, place: int) -> int:
        """The number of a row in its file, from 1, for a place among its data."""
        return place + 1 + int(self.schema.use_header) + int(self.schema.skip_first_data_row)

    def _typed(self, file: File, type_info: TypeInformation, cells: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Cells that are text, as rows of a type.

        Raises:
            DataError: naming the column.
        """
        import pyarrow as pa
        from pyarrow import csv as pc

        names, struct = cells.schema.names, check_columns("CSV", type_info).arrow_type()
        texts = []
        for name, column in zip(names, cells.columns, strict=True):
            try:
                text, kind = column.cast(pa.string()), struct.field(name).type
                texts.append(numbers_of_java(text, kind, self.schema.null_value or ""))
            except (pa.ArrowInvalid, ValueError) as error:
                raise _BadCellError(name, str(error)) from error
        content = pa.BufferOutputStream()
        written = pa.RecordBatch.from_arrays(texts, names)
        pc.write_csv(written, content, pc.WriteOptions(include_header=False, quoting_style="all_valid"))
        whole = pc.ReadOptions(use_threads=False, block_size=content.tell() + 1, column_names=names)
        parse = pc.ParseOptions(newlines_in_values=True)
        try:
            table = pc.read_csv(pa.BufferReader(content.getvalue()), whole, parse, self._converted(struct))
        except pa.ArrowInvalid as error:
            bad = _BAD_CELL.match(str(error))
            raise _BadCellError(
                names[int(bad[1])] if bad else names[0], _ROW.sub("", bad[2] if bad else str(error))
            ) from error
        return [self._declared(batch, file, type_info) for batch in table.combine_chunks().to_batches()]

    def _unreadable(
        self,
        file: File,
        type_info: TypeInformation,
        places: Sequence[int],
        cells: pa.RecordBatch,
        row: int,
        error: Exception,
    ) -> Unreadable:
        """A row with a cell that is not of its column's type."""
        line = self._line([column[0].as_py().decode("utf-8", "backslashreplace") for column in cells.columns])
        if isinstance(error, _BadCellError):
            kind = check_columns("CSV", type_info).arrow_type().field(error.name).type
            error = bad_column(file, error.name, kind, f"Row #{self._number(places[row])}: {error.reason}")
        wrong = error if isinstance(error, DataError) else DataError(str(error))
        return Unreadable(wrong, line, file.path, places[row])

    def _declared(self, batch: pa.RecordBatch, file: File, type_info: TypeInformation) -> pa.RecordBatch:
        """Return the columns, cast to the declared types."""
        fields = check_columns("CSV", type_info).arrow_type()
        columns = [self._column(batch.column(field.name), field, file) for field in fields]
        return as_declared(file, columns, type_info, is_text=True)

    def _converted(self, struct: pa.StructType | None) -> pyarrow.csv.ConvertOptions:
        """The conversion of cells to values; None infers it."""
        import pyarrow as pa
        from pyarrow import csv as pc

        special = (pa.types.is_timestamp, pa.types.is_list, pa.types.is_binary, pa.types.is_boolean)
        types = {f.name: pa.string() if any(is_a(f.type) for is_a in special) else f.type for f in struct or ()}
        return pc.ConvertOptions(
            column_types=types,
            null_values=[self.schema.null_value or ""],
            strings_can_be_null=self.schema.null_value is not None,
        )

    def _parsed(
        self,
        content: bytes,
        names: list[str],
        converted: pyarrow.csv.ConvertOptions,
        wanted: list[str] | None = None,
    ) -> pa.Table:
        """Some columns of rows, as Arrow reads them; None reads all. Without names, the columns get names."""
        import pyarrow as pa
        from pyarrow import csv as pc

        schema = self.schema
        converted.include_columns = wanted or []
        return pc.read_csv(
            pa.BufferReader(content),
            pc.ReadOptions(
                use_threads=False,
                block_size=len(content) + 1,
                column_names=names or None,
                autogenerate_column_names=not names,
            ),
            pc.ParseOptions(
                delimiter=schema.column_separator,
                quote_char=schema.quote_char or False,
                escape_char=schema.escape_char or False,
                newlines_in_values=schema.quote_char is not None,
                ignore_empty_lines=not self._has_blank_rows(names),
            ),
            converted,
        )

    def _column(self, column: pa.Array, field: pa.Field, file: File) -> pa.Array:
        """Return a column; if it was read as text but has another type, empty cells become None.

        As in Flink, an array without text is empty, and a text other than ``true`` is false.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if column.type == field.type or not pa.types.is_string(column.type):
            return column
        if pa.types.is_list(field.type):
            separator, null = dict(self.schema.array_separators)[field.name], self.schema.null_value
            try:
                return lists_of_java(column, field.type.value_type, separator, null)
            except ValueError as error:
                raise bad_column(file, field.name, field.type, error) from error
        texts = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        if pa.types.is_boolean(field.type):
            return pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(texts)), "true")
        return texts


class _BadCellError(DataError):
    """A cell that is not a value of its column's type."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the column {name!r} cannot be read: {reason}")
        self.name = name
        self.reason = reason


class CsvBulkWriters:
    """Makes writers of CSV files, for ``FileSink.for_bulk_format``.

    >>> schema = CsvSchema.builder().add_string_column("user").set_use_header().build()
    >>> CsvBulkWriters.for_schema(schema).options["header"]
    'true'
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """A writer of files in the format of a schema, with a header if it has one.

        Raises:
            ProgramError: The schema has no columns, or a column of a type that Spark cannot write as CSV.
        """
        check_csv_types(schema)
        if schema.row_type is None or schema.array_separators:
            raise ProgramError("a CSV file is written with columns that are declared, and without arrays among them")
        return BulkWriterFactory(
            "csv",
            schema.row_type,
            {
                "sep": schema.column_separator,
                "quote": schema.quote_char or "",
                "escape": schema.escape_char or schema.quote_char or "",
                "nullValue": schema.null_value or "",
                "lineSep": schema.line_separator,
                "header": "true" if schema.use_header else "false",
            },
        )
