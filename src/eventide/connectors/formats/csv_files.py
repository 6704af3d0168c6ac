"""The bytes of CSV files: blocks of whole rows, and the rows of a block."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING

from eventide.connectors.file_system.format import BLOCK
from eventide.connectors.formats.csv_rows import AFTER_ESCAPE, Dialect

if TYPE_CHECKING:
    import pyarrow as pa


class CsvLines:
    """The bytes of a CSV file without a byte order mark.

    Escape sequences, such as for a line feed, are replaced by their characters, which Arrow reads unchanged.

    Args:
        stream: the bytes of the file.
        escape: the escape character; None if there is none.
    """

    def __init__(self, stream: pa.NativeFile, escape: str | None = None) -> None:
        self._escape, self._rest = (escape or "").encode(), b""
        self._pairs = re.compile(re.escape(self._escape) + b"(.)", re.DOTALL)
        self._read = partial(stream.read, BLOCK - len(self._escape))
        self._next = self._more().removeprefix(BOM_UTF8)

    def _more(self) -> bytes:
        """The next bytes of the file; empty only at its end."""
        escape = self._escape
        block: bytes = self._read()
        if not escape:
            return block
        block = self._rest + block
        while block == escape and (more := self._read()):  # the character that it escapes comes next
            block += more
        is_cut = (len(block) - len(block.rstrip(escape))) % 2 == 1 and block != escape
        self._rest = escape if is_cut else b""
        return self._pairs.sub(self._after_escape, block[: len(block) - len(self._rest)])

    def _after_escape(self, found: re.Match[bytes]) -> bytes:
        meant = AFTER_ESCAPE.get(found[1].decode("latin-1"))
        return found[0] if meant is None else self._escape + meant.encode()

    def read(self) -> bytes:
        """The next bytes; empty only at the end."""
        block, self._next = self._next, b""
        return block or self._more()


@dataclass(frozen=True, slots=True)
class CsvBlock:
    """Some whole rows of a file.

    Args:
        content: the bytes of the rows.
        dialect: the special characters.
        is_plain: whether every quoted cell ends with its quote, so that Arrow reads the cells as Flink does.
        is_open: whether it is one row, in which a quote is not closed.
    """

    content: bytes
    dialect: Dialect
    is_plain: bool = True
    is_open: bool = False

    def rows(self) -> Iterator[bytes]:
        """The rows without their ends; a blank line is an empty row."""
        if self.is_open:
            yield self.content
            return
        row, at = _patterns(self.dialect).row, 0
        while found := row.match(self.content, at):
            yield found[1]
            at = found.end()


class CsvBlocks:
    """The blocks of a file, in order.

    Args:
        lines: the bytes of the file.
        dialect: the special characters.
    """

    def __init__(self, lines: CsvLines, dialect: Dialect) -> None:
        self._lines = lines
        self._dialect = dialect
        self._blocks: Iterator[CsvBlock] = self._cut()

    def __iter__(self) -> Iterator[CsvBlock]:
        yield from self._blocks

    def first(self) -> CsvBlock | None:
        """The next block; None at the end."""
        return next(self._blocks, None)

    def take_row(self) -> bytes | None:
        """Remove the next row that is not blank, and return it without its end; None if there is none."""
        while block := self.first():
            content = block.content.lstrip(b"\r\n")
            found = _patterns(self._dialect).row.match(content)
            if found is not None and content[found.end() :]:
                rest = CsvBlock(content[found.end() :], self._dialect, block.is_plain)
                self._blocks = chain([rest], self._blocks)
            if content:
                return content if found is None else found[1]
        return None

    def _cut(self) -> Iterator[CsvBlock]:
        parts, size, wanted, dialect = [], 0, 0, self._dialect
        while more := self._lines.read():
            parts.append(more)
            size += len(more)
            if size < wanted:
                continue
            rest = b"".join(parts)
            end, is_plain = self._end_of_rows(rest)
            if end:
                yield CsvBlock(rest[:end], dialect, is_plain)
            parts, size = [rest[end:]], len(rest) - end
            wanted = 0 if end else 2 * size  # a row that goes on for long is not searched again with each block
        rest = b"".join(parts)
        if not rest:
            return
        ended = rest if rest.endswith(b"\n") else rest + b"\n"
        end, is_plain = self._end_of_rows(ended)
        if end:
            yield CsvBlock(ended[:end], dialect, is_plain)
        if end < len(ended):
            yield CsvBlock(rest[end:], dialect, is_plain=False, is_open=True)

    def _end_of_rows(self, content: bytes) -> tuple[int, bool]:
        """The end of the last whole row, and whether every quoted cell ends with its quote."""
        special = [char.encode() for char in (self._dialect.quote, self._dialect.escape) if char is not None]
        if not any(char in content for char in special):
            return content.rfind(b"\n") + 1 or content.rfind(b"\r", 0, len(content) - 1) + 1, True
        patterns = _patterns(self._dialect)
        plain = patterns.plain_rows.match(content).end()  # type: ignore[union-attr]
        end = patterns.rows.match(content, plain).end()  # type: ignore[union-attr]
        return end, end == plain


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Patterns of bytes: a row, any number of rows, and rows whose quoted cells end with their quotes."""

    row: re.Pattern[bytes]
    rows: re.Pattern[bytes]
    plain_rows: re.Pattern[bytes]


@cache
def _patterns(dialect: Dialect) -> _Patterns:
    special = (dialect.delimiter, dialect.quote, dialect.escape)
    d, q, e = (b"(?!)" if char is None else re.escape(char.encode()) for char in special)
    but_escape = b"" if dialect.escape is None else e
    text = b"(?:[^%b\\r\\n%b]++|%b.)*+" % (d, but_escape, e)
    bare = b"(?!%b)%b" % (q, text)
    quoted = b"(?!)" if dialect.quote is None else b"%b(?:[^%b%b]++|%b%b|%b.)*+%b" % (q, q, but_escape, q, q, e, q)
    cells = b"(?:%b|%b)" % (bare, quoted + text), b"(?:%b|%b)" % (bare, quoted)
    row, plain_row = (b"%b(?:%b%b)*+" % (cell, d, cell) for cell in cells)
    end = b"(?:\\r?\\n|\\r(?!\\n|\\Z))"  # a carriage return may be the first half of an end
    texts = (b"(%b)(?:\\r\\n?|\\n)" % row, b"(?:%b%b)*+" % (row, end), b"(?:%b%b)*+" % (plain_row, end))
    return _Patterns(*(re.compile(text, re.DOTALL) for text in texts))
