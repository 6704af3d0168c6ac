"""Parquet files: read in large batches of columns, and written by tasks, or by Spark where only it can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from eventide.common.accepted import has_no_effect
from eventide.common.type_variables import T_co
from eventide.common.typeinfo import TypeInformation
from eventide.connectors.file_system.files import File, check_rows
from eventide.connectors.file_system.format import (
    BulkFormat,
    ColumnTimes,
    as_declared,
    check_columns,
    columns_read,
    names_to_read,
    row_groups,
    tells_time,
    type_of_columns,
)
from eventide.connectors.file_system.sink import BulkWriterFactory
from eventide.errors import ProgramError

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch
    from pyarrow.parquet import FileMetaData, ParquetFile

__all__ = ["ParquetBulkWriters", "ParquetColumnarRowInputFormat"]

_BATCH_ROWS = 1024 * 1024
_BATCH_BYTES = 64 * 1024 * 1024
_FEW_ROWS = 64 * 1024


@dataclass(frozen=True)
class ParquetColumnarRowInputFormat(BulkFormat[T_co]):
    """Reads Parquet files column by column, and only those columns that are declared.

    Args:
        row_type: A row type with names, whose columns are found by name, or a tuple type, whose columns are the first
            of the file, by position. Without it, the type is that of the first file.
        hadoop_config: Accepted for compatibility with PyFlink, without effect: Arrow reads the files.
        batch_size: The greatest number of rows in a batch; fewer for wide rows.
        is_utc_timestamp: Accepted for compatibility with PyFlink, without effect: a timestamp without a zone is in UTC.
        is_case_sensitive: Whether names are case-sensitive. It must be True.

    Raises:
        ProgramError: The type has no columns, or names are not case-sensitive.

    >>> from eventide.common import Types
    >>> ParquetColumnarRowInputFormat(Types.ROW_NAMED(["user"], [Types.STRING()])).type_info
    ROW(user: STRING)
    """

    name: ClassVar[str] = "Parquet"
    row_type: TypeInformation[T_co] | None = None
    hadoop_config: object = None
    batch_size: int = _BATCH_ROWS
    is_utc_timestamp: bool = False
    is_case_sensitive: bool = True

    def __post_init__(self) -> None:
        if self.row_type is not None:
            check_columns("Parquet", self.row_type)
        if not self.is_case_sensitive:
            raise ProgramError("columns of Parquet files are found by their exact name; leave out is_case_sensitive")

    @property
    def type_info(self) -> TypeInformation[T_co] | None:
        return self.row_type

    def with_type_of(self, file: File) -> Self:
        with _opened(file) as parquet:
            return replace(self, row_type=type_of_columns(parquet.schema_arrow, file))

    def rows(self, file: File) -> int:
        with _opened(file) as parquet:
            return int(parquet.metadata.num_rows)

    def times(self, file: File, column: str) -> ColumnTimes | None:
        """The times of a column, from the statistics of row groups and reads of some; see :meth:`BulkFormat.times`."""

        def read(number: int) -> Array:
            with _opened(file) as parquet:
                values = parquet.read_row_group(number, columns=[column], use_threads=False).column(0)
                return values.combine_chunks()

        with _opened(file) as parquet:
            index = parquet.schema_arrow.get_field_index(column)
            if index < 0 or not tells_time(parquet.schema_arrow.field(index).type):
                return None
            kind = parquet.schema_arrow.field(index).type
            return ColumnTimes(kind, row_groups(parquet.metadata, column, kind), read)

    def read_rows(
        self, file: File, start: int, end: int, to_its_end: bool, type_info: TypeInformation
    ) -> Iterator[RecordBatch]:
        with _opened(file) as parquet:
            rows = parquet.metadata.num_rows
            if to_its_end or end > rows:
                check_rows(file, end, rows)
            names = names_to_read("Parquet", file, parquet.schema_arrow.names, type_info, self.row_type or type_info)
            for batch in self._batches(parquet, names, start, end):
                yield as_declared(file, columns_read(batch, names, type_info), type_info)

    def _batches(self, parquet: ParquetFile, names: list[str], start: int, end: int) -> Iterator[RecordBatch]:
        """The rows from one number to another, both counted over the whole file."""
        here = 0
        for group in range(parquet.metadata.num_row_groups):
            behind = here + parquet.metadata.row_group(group).num_rows
            if behind > start and here < end:
                size = min(self._rows_at_a_time(parquet.metadata, group, names), max(end - start, _FEW_ROWS))
                for batch in parquet.iter_batches(size, row_groups=[group], columns=names, use_threads=False):
                    skip, stop = max(start - here, 0), min(end - here, len(batch))
                    here += len(batch)
                    if skip < stop:
                        yield batch.slice(skip, stop - skip)
                    if here >= end:
                        return
            here = behind

    def _rows_at_a_time(self, metadata: FileMetaData, group: int, names: list[str]) -> int:
        """The number of rows of a batch, limited so that wide rows do not fill the memory."""
        rows = metadata.row_group(group)
        columns = [rows.column(i) for i in range(rows.num_columns)]
        size = sum(c.total_uncompressed_size for c in columns if c.path_in_schema.partition(".")[0] in set(names))
        return int(max(1, min(self.batch_size, _BATCH_BYTES * rows.num_rows // max(1, size))))


@contextmanager
def _opened(file: File) -> Iterator[ParquetFile]:
    import pyarrow.parquet as pq

    with file.reading(), file.random() as source:
        yield pq.ParquetFile(source, pre_buffer=True, coerce_int96_timestamp_unit="us")


class ParquetBulkWriters:
    """Makes writers of Parquet files, for ``FileSink.for_bulk_format``.

    >>> from eventide.common import Types
    >>> ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["user"], [Types.STRING()])).format
    'parquet'
    """

    @staticmethod
    def for_row_type(
        row_type: TypeInformation, hadoop_config: object = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """A writer of rows of a type; the other arguments are accepted for compatibility with PyFlink.

        A warning says that a ``hadoop_config`` has no effect. Points in time are always in UTC, regardless of
        ``utc_timestamp``.

        Raises:
            ProgramError: The type has no columns.
        """
        if hadoop_config is not None:
            has_no_effect("hadoop_config of ParquetBulkWriters", "Spark writes by the settings of its session")
        return BulkWriterFactory("parquet", check_columns("Parquet", row_type))
