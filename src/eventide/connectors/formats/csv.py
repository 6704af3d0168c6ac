"""CSV: files, read by Arrow and written by Spark; and messages, each a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, filterfalse, islice
from typing import TYPE_CHECKING, ClassVar, Generic, Self

from eventide._absent import says_what_is_absent
from eventide.api.dead_letters import advised
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
    BLOCK,
    StreamFormat,
    as_declared,
    bad_column,
    check_columns,
    good_and_bad,
    type_of_columns,
)
from eventide.connectors.file_system.sink import BulkWriterFactory
from eventide.connectors.formats.csv_rows import (
    CsvLines,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    Dialect,
    one_character,
)
from eventide.errors import DataError, ProgramError

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
        with file.reading(), file.stream() as stream:
            found = type_of_columns(self._reader(self._lines(file, stream), None, self._converted(None)).schema, file)
        return replace(self, schema=replace(self.schema, row_type=check_columns("CSV", found)))

    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        declared = check_columns("CSV", type_info)
        converted = self._converted(declared.arrow_type())
        try:
            for batch in self._batches(file, stream, declared.field_names, converted):
                if len(batch):
                    yield self._declared(batch, file, type_info)
        except _OpenQuoteError as error:
            raise advised(error) from error
        except pa.ArrowInvalid as error:
            raise advised(self._what_is_wrong(file, declared, error)) from error

    def stream_sorted_out(
        self, file: File, stream: pa.NativeFile, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        """The rows, and the rows that cannot be read; see :meth:`FileFormat.sorted_out`.

        Cells are read as text first, and then as their declared types.
        """
        import pyarrow as pa
        from pyarrow import csv as pc

        names = check_columns("CSV", type_info).field_names
        first = int(self.schema.use_header) + int(self.schema.skip_first_data_row) + 1
        ragged: set[int] = set()
        skipped: list[Unreadable] = []
        places = filterfalse(ragged.__contains__, count())

        def skip(row: pyarrow.csv.InvalidRow) -> str:
            wrong = f"the file {file.path} cannot be read: expected {row.expected_columns} columns, got"
            error = DataError(f"{wrong} {row.actual_columns}: {row.text}")
            skipped.append(Unreadable(error, row.text.rstrip("\r\n"), file.path, row.number - first))
            ragged.add(row.number - first)
            return "skip"

        read = partial(self._typed, file, type_info)
        as_text = pc.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()), null_values=[], strings_can_be_null=False
        )
        try:
            for batch in self._batches(file, stream, names, as_text, skip):
                at = [*islice(places, len(batch))]
                yield from good_and_bad(batch.select(names), read, partial(self._unreadable, file, at))
                yield from skipped
                skipped.clear()
        except _OpenQuoteError as error:
            yield self._unreadable(file, [next(places)], error.row, 0, DataError(str(error)))
        yield from skipped

    def _batches(
        self,
        file: File,
        stream: pa.NativeFile,
        names: list[str],
        converted: pyarrow.csv.ConvertOptions,
        invalid: Callable[[pyarrow.csv.InvalidRow], str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Some columns of a file, as Arrow reads them.

        Raises:
            DataError: if the file does not have the columns, or ends in a value whose quote is not closed.
        """
        import pyarrow as pa

        lines = self._lines(file, stream)
        if not lines.first:
            return
        schema = self.schema
        if schema.strict_headers and schema.needs_names and schema.row_type is not None:
            header, expected = self._header(file, lines), schema.row_type.field_names
            if header != expected:
                raise DataError(f"the file {file.path} has the columns {header} in its header, not {expected}")
        last: pa.RecordBatch | None = None
        try:
            for batch in self._reader(lines, names, converted, invalid):
                if last is not None:
                    yield last
                last = batch if len(batch) else last
        except pa.ArrowKeyError as error:
            raise DataError(f"the file {file.path} does not have all columns that are asked for: {error}") from error
        if last is not None and lines.has_open_quote:
            yield last.slice(0, len(last) - 1)
            raise _OpenQuoteError(file, lines.without_end(last.slice(len(last) - 1)))
        if last is not None:
            yield last

    def _typed(self, file: File, type_info: TypeInformation, cells: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Cells that are text, as rows of a type.

        Raises:
            DataError: naming the file and the column.
            pa.ArrowInvalid: A cell is not UTF-8.
        """
        import pyarrow as pa
        from pyarrow import csv as pc

        names, struct = cells.schema.names, check_columns("CSV", type_info).arrow_type()
        content = pa.BufferOutputStream()
        texts = pa.RecordBatch.from_arrays([column.cast(pa.string()) for column in cells.columns], names)
        pc.write_csv(texts, content, pc.WriteOptions(include_header=False, quoting_style="all_valid"))
        whole = pc.ReadOptions(use_threads=False, block_size=content.tell() + 1, column_names=names)
        parse = pc.ParseOptions(newlines_in_values=True)
        try:
            table = pc.read_csv(pa.BufferReader(content.getvalue()), whole, parse, self._converted(struct))
        except pa.ArrowInvalid as error:
            bad = _BAD_CELL.match(str(error))
            name = names[int(bad[1])] if bad else names[0]
            text = _ROW.sub("", bad[2] if bad else str(error))
            raise bad_column(file, name, struct.field(name).type, text) from error
        return [self._declared(batch, file, type_info) for batch in table.combine_chunks().to_batches()]

    def _unreadable(
        self, file: File, places: list[int], cells: pa.RecordBatch, row: int, error: Exception
    ) -> Unreadable:
        """A row that cannot be read, as a line with quotes where they are needed."""
        dialect = Dialect(self.schema.column_separator, quote=self.schema.quote_char, line_end="")
        texts = [column[0].as_py().decode("utf-8", "backslashreplace") for column in cells.columns]
        line = dialect.line(texts if dialect.quote is None else [*map(dialect.written, texts)])
        wrong = error if isinstance(error, DataError) else DataError(str(error))
        return Unreadable(wrong, line, file.path, places[row])

    def _declared(self, batch: pa.RecordBatch, file: File, type_info: TypeInformation) -> pa.RecordBatch:
        """Return the columns, cast to the declared types."""
        fields = check_columns("CSV", type_info).arrow_type()
        columns = [self._column(batch.column(field.name), field) for field in fields]
        return as_declared(file, columns, type_info, is_text=True)

    def _what_is_wrong(self, file: File, declared: CompositeTypeInfo, error: Exception) -> DataError:
        bad = _BAD_CELL.match(str(error))
        if bad is None:
            return DataError(f"the file {file.path} cannot be read: {error}")
        name = self._name(file, int(bad[1]))
        return bad_column(file, name, declared.arrow_type().field(name).type, bad[2])

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

    def _reader(
        self,
        lines: CsvLines,
        wanted: list[str] | None,
        converted: pyarrow.csv.ConvertOptions,
        invalid: Callable[[pyarrow.csv.InvalidRow], str] | None = None,
    ) -> pyarrow.csv.CSVStreamingReader:
        """Arrow's reader of some columns; None reads all. ``invalid`` gets the rows with another number of cells."""
        from pyarrow import csv as pc

        schema = self.schema
        names = None if schema.row_type is None else schema.row_type.field_names
        by_name = schema.needs_names
        converted.include_columns = wanted or []
        return pc.open_csv(
            lines,
            pc.ReadOptions(
                use_threads=False,
                block_size=BLOCK,
                column_names=None if by_name else names,
                autogenerate_column_names=not by_name and names is None,
                skip_rows_after_names=int(schema.use_header and not by_name) + int(schema.skip_first_data_row),
            ),
            pc.ParseOptions(
                delimiter=schema.column_separator,
                quote_char=schema.quote_char or False,
                escape_char=schema.escape_char or False,
                newlines_in_values=schema.quote_char is not None,
                invalid_row_handler=partial(lines.met, invalid),
            ),
            converted,
        )

    def _column(self, column: pa.Array, field: pa.Field) -> pa.Array:
        """Return a column; if it was read as text but has another type, empty cells become None.

        As in Flink, an array without text is empty, and a text other than ``true`` is false.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if column.type == field.type or not pa.types.is_string(column.type):
            return column
        is_empty = pc.equal(column, "")
        if pa.types.is_list(field.type):
            lists = pc.split_pattern(column, dict(self.schema.array_separators)[field.name])
            return pc.if_else(is_empty, pa.scalar([], lists.type), lists)
        texts = pc.if_else(is_empty, pa.scalar(None, pa.string()), column)
        if pa.types.is_boolean(field.type):
            return pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(texts)), "true")
        return texts

    def _name(self, file: File, column: int) -> str:
        """The name of a column by its place in the file."""
        schema = self.schema
        if schema.row_type is not None and not schema.needs_names:
            return schema.row_type.field_names[column]
        with file.stream() as stream:
            return self._header(file, CsvLines(stream, self.schema.escape_char))[column]

    def _lines(self, file: File, stream: pa.NativeFile) -> CsvLines:
        """The lines of a file, and the end that shows whether all of them were read."""
        lines, schema = CsvLines(stream, self.schema.escape_char), self.schema
        names = schema.row_type.field_names if schema.row_type is not None and not schema.needs_names else None
        if lines.first:
            lines.end_beside(len(self._header(file, lines) if names is None else names), schema.column_separator)
        return lines

    def _header(self, file: File, lines: CsvLines) -> list[str]:
        """The names in the first line of a file.

        Raises:
            DataError: if it cannot be read.
        """
        schema = self.schema
        dialect = Dialect(schema.column_separator, quote=schema.quote_char, escape=schema.escape_char)
        try:
            return dialect.cells(lines.first.decode("utf-8", "replace"))
        except ValueError as error:
            raise DataError(
                f"the first line of the file {file.path} cannot be read: {error}; close its quotes"
            ) from error


class _OpenQuoteError(DataError):
    """An unclosed quote, after which the rest of the file is part of one value.

    Args:
        file: the file with the quote.
        row: the row with that value.
    """

    def __init__(self, file: File, row: pa.RecordBatch) -> None:
        super().__init__(
            f"the file {file.path} cannot be read: the quote before {str(row.column(row.num_columns - 1)[0])[:60]!r} "
            "is not closed, so that all after it is one value; close it, or call disable_quote_char() if quotes are "
            "part of values"
        )
        self.row = row


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
