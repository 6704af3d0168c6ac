"""Formats of a file source: where a file ends, how many rows it has, and how they are read."""

from __future__ import annotations

import codecs
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Self

from eventide.api.source import Unreadable
from eventide.common.typeinfo import TypeInformation, Types
from eventide.connectors.file_system.columns import ColumnTimes
from eventide.connectors.file_system.files import File, check_size
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 4 * 1024 * 1024
"""How many bytes of a text are handled at a time."""


class FileFormat(ABC):
    """How a file becomes rows. It is described in the program, and carried out where files are planned and read.

    A position in a file is 0 at its beginning; each format decides what it counts from there.
    """

    name: ClassVar[str] = ""
    """The name of the format, for errors."""

    cuts: ClassVar[bool] = False
    """Whether a file may be read in several micro-batches."""

    @property
    @abstractmethod
    def type_info(self) -> TypeInformation | None:
        """The type of the rows; None while it is still to be found in a file."""

    def resolved(self, first: File | None) -> Self:
        """Return the format with its type known, from the first file if it was not declared.

        Raises:
            ProgramError: if there is no file to find it in.
            DataError: if that file cannot be read.
        """
        if self.type_info is not None:
            return self
        if first is None:
            raise ProgramError(
                f"there is no {self.name} file yet whose columns could be taken; declare them, such as "
                "type_info=Types.ROW_NAMED([...], [...])"
            )
        return self.with_type_of(first)

    def with_type_of(self, file: File) -> Self:
        """Return the format with the type that a file has, or that its beginning suggests."""
        return self

    @abstractmethod
    def end(self, size: int, rows: Callable[[], int]) -> int:
        """The position after a file of a size in bytes, and a number of rows, which is found out only if asked for."""

    @abstractmethod
    def rows(self, file: File) -> int:
        """How many rows a file has; where that is dear to know, how many lines."""

    @abstractmethod
    def read(self, file: File, start: int, end: int, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        """The rows between two positions, with exactly the columns and the Arrow types of a type.

        Args:
            file: the file.
            start: the position of the first row.
            end: the position after the last one.
            type_info: the type of :attr:`type_info`, or fewer of its columns.

        Raises:
            DataError: naming the file, if it is gone, has changed, or has something that does not fit the type.
        """

    def sorted_out(
        self, file: File, start: int, end: int, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        """Read for a program that wants dead letters: rows that cannot be read, if there may be any, are `Unreadable`.

        By default, a file can be read as a whole or not at all.
        """
        return self.read(file, start, end, type_info)


class BulkFormat(FileFormat):
    """A format of columns, which can be read from any row on, in large batches. Flink: ``BulkFormat``.

    A position counts half rows: what stands before a row is even, and the end of a file is odd, so that it is not
    taken for a row of a file that has been replaced by a longer one.
    """

    cuts: ClassVar[bool] = True

    def end(self, size: int, rows: Callable[[], int]) -> int:
        """Half a row after the last."""
        return 2 * rows() + 1

    def position(self, row: int) -> int:
        """The position before a row, counted from 0."""
        return 2 * row

    def times(self, file: File, column: str) -> ColumnTimes | None:
        """The times of a column of a file, to find positions by; None, as by default, where that takes reading it all.

        Raises:
            DataError: naming the file, if it is gone or cannot be read.
        """
        return None

    def row(self, position: int) -> int:
        """How many rows come before a position."""
        return position // 2

    def read(self, file: File, start: int, end: int, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        return self.read_rows(file, self.row(start), self.row(end), bool(end % 2), type_info)

    @abstractmethod
    def read_rows(
        self, file: File, start: int, end: int, to_its_end: bool, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch]:
        """The rows from one to another; ``to_its_end`` says that the file must have ``end`` rows in all."""


class StreamFormat(FileFormat):
    """A format of lines, which is read from a file's beginning to its end, in one micro-batch. Flink: ``StreamFormat``.

    Files that are compressed say so by the ending of their name. A position is a number of bytes.
    """

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Lines of text as ``str``, without their ends.

        Raises:
            ProgramError: Python does not know the encoding.

        >>> StreamFormat.text_line_format().type_info
        STRING
        """
        return TextLineFormat(charset_name)

    def end(self, size: int, rows: Callable[[], int]) -> int:
        return size

    def rows(self, file: File) -> int:
        lines, last = 0, b"\n"
        with file.reading(), file.stream() as stream:
            while block := stream.read(BLOCK):
                lines, last = lines + block.count(b"\n"), block[-1:]
        return lines + (last != b"\n")

    def read(self, file: File, start: int, end: int, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        check_size(file, end)
        if end > start:
            with file.reading(), file.stream() as stream:
                yield from self.read_stream(file, stream, type_info)

    def sorted_out(
        self, file: File, start: int, end: int, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        check_size(file, end)
        if end > start:
            with file.reading(), file.stream() as stream:
                yield from self.stream_sorted_out(file, stream, type_info)

    @abstractmethod
    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        """The rows of a file that has been opened."""

    def stream_sorted_out(
        self, file: File, stream: pa.NativeFile, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        """Read the rows of a stream, those that cannot be read, if there may be any, as `Unreadable`."""
        return self.read_stream(file, stream, type_info)


class TextLineFormat(StreamFormat):
    """Lines of text; made by :meth:`StreamFormat.text_line_format`."""

    def __init__(self, charset_name: str) -> None:
        try:
            codecs.lookup(charset_name)
        except LookupError as error:
            raise ProgramError(f"unknown encoding {charset_name!r}") from error
        self._charset = charset_name

    def __repr__(self) -> str:
        return f"TextLineFormat({self._charset!r})"

    @property
    def type_info(self) -> TypeInformation:
        return Types.STRING()

    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        r"""Lines end with ``\n``, ``\r\n`` or ``\r``; text after the last end is a line if it is not empty."""
        import pyarrow as pa
        import pyarrow.compute as pc

        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(self._charset)(), translate=True)
        rest, ended = "", False
        while not ended:
            block = stream.read(BLOCK)
            ended = not block
            try:
                text = rest + decoder.decode(block, final=ended)
            except UnicodeDecodeError as error:
                raise DataError(f"the file {file.path} is not {self._charset}: {error}") from error
            lines, _, rest = text.rpartition("\n") if not ended else (text.removesuffix("\n"), "", "")
            if lines or text.startswith("\n"):
                values = pc.split_pattern(pa.array([lines], pa.string()), "\n").flatten()
                yield pa.record_batch([values], ["value"])
