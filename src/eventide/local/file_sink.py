"""Writes the files of a sink without Spark, by Arrow, with Spark's contents and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from eventide.common.serialization import SerializationSchema
from eventide.common.typeinfo import CompositeTypeInfo, Types
from eventide.common.types import Row
from eventide.connectors.file_system.part_writer import ParquetFiles, TaskParts
from eventide.connectors.file_system.sink import (
    NO_LEFTOVERS,
    PartFiles,
    bucket_of,
    new_stage,
    used_by_another,
    used_twice,
)
from eventide.connectors.formats.csv import CsvRowSerializationSchema
from eventide.connectors.formats.csv_rows import Dialect
from eventide.connectors.formats.json import JsonRowSerializationSchema
from eventide.connectors.sink import FormatSink
from eventide.plan.job import JobPlan, SinkSpec
from eventide.storage import writing

Write = Callable[[SinkSpec, Sequence[Any], Any], None]
"""Writes the elements of a sink into an open file."""

_HIDDEN = ("_", ".")


@dataclass(frozen=True, slots=True)
class _Format:
    """How the files of a format are written: by what, with which ending, and the options that count."""

    write: Write
    ending: str
    options: frozenset[str] = frozenset()


def _write_text(spec: SinkSpec, values: Sequence[Any], file: Any) -> None:
    file.write("".join(f"{'' if line is None else line}\n" for line in values).encode())


def _write_json(spec: SinkSpec, values: Sequence[Any], file: Any) -> None:
    row_type, rows = _as_rows(spec, values)
    schema = JsonRowSerializationSchema(row_type)
    file.write(b"".join(schema.serialize(row) + b"\n" for row in rows))


def _write_csv(spec: SinkSpec, values: Sequence[Any], file: Any) -> None:
    (row_type, rows), options = _as_rows(spec, values), _options(spec)
    dialect = _dialect(options)
    schema: SerializationSchema = CsvRowSerializationSchema(row_type, dialect)
    header = dialect.line(row_type.field_names) if options.get("header", "").lower() == "true" else ""
    text = header + b"".join(schema.serialize(row) for row in rows).decode()
    file.write(text.encode(_encoding(options), errors="replace"))


def _encoding(options: Mapping[str, str]) -> str:
    return options.get("encoding", "UTF-8").upper()


def _dialect(options: Mapping[str, str]) -> Dialect:
    """Spark's options for lines of CSV; a quote is escaped by another quote, or by a given character."""
    quote, escape = options.get("quote", '"'), options.get("escape", "")
    return Dialect(
        delimiter=options.get("sep", ","),
        quote=quote or None,
        escape=None if escape in ("", quote) else escape,
        null=options.get("nullValue", ""),
        line_end=options.get("lineSep", "\n"),
    )


def _write_orc(spec: SinkSpec, values: Sequence[Any], file: object) -> None:
    from pyarrow import orc

    orc.write_table(_table(spec, values), file, compression="zstd")


_FORMATS = {
    "text": _Format(_write_text, ".txt"),
    "json": _Format(_write_json, ".json"),
    "csv": _Format(
        _write_csv, ".csv", frozenset({"sep", "quote", "escape", "nullValue", "lineSep", "header", "encoding"})
    ),
    "orc": _Format(_write_orc, ".zstd.orc"),
}


_ENCODINGS = ("UTF-8", "US-ASCII", "ISO-8859-1", "UTF-16BE", "UTF-16LE")
"""The encodings that Java and Python write alike."""


class LocalFiles:
    """Writes the elements of one sink: a file for each micro-batch that has elements for it.

    Args:
        spec: a sink whose files :func:`is_of_files` says that the local host can write.
        begun: the micro-batch that an earlier run began and did not finish; None if there is none.

    Raises:
        ProgramError: if its elements have no columns, or Arrow cannot open its directory.
    """

    def __init__(self, spec: SinkSpec, begun: int | None) -> None:
        spec.check_columns()
        self._spec = spec
        self._parts = PartFiles.at(_path(spec))
        self._stage = new_stage()
        self._leftovers = self._parts.leftovers(begun)

    def write(self, values: Sequence[Any], batch_id: int) -> None:
        """Write the elements of a micro-batch; a repeated micro-batch replaces its files."""
        parquet = _parquet(self._spec)
        written = self._write(values) if parquet is None else self._write_parquet(values, parquet)
        self._parts.commit(batch_id, self._stage, written, self._leftovers)
        self._leftovers = NO_LEFTOVERS

    def _write_parquet(self, values: Sequence[Any], files: ParquetFiles) -> dict[str, str]:
        with closing(TaskParts(self._parts, self._stage, files, _sink(self._spec).partition_by)) as parts:
            for batch in _table(self._spec, values).to_batches():
                parts.add(batch)
            return dict.fromkeys(parts.finish(), files.ending)

    def _write(self, values: Sequence[Any]) -> dict[str, str]:
        kind = _FORMATS[_sink(self._spec).format]
        written = {}
        for bucket, (spec, elements) in _by_bucket(self._spec, values).items():
            stage = f"{self._parts.path}/{self._stage}/{bucket}"
            path = f"{stage}0{kind.ending}"
            with writing(path):
                self._parts.file_system.create_dir(stage, recursive=True)
                with self._parts.file_system.open_output_stream(path, compression=None) as file:
                    kind.write(spec, elements, file)
            written[f"{bucket}0{kind.ending}"] = kind.ending
        return written


def _by_bucket(spec: SinkSpec, values: Sequence[Any]) -> dict[str, tuple[SinkSpec, Sequence[Any]]]:
    """The elements by the folders in which they are written, without the fields that name these."""
    buckets, row_type = _sink(spec).partition_by, spec.type_info
    if not buckets or not isinstance(row_type, CompositeTypeInfo):
        return {"": (spec, values)}
    names = row_type.field_names
    kept = [i for i, name in enumerate(names) if name not in buckets]
    rest = replace(spec, type_info=Types.ROW_NAMED([names[i] for i in kept], [row_type.field_types[i] for i in kept]))
    found: dict[str, list[Any]] = {}
    for value in values:
        bucket = bucket_of({name: value[names.index(name)] for name in buckets})
        found.setdefault(f"{bucket}/", []).append(Row(*(value[i] for i in kept)))
    return {bucket: (rest, found[bucket]) for bucket in sorted(found)}


def is_of_files(spec: SinkSpec) -> bool:
    """Whether a sink writes files of a format, and with options, that the local host knows."""
    sink = spec.sink
    if not isinstance(sink, FormatSink) or "path" not in sink.options:
        return False
    if sink.format not in _FORMATS:
        return _parquet(spec) is not None
    return {*_options(spec)} <= _FORMATS[sink.format].options and _encoding(_options(spec)) in _ENCODINGS


def refuse_used_directories(plan: JobPlan) -> None:
    """Refuse a directory of another job's output, and one directory for two sinks.

    Raises:
        ProgramError: naming the directory.
    """
    paths = [_path(spec) for spec in plan.sinks if is_of_files(spec)]
    for path in paths:
        if paths.count(path) > 1:
            raise used_twice(path)
        if any(not name.startswith(_HIDDEN) for name in PartFiles.at(path).names()):
            raise used_by_another(path)


def _sink(spec: SinkSpec) -> FormatSink:
    if not isinstance(spec.sink, FormatSink):
        raise TypeError(f"{spec.name!r} does not write files")
    return spec.sink


def _parquet(spec: SinkSpec) -> ParquetFiles | None:
    return ParquetFiles.of(_options(spec)) if _sink(spec).format == "parquet" else None


def _path(spec: SinkSpec) -> str:
    return _sink(spec).options["path"].rstrip("/")


def _options(spec: SinkSpec) -> dict[str, str]:
    return {name: value for name, value in _sink(spec).options.items() if name != "path"}


def _table(spec: SinkSpec, values: Sequence[Any]) -> pa.Table:
    column = spec.type_info.to_arrow([*values])
    if not pa.types.is_struct(column.type):
        return pa.table({"value": column})
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(column)])


def _as_rows(spec: SinkSpec, values: Sequence[Any]) -> tuple[CompositeTypeInfo, Sequence[Any]]:
    """Elements as rows: one without fields is the only field of its row."""
    if isinstance(spec.type_info, CompositeTypeInfo):
        return spec.type_info, values
    return Types.ROW_NAMED(["value"], [spec.type_info]), [Row(value) for value in values]
