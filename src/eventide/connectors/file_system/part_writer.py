"""Part files that tasks write themselves from columns: in Parquet, with Spark's types and names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from eventide.common.typeinfo.base import one_array
from eventide.connectors.file_system.sink import PartFiles, bucket_of
from eventide.storage import writing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

_GROUP_BYTES = 64 << 20
"""The number of bytes of rows that are buffered until a row group of each file is written."""
_MOST_OPEN = 100
"""The greatest number of open files: a process may not have many more, and each needs memory."""

_ENDINGS = {
    **{"none": "", "uncompressed": "", "snappy": ".snappy", "gzip": ".gz", "zstd": ".zstd"},
    **{"brotli": ".br", "lz4_raw": ".lz4raw"},
}
"""The parts of file names, by Spark's name of the compression."""
_INT96, _MICROS = "INT96", "TIMESTAMP_MICROS"


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Settings of Parquet files, which equal Spark's files for any reader.

    Attributes:
        compression: one of Spark's names, such as ``snappy``.
        timestamps: how points in time are stored: Spark's ``outputTimestampType``, without its milliseconds.
    """

    compression: str = "snappy"
    timestamps: str = _INT96

    @staticmethod
    def of(options: Mapping[str, str], timestamps: str = _INT96, compression: str = "snappy") -> ParquetFiles | None:
        """The settings for some options of Spark's writer; None for options that only Spark supports.

        >>> ParquetFiles.of({"compression": "GZIP"}), ParquetFiles.of({"parquet.page.size": "1000"})
        (ParquetFiles(compression='gzip', timestamps='INT96'), None)
        """
        named = {name.lower(): value.lower() for name, value in options.items()}
        chosen = named.pop("compression", named.pop("parquet.compression", compression.lower()))
        if named or chosen not in _ENDINGS or timestamps not in (_INT96, _MICROS):
            return None
        return ParquetFiles(chosen, timestamps)

    @property
    def ending(self) -> str:
        """The suffix of the files."""
        return f"{_ENDINGS[self.compression]}.parquet"

    def writer(self, stream: object, schema: pa.Schema) -> ParquetWriter:
        """A writer of one file."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        if self.timestamps != _INT96:
            schema = pa.schema([field.with_type(_in_utc(field.type)) for field in schema])
        name = {"uncompressed": "none", "lz4_raw": "lz4"}.get(self.compression, self.compression)
        return ParquetWriter(
            stream,
            schema,
            compression=name,
            store_decimal_as_integer=True,
            store_schema=False,
            use_deprecated_int96_timestamps=self.timestamps == _INT96,
        )


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """A type whose points in time have the zone UTC, in which all are."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_utc(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_in_utc(kind.key_type), _in_utc(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_utc(field.type)) for field in kind])
    return kind


class TaskParts:
    """Part files of one task in the hidden directory of a sink.

    Rows are buffered until there are enough for a row group. If fields name folders, each folder has a file; with many
    folders, some have several.

    Args:
        parts: the directory of the sink.
        stage: the name of the hidden directory.
        files: how files are written.
        buckets: the fields whose values name folders.

    Raises:
        StorageError: if a file cannot be written.
    """

    def __init__(self, parts: PartFiles, stage: str, files: ParquetFiles, buckets: Sequence[str]) -> None:
        self._place = f"{parts.path}/{stage}"
        self._file_system = parts.file_system
        self._files = files
        self._buckets = buckets
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._open: dict[str, ParquetWriter] = {}
        self._unfinished = ExitStack()
        self._names: list[str] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        if len(rows):
            self._held.append(rows)
            self._held_bytes += rows.nbytes
        if self._held_bytes >= _GROUP_BYTES:
            self._write()

    def finish(self) -> list[str]:
        """Write the buffered rows, and return the names of all files, below the hidden directory.

        They are sorted by their folders, and within a folder by the order of their rows.
        """
        self._write()
        self._complete()
        return sorted(self._names, key=lambda name: name.rpartition("/")[0])

    def close(self) -> None:
        """Abandon unfinished files, whose names are never reported."""
        with suppress(Exception):
            self._complete()

    def _write(self) -> None:
        import pyarrow as pa

        if not self._held:
            return
        rows = by_folder(pa.Table.from_batches(self._held), self._buckets)
        self._held, self._held_bytes = [], 0
        with writing(self._place):
            for folder, some in rows:
                if folder not in self._open:
                    if len(self._open) >= _MOST_OPEN:
                        self._complete()
                    self._open[folder] = self._new_file(folder, some.schema)
                writer = self._open[folder]
                writer.write_table(some.cast(writer.schema))

    def _new_file(self, folder: str, schema: pa.Schema) -> ParquetWriter:
        name = f"{folder}{uuid.uuid4().hex}{self._files.ending}"
        self._file_system.create_dir(f"{self._place}/{folder}".rstrip("/"), recursive=True)
        stream = self._file_system.open_output_stream(f"{self._place}/{name}", compression=None)
        self._unfinished.enter_context(stream)
        self._names.append(name)
        return self._unfinished.enter_context(self._files.writer(stream, schema))

    def _complete(self) -> None:
        self._open.clear()
        with writing(self._place):
            self._unfinished.close()


def by_folder(rows: pa.Table, buckets: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each folder in their order, without the fields that name it.

    >>> import pyarrow as pa
    >>> sales = pa.table({"shop": ["a", "b", "a"], "price": [1, 2, 3]})
    >>> [(folder, rows.to_pydict()) for folder, rows in by_folder(sales, ["shop"])]
    [('shop=a/', {'price': [1, 3]}), ('shop=b/', {'price': [2]})]
    """
    if not buckets:
        yield "", rows
        return
    import numpy as np
    import pyarrow as pa

    numbers = np.zeros(len(rows), np.int64)
    for name in buckets:
        values = one_array(rows.column(name))
        if pa.types.is_string(values.type):
            values = values.fill_null("")  # both have the same folder
        found = values.dictionary_encode(null_encoding="encode")
        if numbers.any():
            found = pa.array(numbers * len(found.dictionary) + found.indices.to_numpy()).dictionary_encode()
        numbers = found.indices.to_numpy().astype(np.int64)
    order, rest = np.arange(len(rows)), rows.drop_columns(list(buckets))
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, rest = numbers[order], rest.take(order)
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    for begin, end in pairwise([*begins, len(rows)]):
        folder = bucket_of({name: rows.column(name)[order[begin]].as_py() for name in buckets})
        yield f"{folder}/", rest.slice(begin, end - begin)
