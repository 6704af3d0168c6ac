"""CSV: files, read by Arrow and written by Spark; and messages, each a line."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.datastream._dead_letters import advised
from eventide.datastream.connectors.file_system._columns import (
    as_declared,
    bad_column,
    check_columns,
    type_of_columns,
)
from eventide.datastream.connectors.file_system._files import File
from eventide.datastream.connectors.file_system._format import BLOCK, StreamFormat
from eventide.datastream.connectors.file_system._sink import BulkWriterFactory
from eventide.datastream.connectors.source import Unreadable
from eventide.datastream.formats._csv_bad_rows import RowsApart
from eventide.datastream.formats._csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from eventide.datastream.formats._csv_schema import CsvSchema, CsvSchemaBuilder, check_csv_types
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
class CsvReaderFormat(StreamFormat):
    """Reads CSV files; made by :meth:`for_schema`.

    >>> schema = CsvSchema.builder().add_string_column("user").add_number_column("amount").build()
    >>> CsvReaderFormat.for_schema(schema).type_info
    ROW(user: STRING, amount: LONG)
    """

    schema: CsvSchema

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Read files that look as the schema says.

        Raises:
            ProgramError: A column has a type that does not fit into one place of a line.
        """
        check_csv_types(schema)
        return CsvReaderFormat(schema)

    @property
    def type_info(self) -> TypeInformation | None:
        """The type of the rows; None while it is still to be found in a file."""
        return self.schema.row_type

    def resolved(self, first: File | None) -> CsvReaderFormat:
        """With columns as the beginning of the first file suggests, if none were declared; see :class:`FileFormat`."""
        if self.schema.row_type is not None:
            return self
        if first is None:
            raise ProgramError(
                "there is no CSV file yet whose columns could be taken; declare them, such as "
                "type_info=Types.ROW_NAMED([...], [...])"
            )
        with first.reading(), first.stream() as stream:
            found = type_of_columns(self._reader(stream, None, self._converted(None)).schema, first)
        return replace(self, schema=replace(self.schema, row_type=check_columns("CSV", found)))

    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        """The rows of a file that has been opened; see :meth:`FileFormat.read`."""
        import pyarrow as pa

        declared = check_columns("CSV", type_info)
        try:
            for batch in self._reader(stream, declared.field_names, self._converted(declared.arrow_type()), file):
                if len(batch):
                    yield self._declared(batch, file, type_info)
        except pa.ArrowKeyError as error:
            raise _misses_columns(file, error) from error
        except pa.ArrowInvalid as error:
            if str(error).startswith("Empty CSV file"):
                return
            raise advised(self._what_is_wrong(file, declared, error)) from error

    def stream_sorted_out(
        self, file: File, stream: pa.NativeFile, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        """The same, where rows that cannot be read come as such; see :meth:`FileFormat.sorted_out`."""
        import pyarrow as pa
        from pyarrow import csv as pc

        declared = check_columns("CSV", type_info)
        struct = declared.arrow_type()

        def typed(cells: pa.RecordBatch) -> pa.RecordBatch:
            texts = [column.cast(pa.string()) for column in cells.columns]
            content = pa.BufferOutputStream()
            names = declared.field_names
            pc.write_csv(
                pa.RecordBatch.from_arrays(texts, names),
                content,
                pc.WriteOptions(include_header=False, quoting_style="all_valid"),
            )
            whole = pc.ReadOptions(use_threads=False, block_size=content.tell() + 1, column_names=names)
            parse = pc.ParseOptions(newlines_in_values=True)
            try:
                table = pc.read_csv(pa.BufferReader(content.getvalue()), whole, parse, self._converted(struct))
            except pa.ArrowInvalid as error:
                bad = _BAD_CELL.match(str(error))
                name = names[int(bad[1])] if bad else names[0]
                said = _ROW.sub("", bad[2] if bad else str(error))
                raise bad_column(file, name, struct.field(name).type, said) from error
            [batch] = table.combine_chunks().to_batches()
            return self._declared(batch, file, type_info)

        rows = RowsApart(file, self.schema, typed)
        as_text = pc.ConvertOptions(
            column_types=dict.fromkeys(declared.field_names, pa.binary()), null_values=[], strings_can_be_null=False
        )
        try:
            reader = self._reader(stream, declared.field_names, as_text, file, rows.skip)
            yield from rows.sorted_out(batch.select(declared.field_names) for batch in reader)
        except pa.ArrowKeyError as error:
            raise _misses_columns(file, error) from error
        except pa.ArrowInvalid as error:
            if not str(error).startswith("Empty CSV file"):
                raise

    def _declared(self, batch: pa.RecordBatch, file: File, type_info: TypeInformation) -> pa.RecordBatch:
        """Columns as they were read, brought to the declared types."""
        fields = check_columns("CSV", type_info).arrow_type()
        return as_declared(file, [self._column(batch.column(field.name), field) for field in fields], type_info)

    def _what_is_wrong(self, file: File, declared: CompositeTypeInfo, error: Exception) -> DataError:
        bad = _BAD_CELL.match(str(error))
        if bad is None:
            return DataError(f"the file {file.path} cannot be read: {error}")
        name = self._name(file, int(bad[1]))
        return bad_column(file, name, declared.arrow_type().field(name).type, bad[2])

    def _converted(self, struct: pa.StructType | None) -> pyarrow.csv.ConvertOptions:
        """How cells become values; None finds it out."""
        import pyarrow as pa
        from pyarrow import csv as pc

        special = (pa.types.is_timestamp, pa.types.is_list)
        types = {f.name: pa.string() if any(is_a(f.type) for is_a in special) else f.type for f in struct or ()}
        return pc.ConvertOptions(
            column_types=types,
            null_values=[self.schema.null_value or ""],
            strings_can_be_null=self.schema.null_value is not None,
        )

    def _reader(
        self,
        stream: pa.NativeFile,
        wanted: list[str] | None,
        converted: pyarrow.csv.ConvertOptions,
        file: File | None = None,
        invalid: Callable[[pyarrow.csv.InvalidRow], str] | None = None,
    ) -> pyarrow.csv.CSVStreamingReader:
        """Arrow's reader of some columns; None reads all. ``invalid`` is told of rows with another number of cells."""
        from pyarrow import csv as pc

        schema = self.schema
        names = None if schema.row_type is None else schema.row_type.field_names
        by_name = schema.needs_names
        strict = schema.strict_headers and by_name and names is not None
        converted.include_columns = [] if strict else wanted or []
        reader = pc.open_csv(
            stream,
            pc.ReadOptions(
                use_threads=False,
                block_size=BLOCK,
                column_names=None if by_name else names,
                autogenerate_column_names=not by_name and names is None,
                skip_rows=int(schema.use_header and not by_name),
                skip_rows_after_names=int(schema.skip_first_data_row),
            ),
            pc.ParseOptions(
                delimiter=schema.column_separator,
                quote_char=schema.quote_char or False,
                escape_char=schema.escape_char or False,
                newlines_in_values=schema.quote_char is not None,
                invalid_row_handler=invalid,
            ),
            converted,
        )
        if strict and file is not None and reader.schema.names != names:
            raise DataError(f"the file {file.path} has the columns {reader.schema.names} in its header, not {names}")
        return reader

    def _column(self, column: pa.Array, field: pa.Field) -> pa.Array:
        """A column as it was read; where that was as text, and it is none, None stands for what is empty."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if column.type == field.type or not pa.types.is_string(column.type):
            return column
        texts = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        if pa.types.is_list(field.type):
            return pc.split_pattern(texts, dict(self.schema.array_separators)[field.name])
        return texts

    def _name(self, file: File, column: int) -> str:
        """The name of a column by its place in the file."""
        row_type = self.schema.row_type
        if row_type is not None and not self.schema.needs_names:
            return row_type.field_names[column]
        with file.stream() as stream:
            header = stream.read(BLOCK).decode("utf-8", "replace").splitlines()[:1]
        names = next(csv.reader(header, delimiter=self.schema.column_separator, quotechar=self.schema.quote_char))
        return names[column]


def _misses_columns(file: File, error: Exception) -> DataError:
    return DataError(f"the file {file.path} does not have all columns that are asked for: {error}")


class CsvBulkWriters:
    """Makes writers of CSV files, for ``FileSink.for_bulk_format``.

    >>> schema = CsvSchema.builder().add_string_column("user").set_use_header().build()
    >>> CsvBulkWriters.for_schema(schema).options["header"]
    'true'
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """A writer of files that look as the schema says, with a header if it says so.

        Raises:
            ProgramError: The schema has no columns, or a column of a type that Spark does not write as CSV.
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
                "escape": schema.escape_char or schema.quote_char or "\\",
                "nullValue": schema.null_value or "",
                "lineSep": schema.line_separator,
                "header": "true" if schema.use_header else "false",
            },
        )


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
