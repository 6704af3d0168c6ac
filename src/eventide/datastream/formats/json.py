"""JSON: files with an object in each line, read by Arrow and written by Spark; and messages, each an object."""

from __future__ import annotations

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
    names_of,
    type_of_columns,
)
from eventide.datastream.connectors.file_system._files import File
from eventide.datastream.connectors.file_system._format import BLOCK, StreamFormat
from eventide.datastream.connectors.file_system._sink import BulkWriterFactory
from eventide.datastream.formats._json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JsonBulkWriters", "JsonReaderFormat", "JsonRowDeserializationSchema", "JsonRowSerializationSchema"]


@dataclass(frozen=True)
class JsonReaderFormat(StreamFormat):
    """Reads files with a JSON object in each line. Not in PyFlink, which reads JSON from messages only.

    A field that an object does not have is None; one that is not declared is passed over. A point in time is text in
    ISO 8601, in UTC where it has no zone.

    Args:
        row_type: A row type with names. Without it, the type is what the beginning of the first file suggests.

    Raises:
        ProgramError: The type is no row with names, or a part of it is a map.

    >>> from eventide.common import Types
    >>> JsonReaderFormat(Types.ROW_NAMED(["user"], [Types.STRING()])).type_info
    ROW(user: STRING)
    """

    row_type: TypeInformation | None = None

    def __post_init__(self) -> None:
        if self.row_type is not None:
            if names_of(check_columns("JSON", self.row_type)) is None:
                raise ProgramError(f"the fields of JSON have names; declare Types.ROW_NAMED, not {self.row_type}")
            for field in self.row_type.arrow_type():
                _as_parsed(field.type)

    @property
    def type_info(self) -> TypeInformation | None:
        """The type of the rows; None while it is still to be found in a file."""
        return self.row_type

    def resolved(self, first: File | None) -> JsonReaderFormat:
        """With fields as the beginning of the first file suggests, if none were declared; see :class:`FileFormat`."""
        if self.row_type is not None:
            return self
        if first is None:
            raise ProgramError(
                "there is no JSON file yet whose fields could be taken; declare them, such as "
                "type_info=Types.ROW_NAMED([...], [...])"
            )
        with first.reading(), first.stream() as stream:
            found = _parsed(next(_whole_lines(stream)), None)
            return replace(self, row_type=type_of_columns(found.schema, first))

    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        """The rows of a file that has been opened; see :meth:`FileFormat.read`."""
        import pyarrow as pa

        struct = check_columns("JSON", type_info).arrow_type()
        schema = pa.schema([f.with_type(_as_parsed(f.type)) for f in struct])
        before = 0
        for block in _whole_lines(stream):
            try:
                table = _parsed(block, schema)
            except pa.ArrowInvalid as error:
                text = _with_rows_from(before, str(error))
                name = _culprit(block, schema)
                if name is None:
                    raise pa.ArrowInvalid(text) from error
                raise bad_column(file, name, struct.field(name).type, text) from error
            before += block.count(b"\n")
            for batch in table.to_batches():
                yield as_declared(file, [batch.column(name) for name in schema.names], type_info)


def _whole_lines(stream: pa.NativeFile) -> Iterator[bytes]:
    """The bytes of a file in large blocks that end with a line."""
    rest = b""
    while block := stream.read(BLOCK):
        lines, end, behind = block.rpartition(b"\n")
        if end:
            yield rest + lines + end
            rest = behind
        else:
            rest += behind
    if rest:
        yield rest


def _with_rows_from(first: int, text: str) -> str:
    """A message in which rows are counted from the beginning of the file."""
    return re.sub(r"\brow (\d+)", lambda found: f"row {int(found[1]) + first}", text)


def _parsed(block: bytes, schema: pa.Schema | None) -> pa.Table:
    import pyarrow as pa
    from pyarrow import json as pj

    behaviour = "infer" if schema is None else "ignore"
    return pj.read_json(
        pa.BufferReader(block),
        pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=behaviour),
    )


def _culprit(block: bytes, schema: pa.Schema) -> str | None:
    """The field that does not fit, if it is one, and not the JSON itself."""
    import pyarrow as pa

    try:
        _parsed(block, pa.schema([]))
    except pa.ArrowInvalid:
        return None
    for field in schema:
        try:
            _parsed(block, pa.schema([field]))
        except pa.ArrowInvalid:
            return str(field.name)
    return None


def _as_parsed(wanted: pa.DataType, inside: bool = False) -> pa.DataType:
    """The type in which Arrow's JSON reader is asked for a value: dates and times of day are text there."""
    import pyarrow as pa

    if pa.types.is_map(wanted):
        raise ProgramError("JSON has objects, not maps; declare Types.ROW_NAMED with the fields that you need")
    if inside and pa.types.is_time(wanted):
        raise ProgramError("a time of day inside of a list or an object of JSON cannot be read; declare Types.STRING()")
    if pa.types.is_date(wanted) or pa.types.is_time(wanted):
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


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise no_such_name(__name__, name)
