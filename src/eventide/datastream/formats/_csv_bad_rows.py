"""Rows of CSV files that cannot be read, apart from all others: read as text first, and then as what was declared."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from eventide.datastream.connectors.file_system._files import File
from eventide.datastream.connectors.source import Unreadable
from eventide.datastream.formats._csv_schema import CsvSchema
from eventide.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.csv


class RowsApart:
    """Sorts out the rows of one file.

    Args:
        file: the file.
        schema: how it looks.
        typed: makes rows of a type of cells that are text, or raises; each cell is in quotes that needs some.
    """

    def __init__(self, file: File, schema: CsvSchema, typed: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        self._file = file
        self._schema = schema
        self._typed = typed
        self._before = int(schema.use_header) + int(schema.skip_first_data_row)
        self._ragged: list[int] = []
        self._waiting: list[Unreadable] = []
        self._at = 0

    def skip(self, row: pyarrow.csv.InvalidRow) -> str:
        """Take a row with too many cells, or too few; Arrow's reader asks what to do with it."""
        place = row.number - 1 - self._before
        self._ragged.append(place)
        wrong = f"the file {self._file.path} cannot be read: expected {row.expected_columns} columns, got"
        error = DataError(f"{wrong} {row.actual_columns}: {row.text}")
        self._waiting.append(Unreadable(error, row.text, self._file.path, place))
        return "skip"

    def sorted_out(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch | Unreadable]:
        """The rows of some cells, and those that cannot be read."""
        for batch in batches:
            places = [self._place() for _ in range(len(batch))]
            yield from self._halved(batch, places)
            yield from self._taken()
        yield from self._taken()

    def _place(self) -> int:
        """The number of the next row that has as many cells as it should."""
        while self._at in self._ragged:
            self._ragged.remove(self._at)
            self._at += 1
        self._at += 1
        return self._at - 1

    def _taken(self) -> Iterator[Unreadable]:
        waiting, self._waiting = self._waiting, []
        yield from waiting

    def _halved(self, cells: pa.RecordBatch, places: list[int]) -> Iterator[pa.RecordBatch | Unreadable]:
        """The rows of some cells; of halves, where one of them cannot be read, down to that one."""
        import pyarrow as pa

        if not len(cells):
            return
        try:
            rows = self._typed(cells)
        except (pa.ArrowInvalid, DataError) as error:
            if len(cells) == 1:
                wrong = error if isinstance(error, DataError) else DataError(str(error))
                yield Unreadable(wrong, self._line(cells), self._file.path, places[0])
                return
        else:
            yield rows
            return
        middle = len(cells) // 2
        yield from self._halved(cells.slice(0, middle), places[:middle])
        yield from self._halved(cells.slice(middle), places[middle:])

    def _line(self, cells: pa.RecordBatch) -> str:
        """A row as a line of the file, with quotes where they are needed."""
        schema, line = self._schema, io.StringIO()
        texts = [column[0].as_py().decode("utf-8", "backslashreplace") for column in cells.columns]
        quote = schema.quote_char
        if quote is None:
            return schema.column_separator.join(texts)
        csv.writer(line, delimiter=schema.column_separator, quotechar=quote, lineterminator="").writerow(texts)
        return line.getvalue()
