"""CSV: files, read by Arrow and written by Spark; and messages, each a line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eventide._absent import no_such_name
from eventide.common.typeinfo import TypeInformation
from eventide.datastream.connectors.file_system._columns import (
    as_declared,
    bad_column,
    check_columns,
    type_of_columns,
)
from eventide.datastream.connectors.file_system._files import File
from eventide.datastream.connectors.file_system._format import BLOCK, StreamFormat
from eventide.datastream.connectors.file_system._sink import BulkWriterFactory
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
            found = type_of_columns(self._reader(stream, None, None).schema, first)
        return replace(self, schema=replace(self.schema, row_type=check_columns("CSV", found)))

    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        """The rows of a file that has been opened; see :meth:`FileFormat.read`."""
        import pyarrow as pa

        declared = check_columns("CSV", type_info)
        fields = list(declared.arrow_type())
        try:
            for batch in self._reader(stream, declared.field_names, declared.arrow_type(), file):
                columns = [self._column(batch.column(field.name), field) for field in fields]
                if len(batch):
                    yield as_declared(file, columns, type_info)
        except pa.ArrowKeyError as error:
            raise DataError(f"the file {file.path} does not have all columns that are asked for: {error}") from error
        except pa.ArrowInvalid as error:
            if str(error).startswith("Empty CSV file"):
                return
            bad = _BAD_CELL.match(str(error))
            if bad is None:
                raise
            name = self._name(file, int(bad[1]))
            raise bad_column(file, name, declared.arrow_type().field(name).type, bad[2]) from error

    def _reader(
        self, stream: pa.NativeFile, wanted: list[str] | None, struct: pa.StructType | None, file: File | None = None
    ) -> pyarrow.csv.CSVStreamingReader:
        """Arrow's reader of some columns; None reads all, with types that it finds out."""
        import pyarrow as pa
        from pyarrow import csv as pc

        schema = self.schema
        names = None if schema.row_type is None else schema.row_type.field_names
        by_name = schema.needs_names
        special = (pa.types.is_timestamp, pa.types.is_list)
        types = {f.name: pa.string() if any(is_a(f.type) for is_a in special) else f.type for f in struct or ()}
        strict = schema.strict_headers and by_name and names is not None
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
            ),
            pc.ConvertOptions(
                column_types=types,
                include_columns=None if strict else wanted,
                null_values=[schema.null_value or ""],
                strings_can_be_null=schema.null_value is not None,
            ),
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

    def __getattr__(name: str) -> object:
        raise no_such_name(__name__, name)
