"""The way to windows that reduce in the order of arrival: what the reduce function does not choose leaves no task.

``ThinningPartitioner`` is that way, which goes through another one. Its frames have ``Thinned`` elements.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.runtime.columnar.panes import Panes
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Columns, Elements, Numbers
from eventide.runtime.exchange.partitioners import KeyGroupPartitioner, RecordWriter
from eventide.runtime.exchange.selected_keys import key_parts
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.folds import fold_of
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import BatchInPython
from eventide.runtime.window.reducing_columns import thinned

_AT_ONCE = 65_536
"""How many elements are thinned at once."""

_WORTH_IT = 1_024
"""With fewer elements, nothing is left out."""

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class ThinningPartitioner:
    """Elements leave split by split, without those that the reduce function, a fold, does not choose.

    Of each key and pane, a split sends the elements of which the result has a field: one, or few. What the function
    adds up is added to one of these. They come between those of other splits in the order of arrival, so the result is
    that of all elements.

    The result would be another one where a window fires for each element, and elements would be missing on a side
    output: these windows have neither.

    ``through`` is the way that the elements take, and finds their key.
    """

    through: KeyGroupPartitioner
    reduce: Callable[[Any, Any], Any]
    panes: Panes
    mixes_splits: bool = False

    @property
    def codec(self) -> ThinnedCodec:
        """How the content of its frames is read."""
        return ThinnedCodec(self.through.codec)

    @property
    def max_parallelism(self) -> int:
        """The number of key groups."""
        return self.through.max_parallelism

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return f"{self.through.describe()}, for each key and pane only those that the function chooses"

    def user_functions(self) -> list[tuple[str, Any]]:
        """The key selector, if it is an object."""
        return self.through.user_functions()

    def open(self, producer: str, slot: int, subtasks: int) -> _ThinningWriter:
        """An empty writer of the task with a slot."""
        return _ThinningWriter(self, self.through.open(producer, slot, subtasks))

    def thinned(self, columns: Columns) -> tuple[Columns, dict[int, int]]:
        """The elements that leave, and how many are left out of each pane.

        Raises:
            NotTraceable: if keys cannot be found without Python objects, or the function needs each element.
            Guard: if Python might give something else for some of these elements; an error of Arrow's says that too.
        """
        fold = fold_of(self.reduce, columns.type_info)
        if not fold.takes_few:
            raise NotTraceable("it needs each element")
        keys, _ = key_parts(columns, self.through.key_columns, self.through.select)
        return thinned(fold, self.panes, keys, columns)


class _ThinningWriter:
    def __init__(self, partitioner: ThinningPartitioner, through: RecordWriter) -> None:
        self._partitioner = partitioner
        self._through = through
        self._waiting: list[Columns] = []
        self._left_out: Counter[int] = Counter()
        self._gives_up = False
        self.size = 0

    def add(self, batch: Elements) -> BatchInPython | None:
        in_python = self._add(batch)
        self.size = self._count() + self._through.size
        return in_python

    def take(self) -> Iterator[tuple[int, bytes]]:
        if self._count() >= _WORTH_IT:
            self._thin()
        self._hand_on()
        self.size = 0
        left_out, self._left_out = self._left_out, Counter()
        for subtask, content in self._through.take():
            yield subtask, ThinnedCodec.encode(content, left_out)
            left_out = Counter()  # the first frame tells them

    def _count(self) -> int:
        return sum(map(len, self._waiting))

    def _add(self, batch: Elements) -> BatchInPython | None:
        columns = batch.columns
        if self._gives_up or columns is None or not batch.is_unread:
            self._hand_on()
            return self._through.add(batch)
        if self._waiting and self._waiting[0].type_info != columns.type_info:
            self._hand_on()
        self._waiting.append(columns)
        return self._thin() if self._count() >= _AT_ONCE else None

    def _thin(self) -> BatchInPython | None:
        """Thin what waits, and hand it on where that is not worth it."""
        before = Columns.joined(self._waiting)
        try:
            columns, left_out = self._partitioner.thinned(before)
        except NotTraceable:
            self._gives_up = True
        except (Guard, pa.ArrowException):
            pass
        else:
            self._left_out.update(left_out)
            self._waiting, self._gives_up = [columns], 2 * len(columns) > len(before)
            if not self._gives_up:
                return None
        return self._hand_on()

    def _hand_on(self) -> BatchInPython | None:
        waiting, self._waiting = self._waiting, []
        return self._through.add(Elements(columns=Columns.joined(waiting))) if waiting else None


@dataclass(frozen=True, slots=True)
class Thinned:
    """Elements, and how many others were left out beside them, as (start of a pane, number).

    All subtasks have the same watermark, so a pane is late in all of them or in none: one of them is told.
    """

    elements: Elements
    left_out: list[tuple[int, int]]

    def __len__(self) -> int:
        """How many elements it stands for."""
        return len(self.elements) + sum(count for _, count in self.left_out)

    @property
    def first(self) -> int:
        """The number of its first element in its channel."""
        return self.elements.first

    @property
    def is_unread(self) -> bool:
        """Whether there is no Python object yet for any of the elements."""
        return self.elements.is_unread

    def numbers(self) -> Numbers:
        """The number of each element in its channel."""
        return self.elements.numbers()

    def cut(self, begin: int, point: int) -> tuple[Thinned | None, int | None]:
        """Return the elements from an index on up to a point, and the index of the rest (None: there is none)."""
        elements, rest = self.elements.cut(begin, point)
        return Thinned(elements, self.left_out if begin == 0 else []) if elements else None, rest


@dataclass(frozen=True, slots=True)
class ThinnedCodec:
    """Elements in their own form, followed by JSON that says how many were left out."""

    of_elements: ElementCodec

    @staticmethod
    def encode(elements: bytes, left_out: Counter[int]) -> bytes:
        """The content of a frame.

        Args:
            elements: the elements as they travel.
            left_out: how many were left out, by the start of their pane.
        """
        beside = json.dumps([*left_out.items()]).encode() if left_out else b""
        return b"".join((elements, beside, _LENGTH.pack(len(beside))))

    def decode(self, data: bytes) -> Thinned:
        """The content of a frame: what is encoded, and how many were left out."""
        elements, beside = _parted(data)
        left_out = [(pane, count) for pane, count in json.loads(bytes(beside))] if beside else []
        return Thinned(self.of_elements.decode(elements), left_out)

    def size(self, data: bytes) -> int:
        """How many bytes the content of a frame has when it is read."""
        return self.of_elements.size(_parted(data)[0])


def _parted(data: bytes) -> tuple[Any, Any]:
    end = len(data) - _LENGTH.size
    (length,) = _LENGTH.unpack_from(data, end)
    view = memoryview(data)
    return view[: end - length], view[end - length : end]
