"""How elements become bytes on their way: Arrow columns where their type is declared, else a pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.common.typeinfo.widening import has_text, type_of_text
from eventide.errors import DataError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.elements import FRAME_BYTES, Columns, Elements, frame_slices
from eventide.runtime.elements.ownership import all_fixed

_MOST_OF_A_FRAME = 4 * FRAME_BYTES
_CONTENT_BYTES = FRAME_BYTES * 3 // 2
"""About how many bytes of values, timestamps and numbers together become one frame."""
_KEYS = b"keys"
_VALUES = b"values"
_TYPE = b"type"
_NUMBERS = ("timestamp", "sequence")
_LOWEST = b"lowest"
"""The lowest number of each column that is sent in fewer bytes, by name."""
_SAVED = b"saved"
"""How many bytes less that is."""
_MOST = (1 << 32) - 1
_FEW = 500
"""The bytes that fewer numbers than this could save are not worth the work."""
_OF_COLUMNS = b"\xff\xff\xff\xff"
"""The beginning of an Arrow stream, and of no pickle."""


@dataclass(frozen=True, slots=True)
class ElementCodec:
    """The form in which the elements of one edge travel.

    With a declared ``value_type`` it is an Arrow IPC stream with the columns ``value``,
    ``timestamp`` (int64 milliseconds), ``sequence`` and, on edges with a key, ``key``; keys of no declared type are one
    pickle beside the columns. Without a declared ``value_type`` it is one pickle of all, or the same stream with the
    name of the type beside the columns, if functions on columns have made the elements.

    A column does not say how many digits each decimal number has. So where that matters, keys and Python values go
    beside the columns as they are: a receiver of columns finds columns, and a receiver of values finds these.
    """

    value_type: TypeInformation
    key_type: TypeInformation | None = None

    @property
    def columnar(self) -> bool:
        """Whether elements travel as Arrow columns."""
        return not self.value_type.is_pickled

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return "Arrow columns" if self.columnar else "pickled objects (declare output_type to send columns)"

    def for_columns(self, kinds: Iterable[TypeInformation]) -> ElementCodec:
        """The codec for elements of some types that are columns all: where none was declared, that of their own type.

        The name of the type goes beside the columns, so a type whose name does not say all of it is not sent so.
        """
        kind, *others = {*kinds}
        if self.columnar or others or kind.is_pickled or not has_text(kind):
            return self
        return ElementCodec(kind, self.key_type)

    def encode(self, elements: Elements) -> bytes:
        """Elements to bytes.

        Raises:
            TypeMismatch: if an element does not have the declared type.
            DataError: if an element without a declared type cannot be pickled.
        """
        if not self.columnar:
            # A key may be a part of its element: where it can be changed, it becomes another object.
            keys = elements.keys if all_fixed(elements.keys) else _pickled(elements.keys)
            return _pickled((elements.values, elements.timestamps, elements.sequence, keys))
        values = elements.values if self.value_type.has_exponents else None
        return self.encode_columns(elements.as_columns(self.value_type), elements.keys, values)

    def encode_columns(self, columns: Columns, keys: list[Any] | None = None, values: list[Any] | None = None) -> bytes:
        """Columns, and beside them keys, and values where the columns do not have all of them, to the same bytes."""
        content = {"value": columns.values, "timestamp": columns.timestamps_or_nulls(), "sequence": columns.sequence}
        metadata = {_TYPE: str(self.value_type).encode()}
        if values is not None:
            metadata[_VALUES] = _pickled(values)
        if self.key_type is not None and not self.key_type.is_pickled:
            content["key"] = self.key_type.to_arrow(keys or [])
        if self._keys_are_pickled:
            metadata[_KEYS] = _pickled(keys)
        return encode_numbered(pa.table(content, metadata=metadata), _NUMBERS)

    def size(self, data: bytes) -> int:
        """How many bytes the content of a frame has when it is read."""
        return size_of_numbered(data) if self._is_of_columns(data) else len(data)

    def _is_of_columns(self, data: bytes) -> bool:
        return self.columnar or data[: len(_OF_COLUMNS)] == _OF_COLUMNS

    @property
    def _keys_are_pickled(self) -> bool:
        return self.key_type is not None and (self.key_type.is_pickled or self.key_type.has_exponents)

    def decode(self, data: bytes) -> Elements:
        """Bytes to elements; they have columns if they travel so."""
        if not self._is_of_columns(data):
            values, timestamps, sequence, keys = loads(data)
            return Elements(values, timestamps, sequence, loads(keys) if type(keys) is bytes else keys)
        table = decode_numbered(data)
        beside = table.schema.metadata or {}
        value_type = self.value_type if self.columnar else type_of_text(beside[_TYPE].decode())
        timestamps, sequence = _one(table, "timestamp"), _one(table, "sequence")
        keys = []
        if self._keys_are_pickled:
            keys = loads(beside[_KEYS])
        elif self.key_type is not None:
            keys = self.key_type.from_arrow(table.column("key"))
        if _VALUES in beside:
            return Elements(loads(beside[_VALUES]), timestamps.to_pylist(), sequence.to_pylist(), keys)
        timed = None if timestamps.null_count == len(timestamps) else timestamps
        return Elements(keys=keys, columns=Columns(value_type, _one(table, "value"), timed, sequence))


def encoded(codec: ElementCodec, batches: list[Elements], keys: list[Any]) -> Iterator[bytes]:
    """Give batches, one after the other, as the contents of frames: from their columns where they have them."""
    kinds = [batch.columns.type_info for batch in batches if batch.columns is not None]
    if len(kinds) == len(batches):
        codec = codec.for_columns(kinds)
    if not codec.columnar or not kinds:
        together = Elements()
        for batch in batches:
            together.extend(batch)
        batches = [together]
    if not codec.columnar:
        together.keys = keys
        count = len(together)
        rows = max(1, FRAME_BYTES * count // max(1, together.nbytes))
        for start in range(0, count, rows):
            end = min(start + rows, count)
            yield from bounded(lambda begin, end: codec.encode(together.between(begin, end)), start, end)
        return
    columns = Columns.joined([batch.as_columns(codec.value_type) for batch in batches])
    values = None
    if codec.value_type.has_exponents and any(batch.columns is None for batch in batches):
        values = list(chain.from_iterable(batch.values for batch in batches))

    def encode(begin: int, end: int) -> bytes:
        there = slice(begin, end)
        part = columns.slice(begin, end - begin)
        return codec.encode_columns(part, keys[there], None if values is None else values[there])

    numbered = [columns.values, columns.timestamps_or_nulls(), columns.sequence]
    for start, rows in frame_slices(pa.table(numbered, names=["", "", ""]), _CONTENT_BYTES):
        yield from bounded(encode, start, start + rows)


def bounded(encode: Callable[[int, int], bytes], begin: int, end: int) -> Iterator[bytes]:
    """Give the content of a frame for a range of elements, or of several frames where one would be too large.

    Args:
        encode: makes the content of the elements from one index up to another, which is exclusive.
        begin: the index of the first.
        end: the index after the last.
    """
    content = encode(begin, end)
    if len(content) <= _MOST_OF_A_FRAME or end - begin <= 1:
        yield content
        return
    middle = (begin + end) // 2
    yield from bounded(encode, begin, middle)
    yield from bounded(encode, middle, end)


def _one(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _pickled(content: object) -> bytes:
    try:
        return dumps(content)
    except Exception as error:
        raise DataError(
            f"an element cannot be pickled: {error!r}. Elements must be plain data, or of a class that has a name in "
            "the program; not generators, locks or open files"
        ) from error


def encode_table(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def decode_table(data: bytes | pa.Buffer) -> pa.Table:
    """The inverse of :func:`encode_table`; the columns stay where the bytes are."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()


def encode_numbered(table: pa.Table, names: Sequence[str]) -> bytes:
    """A table as an Arrow IPC stream, with fewer bytes for some of its columns of whole numbers.

    Of numbers that follow one another only the first is sent. Others take four bytes each, where the lowest and the
    highest are near enough.

    Args:
        table: the table.
        names: those of its columns, of 64-bit integers, that may be sent so.
    """
    if len(table) < _FEW:
        return encode_table(table)
    size, lowest = table.nbytes, {}
    for name in names:
        column = _one(table, name)
        if column.null_count:
            continue
        numbers = column.to_numpy()
        least, most = int(numbers.min()), int(numbers.max())
        if most - least > _MOST:
            continue
        lowest[name] = least
        if most - least == len(numbers) - 1 and (numbers[1:] - numbers[:-1] == 1).all():
            column = pa.nulls(len(numbers))
        else:
            column = pa.array((numbers - least).astype(np.uint32))
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.field(place).with_type(column.type), column)
    beside = {_LOWEST: json.dumps(lowest), _SAVED: str(size - table.nbytes)} if lowest else {}
    return encode_table(table.replace_schema_metadata({**(table.schema.metadata or {}), **beside}))


def decode_numbered(data: bytes | pa.Buffer) -> pa.Table:
    """The inverse of :func:`encode_numbered`; it reads what :func:`encode_table` gives, too.

    >>> sent = pa.table({"number": range(70, 1_070), "even": [n % 2 == 0 for n in range(1_000)]})
    >>> content = encode_numbered(sent, ["number"])
    >>> decode_numbered(content).equals(sent), len(content) < 1_000
    (True, True)
    """
    table = decode_table(data)
    for name, least in json.loads((table.schema.metadata or {}).get(_LOWEST, b"{}")).items():
        column = _one(table, name)
        follow = pa.types.is_null(column.type)
        numbers = (np.arange(len(table)) if follow else column.to_numpy().astype(np.int64)) + least
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.field(place).with_type(pa.int64()), pa.array(numbers))
    return table


def size_of_numbered(data: bytes) -> int:
    """How many bytes what :func:`encode_numbered` gave has when it is read."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return len(data) + int((reader.schema.metadata or {}).get(_SAVED, 0))
