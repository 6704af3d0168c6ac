"""Files as stretches: read ahead by a thread for each of two files, in the order of their paths."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from eventide.advisor.arrivals import ColumnRoles, Stretches, in_order
from eventide.advisor.meter import Stretch
from eventide.advisor.progress import Watch
from eventide.common.typeinfo import RowTypeInfo
from eventide.connectors.file_system import FileSource
from eventide.connectors.file_system.files import FileTree
from eventide.errors import ProgramError

_FORMATS: dict[str, Callable[..., Any]] = {
    "parquet": FileSource.parquet,
    "orc": FileSource.orc,
    "csv": FileSource.csv,
    "json": FileSource.json_lines,
}
_ENDINGS = {"jsonl": "json", "ndjson": "json", "pq": "parquet"}
_COMPRESSED = {"gz", "bz2", "zst", "zstd", "lz4", "snappy"}
_AT_ONCE = 2
_AHEAD = 4
_PAUSE_S = 0.1


def read_files(paths: Sequence[str], columns: ColumnRoles, format: str | None, watch: Watch) -> Iterator[Stretch]:
    """The rows of the files below some paths.

    Args:
        paths: files and directories: local paths, or URIs that Arrow knows.
        columns: which columns say what.
        format: "parquet", "orc", "csv" or "json"; None: the ending of the first file says it.
        watch: is told how far it is.

    Raises:
        ProgramError: if there are no files, the format is not known, or a column is not there.
        DataError: if a file cannot be read, or a column does not say what it should.
    """
    source = _source(paths, columns, format)
    parts = sorted(source.parts({}))
    ends = source.ends(parts)
    watch.expect(len(parts))
    made = Stretches(columns)

    def read(part: str) -> Iterator[Stretch]:
        for batch in source.read(part, 0, ends[part]):
            yield made.of(batch)

    with closing(_ahead(parts, read, watch)) as stretches:
        if columns.order_by is None:
            yield from stretches
            return
        for stretch in in_order(stretches):
            yield stretch if made.order_is_time else replace(stretch, clock=None)


def _source(paths: Sequence[str], columns: ColumnRoles, format: str | None) -> FileSource:
    found = list(FileTree(paths).list())
    if not found:
        raise ProgramError(f"there are no files below {', '.join(paths)}; name files, or a directory that has some")
    source: FileSource = _FORMATS[_format(found[0], format)](*paths).build()
    produced = source.get_produced_type()
    there = produced.field_names if isinstance(produced, RowTypeInfo) else []
    missing = [name for name in columns.names if name not in there]
    if missing:
        raise ProgramError(f"the file {found[0]} has no column {missing[0]!r}; it has {', '.join(there) or 'none'}")
    return source.with_columns(columns.names)


def _format(path: str, declared: str | None) -> str:
    if declared in _FORMATS:
        return declared
    if declared is not None:
        raise ProgramError(f"format: expected one of {', '.join(map(repr, _FORMATS))}, got {declared!r}")
    endings = path.rpartition("/")[2].lower().split(".")[1:]
    found = next((_ENDINGS.get(one, one) for one in reversed(endings) if one not in _COMPRESSED), "")
    if found not in _FORMATS:
        raise ProgramError(
            f"the name of {path} does not end with the name of a format; say which it is: format= (--format), one of "
            f"{', '.join(_FORMATS)}"
        )
    return found


def _ahead(parts: Sequence[str], read: Callable[[str], Iterator[Stretch]], watch: Watch) -> Generator[Stretch]:
    """Read each part, in the order of parts, while some of them are read further in threads."""
    stop = threading.Event()
    waiting = list(reversed(parts))
    reading: list[queue.Queue[Stretch | BaseException | None]] = []

    def run(part: str, into: queue.Queue[Stretch | BaseException | None]) -> None:
        try:
            for stretch in read(part):
                if not _put(into, stretch, stop):
                    return
            _put(into, None, stop)
        except BaseException as error:  # which is raised again where somebody waits for it
            _put(into, error, stop)

    try:
        while waiting or reading:
            while waiting and len(reading) < _AT_ONCE:
                into: queue.Queue[Stretch | BaseException | None] = queue.Queue(_AHEAD)
                threading.Thread(target=run, args=(waiting.pop(), into), name="eventide advise", daemon=True).start()
                reading.append(into)
            got = reading[0].get()
            if isinstance(got, BaseException):
                raise got
            if got is None:
                del reading[0]
                watch.file_read()
            else:
                watch.rows_read(len(got.times))
                yield got
    finally:
        stop.set()


def _put(into: queue.Queue[Any], item: Any, stop: threading.Event) -> bool:
    """Whether there was place for it before the reader stopped."""
    while not stop.is_set():
        try:
            into.put(item, timeout=_PAUSE_S)
        except queue.Full:
            continue
        return True
    return False
