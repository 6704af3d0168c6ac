"""Part files of a file sink put together: few large ones in place of one for each task and micro-batch.

A job writes files of its present micro-batch alone. So those of earlier ones can be put together while it runs, and
what makes it exactly once stays as it is: a micro-batch that is repeated replaces its own files, and no others.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from eventide.common.checksum import with_checksum, without_checksum
from eventide.connectors.file_system.sink import PartFiles
from eventide.errors import DataError, ProgramError, StateError
from eventide.storage import synced, writing

if TYPE_CHECKING:
    import pyarrow as pa

_HIDDEN = "_compacting"
_PLAN = f"{_HIDDEN}/plan.json"
_PART = re.compile(r"(?P<bucket>(?:.*/)?)part-(?P<batch>\d+)-\d+\.(?P<ending>.+)")
_PIECE = 8 * 2**20
_LONGEST_HEADER = 2**20
_ROW_GROUP_BYTES = 64 * 2**20
_LINES = {"json", "txt", "csv"}
_FIRST_LINE = re.compile(rb'(?:[^"\n]|"[^"]*")*\n')


@dataclass(frozen=True, slots=True)
class Compacted:
    """Outcome of a compaction: how many part files there were, and how many there are now."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """Files that become one: the name and the size of the merged file, and of the files, in their order."""

    merged: str
    size: int
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Compaction:
    """Merges the part files of a directory, in each of its folders in the order of micro-batches.

    The files of the newest micro-batch are not touched, as it may not be committed yet; all earlier ones are. A merged
    file replaces the first of its files in one step; then the others are deleted. The next compaction finishes a killed
    one. If two run at once, one of them stops.

    Args:
        parts: the directory.
        target_bytes: the size at which a file is large enough.
        header: whether CSV files begin with a line of names; None if that is not known, and CSV is refused.
    """

    parts: PartFiles
    target_bytes: int
    header: bool | None = None

    def run(self) -> Compacted:
        """Merge the files.

        Raises:
            ProgramError: if there is no directory, or files are of a format that cannot be merged.
            DataError: if files that belong together differ in their columns.
            StateError: if the plan of an interrupted compaction is damaged, or another one runs at the same time.
            StorageError: if the disk is full.
        """
        if not self.parts.exists():
            raise ProgramError(f"there is no directory at {self.parts.path}; give the one that a file sink writes into")
        self._finish()
        names = {name: found for name in self.parts.names() if (found := _PART.fullmatch(name))}
        groups = list(self._groups(names))
        for group in groups:
            self._check(group[0], names[group[0]]["ending"])
        for group in groups:
            self._merge(group)
        return Compacted(len(names), len(names) - sum(len(group) - 1 for group in groups))

    def _groups(self, names: Mapping[str, re.Match[str]]) -> Iterator[list[str]]:
        """Files that become one: small neighbours in one folder and of one format."""
        batches = {name: int(found["batch"]) for name, found in names.items()}
        newest = max(batches.values(), default=0)
        by_kind: dict[tuple[str, str], list[str]] = {}
        for name, found in names.items():
            if batches[name] < newest:
                by_kind.setdefault((found["bucket"], found["ending"]), []).append(name)
        for of_kind in by_kind.values():
            group: list[str] = []
            size = 0
            for name in sorted(of_kind, key=lambda name: (batches[name], name)):
                bytes_ = self._size(name)
                if size + bytes_ > self.target_bytes:
                    yield from [group] if len(group) > 1 else []
                    group, size = [], 0
                group.append(name)
                size += bytes_
            yield from [group] if len(group) > 1 else []

    def _check(self, name: str, ending: str) -> None:
        """Check that files of a format can be merged.

        Raises:
            ProgramError: if they cannot.
        """
        *_, last = kinds = ending.split(".")
        if last == "parquet" or (kinds[0] in _LINES - {"csv"} and kinds[1:] in ([], ["gz"])):
            return
        if kinds != ["csv"]:
            raise ProgramError(
                f"{name} has a format whose files cannot be merged; only Parquet, uncompressed JSON, text and CSV, and "
                "gzipped JSON and text can"
            )
        if self.header is None:
            raise ProgramError("say with --header or --no-header whether the CSV files begin with a line of names")

    def _merge(self, group: Sequence[str]) -> None:
        file_system, path = self.parts.file_system, self.parts.path
        sizes = {name: self._size(name) for name in group}
        merged = f"{_HIDDEN}/merged-{uuid.uuid4().hex}"
        try:
            file_system.create_dir(f"{path}/{_HIDDEN}", recursive=True)
            with writing(f"{path}/{merged}"), file_system.open_output_stream(f"{path}/{merged}") as stream:
                if group[0].endswith(".parquet"):
                    self._merge_tables(group, stream)
                else:
                    self._merge_lines(group, stream)
            synced(file_system, f"{path}/{merged}")
            plan = _Plan(merged, self._size(merged), sizes)
            with writing(f"{path}/{_PLAN}"), file_system.open_output_stream(f"{path}/{_PLAN}") as stream:
                stream.write(with_checksum(json.dumps(asdict(plan)).encode()))
            self._carry_out(plan)
            self.parts.delete_folder(_HIDDEN)
        except FileNotFoundError as error:
            raise self._another(f": {error}") from error

    def _carry_out(self, plan: _Plan) -> None:
        """Replace the first of its files with a merged file, and delete the others.

        Raises:
            StateError: if another compaction has changed one of them.
        """
        first, *others = plan.sizes
        there = self._sizes_of(plan)
        if plan.merged.rpartition("/")[2] in self.parts.names(_HIDDEN):
            if there != plan.sizes:
                raise self._another()
            self.parts.move(plan.merged, first, may_replace=True)
        elif there.get(first) != plan.size:
            raise self._another()
        for name in others:
            if name in there:
                self.parts.delete(name)

    def _is_void(self, plan: _Plan, hidden: Sequence[str]) -> bool:
        """Whether the files of a merged file have changed, because another compaction has merged them."""
        is_there = plan.merged.rpartition("/")[2] in hidden
        return is_there and self._sizes_of(plan) != plan.sizes

    def _sizes_of(self, plan: _Plan) -> dict[str, int]:
        return {name: self._size(name) for name in self.parts.names() if name in plan.sizes}

    def _another(self, saying: str = "") -> StateError:
        return StateError(
            f"another compaction has changed the files in {self.parts.path}{saying}; nothing is lost: let it end, and "
            "run one at a time"
        )

    def _finish(self) -> None:
        """Finish a planned compaction; an incomplete plan is ignored."""
        if _HIDDEN not in self.parts.folders():
            return
        hidden = self.parts.names(_HIDDEN)
        if _PLAN.rpartition("/")[2] in hidden:
            plan, has_merged = self._planned(), len(hidden) > 1
            if plan is not None and not self._is_void(plan, hidden):
                self._carry_out(plan)
            elif has_merged:
                self.parts.delete(_PLAN)  # before what it is of: one without that has been carried out
            else:
                raise StateError(
                    f"{self.parts.path}/{_PLAN} is not as it was written, and a merged file has taken the place of the "
                    "first file in that list already: those after it are there twice. Put a copy of it back, or delete "
                    f"them and {self.parts.path}/{_HIDDEN}"
                )
        self.parts.delete_folder(_HIDDEN)

    def _planned(self) -> _Plan | None:
        """The plan; None if it is incomplete or damaged."""
        with self.parts.file_system.open_input_stream(f"{self.parts.path}/{_PLAN}") as stream:
            stored = stream.read()
        try:
            return _Plan(**json.loads(without_checksum(stored) or b""))
        except (ValueError, TypeError):
            return None

    def _merge_lines(self, group: Sequence[str], stream: pa.NativeFile) -> None:
        """Write all lines of some files, with one header.

        Raises:
            DataError: if the headers of CSV files differ, or have no end.
        """
        header = self._header_of(group[0]) if self.header and group[0].endswith(".csv") else b""
        for number, name in enumerate(group):
            last = b"\n"
            with self.parts.file_system.open_input_stream(f"{self.parts.path}/{name}", compression=None) as source:
                if number and source.read(len(header)) not in (header, b""):
                    raise DataError(
                        f"the header of {name} is not that of {group[0]}, so both stay as they are; if the files have "
                        "none, say --no-header"
                    )
                while piece := source.read(_PIECE):
                    stream.write(piece)
                    last = piece[-1:]
            if last != b"\n" and not name.endswith(".gz"):
                stream.write(b"\n")

    def _header_of(self, name: str) -> bytes:
        """The first line of a CSV file, with its end; a name in quotes may have line ends."""
        with self.parts.file_system.open_input_stream(f"{self.parts.path}/{name}", compression=None) as source:
            found = _FIRST_LINE.match(source.read(_LONGEST_HEADER))
        if found is not None:
            return found[0]
        raise DataError(
            f"the header of {name} has no line feed at its end, so the file stays as it is; if the files "
            "have none, say --no-header"
        )

    def _merge_tables(self, group: Sequence[str], stream: pa.NativeFile) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._open_table(group[0]) as file:
            layout, schema, compression = _layout(file), file.schema_arrow, _compression(file)
        waiting: list[pa.Table] = []
        waiting_bytes = 0
        with pq.ParquetWriter(
            stream,
            schema,
            compression=compression,
            use_deprecated_int96_timestamps="INT96" in {physical for *_, physical in layout},
            store_decimal_as_integer=any("Decimal" in logical and "INT" in physical for _, logical, physical in layout),
        ) as writer:
            for name in group:
                with self._open_table(name) as file:
                    if _layout(file) != layout:
                        raise DataError(f"the columns of {name} are not those of {group[0]}, so both stay as they are")
                    for number in range(file.num_row_groups):
                        waiting.append(file.read_row_group(number))
                        waiting_bytes += waiting[-1].nbytes
                        if waiting_bytes >= _ROW_GROUP_BYTES:
                            writer.write_table(pa.concat_tables(waiting))
                            waiting, waiting_bytes = [], 0
            if waiting:
                writer.write_table(pa.concat_tables(waiting))

    @contextmanager
    def _open_table(self, name: str) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with self.parts.file_system.open_input_file(f"{self.parts.path}/{name}") as source:
            yield pq.ParquetFile(source, coerce_int96_timestamp_unit="us")

    def _size(self, name: str) -> int:
        return int(self.parts.file_system.get_file_info(f"{self.parts.path}/{name}").size or 0)


def _layout(file: Any) -> list[tuple[str, str, str]]:
    """The columns of a Parquet file: path, logical and physical type."""
    columns = (file.schema.column(i) for i in range(len(file.schema)))
    return [(column.path, str(column.logical_type), column.physical_type) for column in columns]


def _compression(file: Any) -> str:
    has_some = file.num_row_groups and file.metadata.row_group(0).num_columns
    found = file.metadata.row_group(0).column(0).compression if has_some else "SNAPPY"
    return "NONE" if found == "UNCOMPRESSED" else str(found)
