"""JSON: files with an object in each line, read by Arrow and written by Spark; and messages, each an object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Self

from eventide.api.source import Unreadable
from eventide.common.typeinfo import TypeInformation
from eventide.common.types import Row
from eventide.connectors.file_system.files import File
from eventide.connectors.file_system.format import (
    BLOCK,
    StreamFormat,
    as_declared,
    bad_column,
    check_columns,
    good_and_bad,
    names_of,
    type_of_columns,
)
from eventide.connectors.file_system.sink import BulkWriterFactory
from eventide.connectors.formats._json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.errors import DataError, ProgramError, advised

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JsonBulkWriters", "JsonReaderFormat", "JsonRowDeserializationSchema", "JsonRowSerializationSchema"]


@dataclass(frozen=True)
class JsonReaderFormat(StreamFormat[Row]):
    """Reads files with a JSON object in each line. Not in PyFlink, which reads JSON from messages only.

    A missing field is None; an undeclared field is ignored. A point in time is text in ISO 8601, in UTC without a zone;
    bytes are text in base64. A field of an object that is a number may be the text ``NaN``, ``Infinity`` or
    ``-Infinity``.

    Args:
        row_type: A row type with names. Without it, the type is inferred from the beginning of the first file.

    Raises:
        ProgramError: The type is not a row with names, or a part of it is a map.

    >>> from eventide.common import Types
    >>> JsonReaderFormat(Types.ROW_NAMED(["user"], [Types.STRING()])).type_info
    ROW(user: STRING)
    """

    name: ClassVar[str] = "JSON"
    row_type: TypeInformation[Row] | None = None

    def __post_init__(self) -> None:
        if self.row_type is not None:
            if names_of(check_columns("JSON", self.row_type)) is None:
                raise ProgramError(f"the fields of JSON have names; declare Types.ROW_NAMED, not {self.row_type}")
            for field in self.row_type.arrow_type():
                _as_parsed(field.type)

    @property
    def type_info(self) -> TypeInformation[Row] | None:
        return self.row_type

    def with_type_of(self, file: File) -> Self:
        with file.reading(), file.stream() as stream:
            found = _parsed(next(_whole_lines(stream)), None)
            return replace(self, row_type=type_of_columns(found.schema, file))

    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        rows = _RowsOfLines(file, type_info)
        before = 0
        for block in _whole_lines(stream):
            try:
                batches = rows.of(block)
            except (pa.ArrowInvalid, DataError) as error:
                raise advised(rows.what_is_wrong(block, before, error)) from error
            before += block.count(b"\n")
            yield from batches

    def stream_sorted_out(
        self, file: File, stream: pa.NativeFile, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        import pyarrow as pa

        rows = _RowsOfLines(file, type_info)
        before = 0
        for block in _whole_lines(stream):
            try:
                yield from rows.of(block)
            except (pa.ArrowInvalid, DataError):
                yield from good_and_bad(block.split(b"\n"), rows.of_lines, rows.unreadable, before)
            before += block.count(b"\n")


class _RowsOfLines:
    """Reads rows of a type from the lines of a file."""

    def __init__(self, file: File, type_info: TypeInformation) -> None:
        import pyarrow as pa

        self._file = file
        self._type_info = type_info
        self._struct = check_columns("JSON", type_info).arrow_type()
        self._schema = pa.schema([f.with_type(_as_parsed(f.type)) for f in self._struct])

    def of(self, block: bytes) -> list[pa.RecordBatch]:
        """The rows of some lines.

        Raises:
            pa.ArrowInvalid: One is not JSON, or a field does not fit its type.
            DataError: A field does not fit its type.
        """
        return [
            as_declared(self._file, [batch.column(f.name) for f in self._struct], self._type_info, is_text=True)
            for table in _tables(block, self._schema)
            for batch in table.to_batches()
        ]

    def of_lines(self, lines: list[bytes]) -> list[pa.RecordBatch]:
        """The rows of lines without their ends; see :meth:`of`."""
        return self.of(b"\n".join([*lines, b""]))

    def unreadable(self, lines: list[bytes], before: int, error: Exception) -> Unreadable:
        """The first line, which cannot be read."""
        wrong, line = self.what_is_wrong(lines[0], before, error), lines[0].rstrip(b"\r")
        try:
            return Unreadable(wrong, line.decode(), self._file.path, before)
        except UnicodeDecodeError:
            return Unreadable(wrong, line, self._file.path, before)

    def what_is_wrong(self, block: bytes, before: int, error: Exception) -> DataError:
        """The error of lines that cannot be read, after ``before`` earlier lines."""
        if isinstance(error, DataError):
            return error
        text = _with_rows_from(before, str(error))
        name = _culprit(block, self._schema)
        if name is None:
            return DataError(f"the file {self._file.path} cannot be read: {text}")
        return bad_column(self._file, name, self._struct.field(name).type, text)


def _whole_lines(stream: pa.NativeFile) -> Iterator[bytes]:
    """The bytes of a file in large blocks that end with a line."""
    rest = b""
    while block := stream.read(BLOCK):
        lines, end, after = block.rpartition(b"\n")
        if end:
            yield rest + lines + end
            rest = after
        else:
            rest += after
    if rest:
        yield rest


def _with_rows_from(first: int, text: str) -> str:
    """A message in which rows are counted from the beginning of the file."""
    return re.sub(r"\brow (\d+)", lambda found: f"row {int(found[1]) + first}", text)


_NULL_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*null")
_NULL_LINE = re.compile(rb"\n[ \t\r]*null")


def _parsed(block: bytes, schema: pa.Schema | None) -> pa.Table:
    """A table of some lines, read by Arrow.

    Arrow reads ``null`` in place of an object as a row, and crashes if it comes first, so it is refused here.

    Raises:
        pa.ArrowInvalid: One is not JSON, not an object, or a field does not fit its type.
    """
    import pyarrow as pa
    from pyarrow import json as pj

    found = _NULL_FIRST.match(block) or _NULL_LINE.search(block)
    if found is not None:
        row = sum(1 for line in block[: found.end()].split(b"\n") if line.strip()) - 1
        raise pa.ArrowInvalid(f"JSON parse error: Column() changed from object to null in row {row}")
    behaviour = "infer" if schema is None else "ignore"
    return pj.read_json(
        pa.BufferReader(block),
        pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=behaviour),
    )


def _tables(block: bytes, schema: pa.Schema) -> list[pa.Table]:
    """Tables of some lines, read by Arrow; lines with a non-finite number, which is a text, are in separate tables.

    Raises:
        pa.ArrowInvalid: One is not JSON, or a field does not fit its type.
    """
    import pyarrow as pa

    try:
        return [_parsed(block, schema)]
    except pa.ArrowInvalid:
        if not any(text in block for text in _NOT_FINITE):
            raise
    numbers = [field.name for field in schema if pa.types.is_floating(field.type)]
    tables, before = [], 0
    for texts, some in groupby(filter(bytes.strip, block.split(b"\n")), partial(_not_finite, numbers)):
        lines = [*some]
        fields = [field.with_type(pa.string()) if field.name in texts else field for field in schema]
        try:
            tables.append(_parsed(b"\n".join(lines), pa.schema(fields)))
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(_with_rows_from(before, str(error))) from error
        before += len(lines)
    return tables


_NOT_FINITE = (b'"NaN"', b'"Infinity"', b'"-Infinity"')


def _not_finite(names: list[str], line: bytes) -> set[str]:
    """The fields of a line that are the text of a non-finite number."""
    if not any(text in line for text in _NOT_FINITE):
        return set()
    try:
        found = json.loads(line)
    except ValueError:
        return set()
    return {name for name in names if isinstance(found, dict) and f'"{found.get(name)}"'.encode() in _NOT_FINITE}


def _culprit(block: bytes, schema: pa.Schema) -> str | None:
    """The field that does not fit, unless the JSON itself is invalid."""
    import pyarrow as pa

    try:
        _parsed(block, pa.schema([]))
    except pa.ArrowInvalid:
        return None
    for field in schema:
        try:
            _tables(block, pa.schema([field]))
        except pa.ArrowInvalid:
            return str(field.name)
    return None


def _as_parsed(wanted: pa.DataType, inside: bool = False) -> pa.DataType:
    """The type that Arrow's JSON reader reads a value as: dates, times of day and bytes are text."""
    import pyarrow as pa

    if pa.types.is_map(wanted):
        raise ProgramError("JSON has objects, not maps; declare Types.ROW_NAMED with the fields that you need")
    if inside and (pa.types.is_time(wanted) or pa.types.is_binary(wanted)):
        what = "a time of day" if pa.types.is_time(wanted) else "bytes"
        raise ProgramError(f"{what} inside of a list or an object of JSON cannot be read; declare Types.STRING()")
    if pa.types.is_date(wanted) or pa.types.is_time(wanted) or pa.types.is_binary(wanted):
        return pa.string()
    if pa.types.is_list(wanted):
        return pa.list_(_as_parsed(wanted.value_type, inside=True))
    if pa.types.is_struct(wanted):
        return pa.struct([field.with_type(_as_parsed(field.type, inside=True)) for field in wanted])
    return wanted


class JsonBulkWriters:
    """Makes writers of files with a JSON object in each line, for ``FileSink.for_bulk_format``. Not in PyFlink.

    >>> from eventide.common import Types
    >>> JsonBulkWriters.for_row_type(Types.ROW_NAMED(["user"], [Types.STRING()])).format
    'json'
    """

    @staticmethod
    def for_row_type(row_type: TypeInformation) -> BulkWriterFactory:
        """A writer of rows of a type.

        Raises:
            ProgramError: The type has no columns.
        """
        return BulkWriterFactory("json", check_columns("JSON", row_type))
