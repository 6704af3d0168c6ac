"""Partitioners: how elements leave a task, together, by key, without a key, or not at all; and encoded for the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import RowTypeInfo, TypeInformation, Types
from eventide.errors import DataError, ProgramError
from eventide.runtime.elements.codec import ElementCodec, encoded
from eventide.runtime.elements.elements import Columns, Elements, Numbers
from eventide.runtime.elements.keys import has_nan, owners
from eventide.runtime.elements.ownership import own_each
from eventide.runtime.exchange.selected_keys import (
    SubtasksOfKeys,
    declared_keys,
    extracted_keys,
    key_parts,
    keys_in,
    selectors,
)
from eventide.runtime.invoke import last_of, user_function_error
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import mapped
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import BatchInPython, reason_of

_NO_FIELDS = Types.ROW_NAMED([""], [Types.BOOLEAN()])


class Payload(Protocol):
    """Content of one frame for an operator; ``first`` is the number of its first element in its channel."""

    @property
    def first(self) -> int:
        """The number of its first element in its channel."""

    @property
    def is_unread(self) -> bool:
        """Whether there is no Python object yet for what it holds."""

    def __len__(self) -> int:
        """How many elements it stands for."""

    def numbers(self) -> Numbers | None:
        """The number of each element in its channel; None if what it holds has none any more."""

    def cut(self, begin: int, point: int) -> tuple[Any, int | None]:
        """Return the elements from an index on up to a point of the channel, and the index of the rest.

        None for the one where there is nothing, None for the other where there is no rest.
        """


class Codec(Protocol):
    """Turns the content of a frame back into the input of the operator after the edge."""

    def decode(self, data: bytes) -> Payload:
        """The content of a frame."""

    def size(self, data: bytes) -> int:
        """How many bytes the content of a frame has when it is read."""


class RecordWriter(Protocol):
    """Gathers what leaves on one edge; ``size`` is how many elements are waiting."""

    size: int

    def add(self, batch: Elements) -> BatchInPython | None:
        """Take elements; return the operator whose function is called with each because of what is in their columns.

        Raises:
            NoKey: if one has no key, or one that is not of its declared type.
            TypeMismatch: if one is not of its declared type.
        """

    def take(self) -> Iterator[tuple[int, Any]]:
        """Give away what is waiting, as (subtask, content of a frame).

        Raises:
            DataError: if one cannot be sent.
        """


class StreamPartitioner(Protocol):
    """Describes how elements leave on an edge; picklable.

    ``mixes_splits`` says that elements of several splits may leave together, because their order does not matter.
    """

    @property
    def codec(self) -> Codec:
        """How the content of its frames is read."""

    @property
    def mixes_splits(self) -> bool:
        """Whether one writer serves all splits of a task."""

    @property
    def max_parallelism(self) -> int:
        """The number of key groups; 1 where there are no keys."""

    def describe(self) -> str:
        """How elements travel, for ``explain``."""

    def user_functions(self) -> list[tuple[str, Any]]:
        """The user's functions that work before elements leave, with their operator: to be opened and closed."""

    def open(self, producer: str, slot: int, subtasks: int) -> RecordWriter:
        """An empty writer of the task with a slot."""


class _WithoutKeys:
    """The part of a partitioner that has neither keys nor functions of the user's, and keeps splits apart."""

    __slots__ = ()

    mixes_splits = False
    max_parallelism = 1

    def user_functions(self) -> list[tuple[str, Any]]:
        """None that are opened."""
        return []


@dataclass(frozen=True, slots=True)
class ForwardPartitioner(_WithoutKeys):
    """Elements stay together: at their place on the way to a sink, in the one subtask of windows without keys."""

    codec: ElementCodec

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return f"{self.codec.value_type} as {self.codec.describe()}"

    def open(self, producer: str, slot: int, subtasks: int) -> _ForwardWriter:
        """An empty writer of the task with a slot."""
        return _ForwardWriter(self.codec, slot % subtasks)


@dataclass(frozen=True, slots=True)
class ColumnsPartitioner(_WithoutKeys):
    """Elements leave as columns that are not encoded, for a host that makes rows of them in the same process."""

    value_type: TypeInformation

    @property
    def codec(self) -> Codec:
        """A codec that refuses: there is no task that reads them."""
        return _NoElements()

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return f"{self.value_type} as rows"

    def open(self, producer: str, slot: int, subtasks: int) -> _ColumnsWriter:
        """An empty writer of the task with a slot."""
        return _ColumnsWriter(self.value_type)


@dataclass(frozen=True, slots=True)
class DroppingPartitioner(_WithoutKeys):
    """Elements become columns of their declared type, as for any sink, and leave no task: their sink drops them."""

    value_type: TypeInformation

    @property
    def codec(self) -> Codec:
        """A codec that refuses: there is nothing to read."""
        return _NoElements()

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return f"{self.value_type}, dropped by the tasks that make them"

    def open(self, producer: str, slot: int, subtasks: int) -> _DroppedWriter:
        """A writer that stays empty."""
        return _DroppedWriter(self.value_type)


@dataclass(frozen=True, slots=True)
class FieldsPartitioner(_WithoutKeys):
    """The timestamp of each element and its fields with these ``names`` leave, for a watermark generator.

    ``value_type`` is the type of the elements; it need not be declared where there are no names. With ``highest_only``,
    one element with the highest timestamp leaves for each batch of elements.
    """

    value_type: TypeInformation
    names: tuple[str, ...]
    highest_only: bool = False

    @property
    def codec(self) -> ElementCodec:
        """Rows of these fields; without names, of one that is None."""
        if isinstance(self.value_type, RowTypeInfo) and self.names:
            kinds = dict(zip(self.value_type.field_names, self.value_type.field_types, strict=True))
            return ElementCodec(RowTypeInfo([kinds[name] for name in self.names], self.names))
        return ElementCodec(_NO_FIELDS)

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        if self.highest_only:
            return "the highest timestamp, for the generator"
        return f"timestamps{''.join(f', {name}' for name in self.names)} as Arrow columns, for the generator"

    def open(self, producer: str, slot: int, subtasks: int) -> _TimesAndFieldsWriter:
        """An empty writer of the task with a slot."""
        return _TimesAndFieldsWriter(self, slot % subtasks)


@dataclass(frozen=True, slots=True)
class BroadcastPartitioner(_WithoutKeys):
    """Every subtask has all elements."""

    codec: ElementCodec

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return f"to every subtask, {self.codec.value_type} as {self.codec.describe()}"

    def open(self, producer: str, slot: int, subtasks: int) -> _BroadcastWriter:
        """An empty writer of the task with a slot."""
        return _BroadcastWriter(self.codec, subtasks)


@dataclass(frozen=True, slots=True)
class KeyGroupPartitioner:
    """Each element goes to the subtask of its key, which travels with it.

    ``key_columns`` are the fields that the key consists of, if it was given by them: then it is found in columns,
    without a Python object for the element. With a ``codec`` that has no type of keys, no key travels, because the
    receiver finds it in columns, too; then there is no Python object for keys either.
    """

    codec: ElementCodec
    select: Callable[[Any], Any]
    max_parallelism: int
    mixes_splits: bool = False
    key_columns: tuple[str, ...] = ()

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        key = "found in columns" if self.codec.key_type is None else self.codec.key_type
        return f"by key ({key}), {self.codec.value_type} as {self.codec.describe()}"

    def user_functions(self) -> list[tuple[str, Any]]:
        """The key selector, if it is an object."""
        return selectors(self.select)

    def open(self, producer: str, slot: int, subtasks: int) -> _KeyGroupWriter:
        """An empty writer of the task with a slot."""
        return _KeyGroupWriter(self, producer, subtasks)


class SubtaskSelector(Protocol):
    """Says which subtask each element goes to; picklable."""

    def user_functions(self) -> list[tuple[str, Any]]:
        """The user's functions, each with a name, to be opened and closed."""

    def describe(self) -> str:
        """How elements are distributed, for ``explain``."""

    def subtasks_of(self, values: Sequence[Any], first: int, subtasks: int) -> Iterator[int]:
        """Give the subtask of each element, of `subtasks` subtasks; ``first`` counts the elements that went before."""


@dataclass(frozen=True, slots=True)
class RebalancePartitioner(SubtaskSelector):
    """Elements of a split or task go to one subtask after the other, in their order: so it is the same at a replay."""

    def user_functions(self) -> list[tuple[str, Any]]:
        return []

    def describe(self) -> str:
        return "to one subtask after the other"

    def subtasks_of(self, values: Sequence[Any], first: int, subtasks: int) -> Iterator[int]:
        return (number % subtasks for number in range(first, first + len(values)))


@dataclass(frozen=True, slots=True)
class GlobalPartitioner(SubtaskSelector):
    """All elements go to the first subtask."""

    def user_functions(self) -> list[tuple[str, Any]]:
        return []

    def describe(self) -> str:
        return "to the first subtask"

    def subtasks_of(self, values: Sequence[Any], first: int, subtasks: int) -> Iterator[int]:
        return (0 for _ in values)


@dataclass(frozen=True, slots=True)
class CustomPartitioner(SubtaskSelector):
    """A user function says where a key goes."""

    partition: Callable[[Any, int], int]
    select: Callable[[Any], Any]
    partitioner: object

    def user_functions(self) -> list[tuple[str, Any]]:
        return [("partitioner", self.partitioner), *selectors(self.select)]

    def describe(self) -> str:
        return "as a partitioner says"

    def subtasks_of(self, values: Sequence[Any], first: int, subtasks: int) -> Iterator[int]:
        """The partitioner's result for the key; the partitioner and the key selector see copies."""
        for value in own_each([*values]):
            subtask = self.partition(self.select(value), subtasks)
            if not 0 <= subtask < subtasks:
                raise ProgramError(f"the partitioner gave {subtask!r}, and there are subtasks 0 to {subtasks - 1}")
            yield subtask


@dataclass(frozen=True, slots=True)
class SelectingPartitioner(_WithoutKeys):
    """Distributes elements without a key, as its selector says."""

    codec: ElementCodec
    selector: SubtaskSelector

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return f"{self.selector.describe()}, {self.codec.value_type} as {self.codec.describe()}"

    def user_functions(self) -> list[tuple[str, Any]]:
        """The user's functions of the selector."""
        return self.selector.user_functions()

    def open(self, producer: str, slot: int, subtasks: int) -> _SelectingWriter:
        """An empty writer of the task with a slot."""
        return _SelectingWriter(self, producer, slot, subtasks)


@dataclass(frozen=True, slots=True)
class ReportsOnlyPartitioner(_WithoutKeys):
    """No element leaves on this edge. Flink: the way of ``ReportedWatermarkEvent``."""

    @property
    def codec(self) -> Codec:
        """A codec that refuses: there is nothing to read."""
        return _NoElements()

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return "watermarks alone"

    def open(self, producer: str, slot: int, subtasks: int) -> NoRecordWriter:
        """A writer that stays empty."""
        return NoRecordWriter()


class NoRecordWriter:
    """Lets elements go where others take them."""

    size = 0

    def add(self, batch: Elements) -> None:
        """Take nothing."""

    def take(self) -> Iterator[tuple[int, bytes]]:
        """Give nothing."""
        return iter(())


class _DroppedWriter(NoRecordWriter):
    def __init__(self, value_type: TypeInformation) -> None:
        self._value_type = value_type

    def add(self, batch: Elements) -> None:
        batch.as_columns(self._value_type)


class _ForwardWriter:
    def __init__(self, codec: ElementCodec, subtask: int) -> None:
        self._codec = codec
        self._subtask = subtask
        self._waiting: list[Elements] = []
        self.size = 0

    def add(self, batch: Elements) -> None:
        self._waiting.append(batch)
        self.size += len(batch)

    def take(self) -> Iterator[tuple[int, bytes]]:
        waiting, self._waiting, self.size = self._waiting, [], 0
        for content in encoded(self._codec, waiting, []) if waiting else ():
            yield self._subtask, content


class _TimesAndFieldsWriter(_ForwardWriter):
    def __init__(self, partitioner: FieldsPartitioner, subtask: int) -> None:
        super().__init__(partitioner.codec, subtask)
        self._partitioner = partitioner

    def add(self, batch: Elements) -> None:
        kind, names = self._codec.value_type, self._partitioner.names
        if names or batch.columns is not None:
            whole = batch.as_columns(self._partitioner.value_type)
            timestamps, sequence = whole.timestamps, whole.sequence
            fields = [whole.field(name) for name in names]
        else:
            timestamps, sequence = pa.array(batch.timestamps, pa.int64()), pa.array(batch.sequence, pa.int64())
        if not names:
            fields = [pa.nulls(len(batch), pa.bool_())]
        values = pa.StructArray.from_arrays(fields, fields=list(kind.arrow_type()))
        columns = Columns(kind, values, timestamps, sequence)
        super().add(Elements(columns=_highest(columns) if self._partitioner.highest_only else columns))


def _highest(columns: Columns) -> Columns:
    """Of elements that have timestamps, the first one with the highest."""
    timestamps = columns.timestamps
    if timestamps is None or timestamps.null_count or not len(timestamps):
        return columns
    return columns.at(pa.array([pc.index(timestamps, pc.max(timestamps)).as_py()]))


class _ColumnsWriter:
    def __init__(self, value_type: TypeInformation) -> None:
        self._value_type = value_type
        self._waiting: list[Elements] = []
        self.size = 0

    def add(self, batch: Elements) -> None:
        self._waiting.append(batch)
        self.size += len(batch)

    def take(self) -> Iterator[tuple[int, Columns]]:
        waiting, self._waiting, self.size = self._waiting, [], 0
        for batch in waiting:
            yield 0, batch.as_columns(self._value_type)


class _BroadcastWriter(_ForwardWriter):
    def __init__(self, codec: ElementCodec, subtasks: int) -> None:
        super().__init__(codec, 0)
        self._subtasks = subtasks

    def take(self) -> Iterator[tuple[int, bytes]]:
        contents = [content for _, content in super().take()]
        for subtask in range(self._subtasks):
            for content in contents:
                yield subtask, content


class _KeyGroupWriter:
    def __init__(self, partitioner: KeyGroupPartitioner, producer: str, subtasks: int) -> None:
        self._partitioner = partitioner
        self._producer = producer
        self._subtasks = SubtasksOfKeys(partitioner.max_parallelism, subtasks)
        self._waiting: list[list[tuple[Elements, list[Any]]]] = [[] for _ in range(subtasks)]
        self.size = 0

    def add(self, batch: Elements) -> BatchInPython | None:
        self.size += len(batch)
        codec, in_python = self._partitioner.codec, None
        columns = batch.columns if batch.is_unread else None
        try:
            if codec.key_type is None:
                if columns is None and self._partitioner.key_columns and not codec.value_type.has_exponents:
                    columns = batch.as_columns(codec.value_type)
                if columns is not None and self._deal_out_columns(columns):
                    return None
            elif columns is not None and (keys := self._keys_in(columns)) is not None:
                self._deal_out(batch, keys)
                return None
        except Guard as guard:
            in_python = BatchInPython(self._producer, reason_of(guard))
        for elements in batch.pieces():
            keys = extracted_keys(self._partitioner.select, elements, codec.key_type)
            self._deal_out(elements.light(), keys)
        return in_python

    def _keys_in(self, columns: Columns) -> list[Any] | None:
        """The key of each element, found on columns; None if Python has to be called.

        Raises:
            Guard: if it has to be called because of what is in these columns.
        """
        names, key_type = self._partitioner.key_columns, self._partitioner.codec.key_type
        if names:
            return None if columns.values.null_count else keys_in(columns, names, key_type)
        try:
            keys, kind = mapped(self._partitioner.select, columns, None)
        except NotTraceable:
            return None
        found = kind.from_arrow(keys)
        return found if kind == key_type else declared_keys(found, key_type, Elements(columns=columns))

    def _deal_out_columns(self, columns: Columns) -> bool:
        """Deal elements out without a Python object for any key; False where Python has to be called.

        Raises:
            Guard: if it has to be called because of what is in these columns.
        """
        partitioner, subtasks = self._partitioner, len(self._waiting)
        try:
            parts, kind = key_parts(columns, partitioner.key_columns, partitioner.select)
        except NotTraceable:
            return False
        if columns.values.null_count or any(map(has_nan, parts)):  # an element without a key: Python names it
            return False
        batch, owner = Elements(columns=columns), owners(parts, partitioner.max_parallelism, subtasks, kind)
        for subtask in range(subtasks):
            mine = batch if owner is None else batch.at(np.flatnonzero(owner == subtask))
            if len(mine):
                self._waiting[subtask].append((mine, []))
        return True

    def _deal_out(self, batch: Elements, keys: list[Any]) -> None:
        for subtask, at in self._subtasks.dealt_out(keys, lambda: batch.values):
            if at is None:
                self._waiting[subtask].append((batch, keys))
                continue
            indices = at.tolist()
            self._waiting[subtask].append((batch.at(at), [keys[i] for i in indices]))

    def take(self) -> Iterator[tuple[int, bytes]]:
        waiting, self._waiting, self.size = self._waiting, [[] for _ in self._waiting], 0
        for subtask, parts in enumerate(waiting):
            if parts:
                codec = self._partitioner.codec  # without a type of keys, the receiver finds them
                keys = [] if codec.key_type is None else list(chain.from_iterable(keys for _, keys in parts))
                for content in encoded(codec, [batch for batch, _ in parts], keys):
                    yield subtask, content


class _SelectingWriter:
    def __init__(self, partitioner: SelectingPartitioner, producer: str, slot: int, subtasks: int) -> None:
        self._partitioner = partitioner
        self._producer = producer
        self._first = slot
        self._subtasks = subtasks
        self._waiting: defaultdict[int, list[Elements]] = defaultdict(list)
        self.size = 0

    def add(self, batch: Elements) -> None:
        self.size += len(batch)
        of_subtask: defaultdict[int, list[int]] = defaultdict(list)
        subtasks = self._partitioner.selector.subtasks_of(batch.values, self._first, self._subtasks)
        self._first += len(batch)
        values = iter(batch.values)
        try:
            for index, (_, subtask) in enumerate(zip(values, subtasks, strict=True)):
                of_subtask[subtask].append(index)
        except Exception as error:
            element = last_of(batch.values, values)
            raise user_function_error(
                self._producer, error, during="when an element was partitioned", element=element
            ) from error
        for subtask, indices in of_subtask.items():
            self._waiting[subtask].append(batch.at(indices))

    def take(self) -> Iterator[tuple[int, bytes]]:
        waiting, self._waiting, self.size = self._waiting, defaultdict(list), 0
        for subtask in sorted(waiting):
            for content in encoded(self._partitioner.codec, [*waiting[subtask]], []):
                yield subtask, content


class _NoElements:
    def decode(self, data: bytes) -> Payload:
        raise DataError("elements have come on an edge that carries only watermarks; report this bug, with the program")

    def size(self, data: bytes) -> int:
        return len(data)
