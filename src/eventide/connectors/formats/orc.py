"""ORC files: read stripe by stripe in columns, and written by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from eventide.common.accepted import has_no_effect
from eventide.common.serialization import BulkWriterFactory
from eventide.common.type_variables import T_co
from eventide.common.typeinfo import TypeInformation
from eventide.connectors.file_system.files import File, check_rows
from eventide.connectors.file_system.format import (
    BulkFormat,
    as_declared,
    check_columns,
    columns_read,
    names_to_read,
    type_of_columns,
)
from eventide.errors import ProgramError

if TYPE_CHECKING:
    from pyarrow import DataType, RecordBatch
    from pyarrow.orc import ORCFile

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]


@dataclass(frozen=True)
class OrcColumnarRowInputFormat(BulkFormat[T_co]):
    """Reads ORC files stripe by stripe, and only those columns that are declared. Flink: the Java class of this name.

    Args:
        row_type: A row type with names, whose columns are found by name, or a tuple type, whose columns are the first
            of the file, by position. Without it, the type is that of the first file.

    Raises:
        ProgramError: The type has no columns.

    >>> from eventide.common import Types
    >>> OrcColumnarRowInputFormat(Types.ROW_NAMED(["user"], [Types.STRING()])).type_info
    ROW(user: STRING)
    """

    name: ClassVar[str] = "ORC"
    row_type: TypeInformation[T_co] | None = None

    def __post_init__(self) -> None:
        if self.row_type is not None:
            check_columns("ORC", self.row_type)

    @property
    def type_info(self) -> TypeInformation[T_co] | None:
        return self.row_type

    def with_type_of(self, file: File) -> Self:
        with _opened(file) as orc:
            return replace(self, row_type=type_of_columns(orc.schema, file))

    def rows(self, file: File) -> int:
        with _opened(file) as orc:
            return int(orc.nrows)

    def read_rows(
        self, file: File, start: int, end: int, to_its_end: bool, type_info: TypeInformation
    ) -> Iterator[RecordBatch]:
        with _opened(file) as orc:
            if to_its_end or end > orc.nrows:
                check_rows(file, end, orc.nrows)
            names = names_to_read("ORC", file, orc.schema.names, type_info, self.row_type or type_info)
            for batch in _stripes(orc, names, start, end):
                yield as_declared(file, columns_read(batch, names, type_info), type_info)


def _stripes(orc: ORCFile, names: list[str], start: int, end: int) -> Iterator[RecordBatch]:
    """The rows from one number to another, both counted over the whole file.

    The number of rows of a stripe is only known after reading one of its columns.
    """
    here = 0
    for stripe in range(orc.nstripes if start < end else 0):
        rows = len(orc.read_stripe(stripe, columns=names[:1])) if here < start else 0
        if here < start and here + rows <= start:
            here += rows
            continue
        batch = orc.read_stripe(stripe, columns=names)
        yield batch.slice(max(start - here, 0), min(end - here, len(batch)) - max(start - here, 0))
        here += len(batch)
        if here >= end:
            return


@contextmanager
def _opened(file: File) -> Iterator[ORCFile]:
    from pyarrow import orc

    with file.reading(), file.random() as source:
        yield orc.ORCFile(source)


class OrcBulkWriters:
    """Makes writers of ORC files, for ``FileSink.for_bulk_format``. PyFlink: ``OrcBulkWriters``.

    >>> from eventide.common import Types
    >>> OrcBulkWriters.for_row_type(Types.ROW_NAMED(["user"], [Types.STRING()])).format
    'orc'
    """

    @staticmethod
    def for_row_type(
        row_type: TypeInformation, writer_properties: object = None, hadoop_config: object = None
    ) -> BulkWriterFactory:
        """A writer of rows of a type; the other arguments have no effect, and a warning says so.

        Raises:
            ProgramError: The type has no columns, or has times of day, for which ORC has no type.
        """
        columns = check_columns("ORC", row_type)
        if _has_times_of_day(columns.arrow_type()):
            raise ProgramError(
                f"ORC has no type for times of day, which are in {row_type!r}; declare Types.STRING(), or "
                "Types.LONG() for a number of microseconds"
            )
        for name, given in (("writer_properties", writer_properties), ("hadoop_config", hadoop_config)):
            if given is not None:
                has_no_effect(f"{name} of OrcBulkWriters", "Spark writes by the settings of its session")
        return BulkWriterFactory("orc", columns)


def _has_times_of_day(kind: DataType) -> bool:
    import pyarrow as pa

    parts: list[DataType] = []
    if pa.types.is_struct(kind):
        parts = [field.type for field in kind]
    elif pa.types.is_list(kind):
        parts = [kind.value_type]
    elif pa.types.is_map(kind):
        parts = [kind.key_type, kind.item_type]
    return bool(pa.types.is_time(kind)) or any(map(_has_times_of_day, parts))
