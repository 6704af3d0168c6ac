"""The way to windows that reduce: elements are reduced by key and pane before they leave the task.

``ReducingPartitioner`` is that way. ``ByPane`` and ``InRuns`` reduce, to ``Partials``: one value for each key and pane,
or few. ``by_pane`` says which elements are in which pane, for the operator of windows, too.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.errors import DEAD_LETTER_ADVICE, DataError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.chain.chained_operators import HANDLING
from eventide.runtime.chain.timestamps import times_of
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.elements.codec import bounded, decode_table, encode_table
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.elements.ownership import is_bare, only_looks, own_each, own_unless
from eventide.runtime.exchange.selected_keys import SubtasksOfKeys, extracted_keys, selectors
from eventide.runtime.invoke import no_timestamp, user_function_error
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.folds import AggregateFold, How, fold_of
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import BatchInPython, reason_of
from eventide.runtime.window.contents import Accumulated, Aggregated, AtElement, Reduced, TimeArray
from eventide.runtime.window.reducing_columns import ReducedColumns, reduced_columns, with_values

_VALUES_AT_ONCE = 1 << 17
_VALUES_OF_A_FRAME = 1 << 12


@dataclass(frozen=True, slots=True)
class ReducingPartitioner:
    """Elements leave reduced, whatever their number: one value for each key and pane, or few.

    The reduce function is associative, so that it may work on parts: of each key and pane, the elements of a task are
    reduced in their order of arrival, and then what the tasks have made. For windows that take late elements, or give
    them to a side output, or that leave gaps, elements have to travel themselves.

    The function sees late elements, too, which only the operator tells apart. So an error that it raises travels in
    place of its pane, and is raised by the operator unless the pane is late.

    ``operator`` is the window operator that the reduce function belongs to, ``select`` finds the key (None: there are
    no keys). An aggregate function has an ``aggregate``: its accumulators travel, each as an :class:`Accumulated`.
    """

    operator: str
    reduced: Reduced | Aggregated
    panes: Panes
    codec: PartialsCodec
    select: Callable[[Any], Any] | None
    max_parallelism: int = 1
    mixes_splits: bool = True
    aggregate: AggregateFold | None = None

    @property
    def adds(self) -> Callable[..., Any]:
        """The user's function that takes elements in."""
        reduced = self.reduced
        return reduced.function.reduce if isinstance(reduced, Reduced) else reduced.function.add

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        dealt = "all together" if self.select is None else f"by key ({self.codec.key_type})"
        return f"{dealt}, {self.codec.value_type} reduced before the shuffle to one for each key and pane"

    def user_functions(self) -> list[tuple[str, Any]]:
        """The key selector, and the reduce function, which is opened and closed in the tasks that send too."""
        return [*selectors(self.select), (self.operator, self.reduced.user_function)]

    def open(self, producer: str, slot: int, subtasks: int) -> _ReducingWriter:
        """An empty writer of the task with a slot."""
        return _ReducingWriter(self, subtasks)


class _ReducingWriter:
    def __init__(self, partitioner: ReducingPartitioner, subtasks: int) -> None:
        self._partitioner = partitioner
        self._subtask_of = SubtasksOfKeys(partitioner.max_parallelism, subtasks)
        reduced, panes = partitioner.reduced, partitioner.panes
        self._by_pane = panes.are_windows
        self._values = InRuns(reduced) if isinstance(reduced, Reduced) and not self._by_pane else ByPane(reduced)
        self._only_looks = only_looks(partitioner.adds)
        self._counts: Counter[int] = Counter()
        self._failures: list[tuple[int, str, str]] = []
        self._packed: list[tuple[int, bytes]] = []
        self._sent = 0
        self.size = 0

    def add(self, batch: Elements) -> BatchInPython | None:
        found = in_python = None
        if self._by_pane and batch.columns is not None and batch.is_unread:
            try:
                found = self._reduced_columns(batch.columns)
            except NotTraceable:
                pass
            except (Guard, pa.ArrowException) as error:
                in_python = BatchInPython(self._partitioner.operator, reason_of(error))
        if found is None:
            self._reduce_each(batch)
            return in_python
        self._counts.update(found.counts)
        self._reduce(by_pane_start(found.panes), found.keys, self._parts(found.values))
        self.size += len(batch)
        self._pack_if_many()
        return None

    def _reduced_columns(self, columns: Columns) -> ReducedColumns:
        """The form that elements took on columns.

        Raises:
            NotTraceable: if the function is none that is known to have the same result there.
            Guard: if it might have another one with these elements; an error of Arrow's says that too.
        """
        partitioner = self._partitioner
        found = partitioner.aggregate or fold_of(partitioner.adds, columns.type_info)
        fold, values = with_values(found, partitioner.reduced.user_function, columns)
        reduced = reduced_columns(fold, partitioner.panes, partitioner.select, columns, values)
        kind = partitioner.codec.key_type
        if not (kind.is_pickled or kind.keeps(reduced.keys)):
            raise Guard("a key that is not of its declared type as it is")
        return reduced

    def _parts(self, values: list[Any]) -> list[Any]:
        """The parts made of elements, as they are put together with those made of others."""
        aggregate = self._partitioner.aggregate
        if aggregate is None:
            return values
        how = how_to_put_together(aggregate)
        return [value if type(value) is Accumulated else Accumulated(value, how) for value in values]

    def _reduce_each(self, batch: Elements) -> None:
        # The function may change what it reduces, and these elements may be on other ways, too.
        may_share = self._only_looks or batch.is_unread
        for elements in batch.pieces():
            values = self._as_declared(elements)
            self._add(elements, values if may_share else own_each(values))
            self.size += len(elements)
            self._pack_if_many()

    def _pack_if_many(self) -> None:
        if self._values.size >= _VALUES_AT_ONCE:
            self._packed += self._pack()

    def take(self) -> Iterator[tuple[int, bytes]]:
        packed = [*self._packed, *self._pack()]
        self._packed, self.size = [], 0
        yield from packed

    def _add(self, elements: Elements, values: list[Any]) -> None:
        partitioner = self._partitioner
        timestamps = self._timestamps(elements)
        keys = [None] * len(values)
        if partitioner.select is not None:
            keys = extracted_keys(partitioner.select, elements, partitioner.codec.key_type)
            self._subtask_of.check_all(keys, elements.values)
            keys = keys if self._only_looks else own_each(keys)
        groups = by_pane(partitioner.panes, timestamps)
        for pane, indices in groups:
            self._counts[pane] += len(values) if indices is None else len(indices)
        self._reduce(groups, keys, values)

    def _reduce(self, groups: list[tuple[int, Indices | None]], keys: list[Any], values: list[Any]) -> None:
        for pane, failed in self._values.add(groups, keys, values):
            self._subtask_of.check(failed.key, element=failed.element)
            error = self._failed(failed.error, key=failed.key, element=failed.element)
            self._failures.append((pane, type(error).__name__, str(error)))

    def _timestamps(self, elements: Elements) -> TimeArray:
        try:
            times: TimeArray = times_of(elements)
        except (TypeError, pa.ArrowInvalid):
            element = elements.values[elements.timestamps.index(None)]
            raise self._failed(no_timestamp(), element=element) from None
        return times

    def _failed(self, error: Exception, **what: object) -> Exception:
        """Return the error for an element that the windows cannot take."""
        return user_function_error(
            self._partitioner.operator, error, during=HANDLING, advice=DEAD_LETTER_ADVICE, **what
        )

    def _as_declared(self, elements: Elements) -> list[Any]:
        """The values as they would be after the shuffle: of their declared type."""
        kind = self._partitioner.codec.value_type
        if kind.is_pickled or elements.columns is not None:
            return elements.values
        return kind.as_declared(elements.values)

    def _pack(self) -> Iterator[tuple[int, bytes]]:
        """Give the reduced values of each subtask, in frames of a handy size."""
        keys, values, panes = self._values.taken()
        values = self._parts(values)
        counts, self._counts = list(self._counts.items()), Counter()
        failures, self._failures = self._failures, []
        if failures and not keys:
            yield 0, self._encoded(Partials([], [], [], counts, 0, failures), 0, 0)
        for subtask, indices in self._dealt_out(keys):
            all_of_it = range(len(keys)) if indices is None else indices.tolist()
            for start in range(0, len(all_of_it), _VALUES_OF_A_FRAME):
                some = all_of_it[start : start + _VALUES_OF_A_FRAME]
                some_values = [values[i] for i in some]
                part = Partials([keys[i] for i in some], some_values, [panes[i] for i in some], counts, 0, failures)
                counts, failures = [], []  # the first frame tells them
                for content in bounded(partial(self._encoded, part), 0, len(some)):
                    yield subtask, content

    def _encoded(self, part: Partials, begin: int, end: int) -> bytes:
        """Some values of a part as the content of a frame, with a number of its own."""
        self._sent += 1
        there = slice(begin, end)
        counts, failures = ([], []) if begin else (part.counts, part.failures)
        return self._partitioner.codec.encode(
            Partials(part.keys[there], part.values[there], part.panes[there], counts, self._sent, failures)
        )

    def _dealt_out(self, keys: list[Any]) -> Iterator[tuple[int, Indices | None]]:
        if self._partitioner.select is None or not keys:
            return iter([(0, None)])
        return self._subtask_of.dealt_out(keys, None)  # values are no elements any more


def how_to_put_together(aggregate: AggregateFold) -> tuple[str, ...]:
    """How an :class:`Accumulated` of an aggregate function names what is done with each field."""
    return tuple(
        each.value if isinstance(each, How) else "max" if each.by[0][1] else "min" for each in aggregate.fold.fields
    )


_NO_TIMES = np.empty(0, np.int64)


class ByPane:
    """Reduces by pane and key where each pane is a window by itself, so that panes need not be told apart in time."""

    def __init__(self, reduced: Reduced | Aggregated) -> None:
        self._reduced = reduced
        self._kept: defaultdict[int, dict[Any, Any]] = defaultdict(dict)
        self._failed: set[int] = set()
        self._begun_anew: set[tuple[int, Any]] = set()

    @property
    def size(self) -> int:
        """How many values there are."""
        return sum(map(len, self._kept.values()))

    def add(
        self, groups: list[tuple[int, Indices | None]], keys: list[Any], values: list[Any]
    ) -> list[tuple[int, AtElement]]:
        """Take elements, whose indices are grouped by pane.

        Returns:
            The panes in which the reduce function raised, with the error: nothing of such a pane is kept, nor taken
            until :meth:`taken`.
        """
        failed: list[tuple[int, AtElement]] = []
        for pane, indices in groups:
            if pane in self._failed:
                continue
            some_keys, some_values = keys, values
            if indices is not None:
                at = indices.tolist()
                some_keys, some_values = [keys[i] for i in at], [values[i] for i in at]
            try:
                self._reduced.add_each(self._kept[pane], some_keys, some_values, _NO_TIMES)
            except AtElement as error:
                failed.append((pane, error))
                self._failed.add(pane)
                del self._kept[pane]
                continue
            if NoneType in map(type, some_values):
                nones = (key for key, value in zip(some_keys, some_values, strict=True) if value is None)
                self._begun_anew.update((pane, key) for key in nones)
        return failed

    def taken(self) -> tuple[list[Any], list[Any], list[int]]:
        """Keys, values and panes, which are forgotten here.

        Where there was None among the elements, which drops what was there before, the value is an
        :class:`Accumulated` that says so.
        """
        keys: list[Any] = []
        values: list[Any] = []
        panes: list[int] = []
        for pane, kept in self._kept.items():
            keys += kept
            values += [
                Accumulated(value, ()) if (pane, key) in self._begun_anew else value
                for key, (value, *_) in kept.items()
            ]
            panes += [pane] * len(kept)
        self._kept.clear()
        self._failed.clear()
        self._begun_anew.clear()
        return keys, values, panes


class InRuns:
    """Reduces what a key has of one pane in a row.

    A window that has several panes wants the elements of a key in the order of their arrival: so a run ends where the
    next element of its key is of another pane. Where there was None among the elements, which drops what was there
    before, a run is given as an :class:`Accumulated` that says so.
    """

    def __init__(self, reduced: Reduced) -> None:
        self._reduced = reduced
        self._open: dict[Any, list[Any]] = {}
        self._ended: list[tuple[Any, Any, int, bool]] = []
        self._failed: set[int] = set()

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self._ended) + len(self._open)

    def add(
        self, groups: list[tuple[int, Indices | None]], keys: list[Any], values: list[Any]
    ) -> list[tuple[int, AtElement]]:
        """Take elements, whose indices are grouped by pane.

        Returns:
            The panes in which the reduce function raised, with the error: nothing of such a pane is given by
            :meth:`taken`, nor taken until then.
        """
        reduce, running, failed_panes = self._reduced.function.reduce, self._open, self._failed
        keeps = not is_bare(reduce)
        failed: list[tuple[int, AtElement]] = []
        for key, value, pane in zip(keys, values, _pane_of_each(groups, len(keys)), strict=True):
            if pane in failed_panes:
                continue
            try:
                run = running.get(key)
                if run is None:
                    running[key] = [value, pane, value is None]
                elif run[1] == pane and value is None:
                    run[0], run[2] = None, True
                elif run[1] == pane:
                    before = run[0]
                    result = value if before is None else reduce(before, value)
                    run[0] = own_unless(result, before) if keeps else result
                else:
                    self._ended.append((key, *run))
                    running[key] = [value, pane, value is None]
            except Exception as error:
                failed.append((pane, AtElement(error, key, value)))
                failed_panes.add(pane)
        return failed

    def taken(self) -> tuple[list[Any], list[Any], list[int]]:
        """Keys, values and panes, which are forgotten here; those of one key in their order."""
        runs = [*self._ended, *((key, *run) for key, run in self._open.items())]
        if self._failed:
            runs = [run for run in runs if run[2] not in self._failed]
        self._ended, self._open, self._failed = [], {}, set()
        keys, panes = (list(map(itemgetter(i), runs)) for i in (0, 2))
        values = [Accumulated(value, ()) if is_anew else value for _, value, _, is_anew in runs]
        return keys, values, panes


def _pane_of_each(groups: list[tuple[int, Indices | None]], count: int) -> list[int]:
    """The pane of each of `count` elements."""
    panes = np.empty(count, np.int64)
    for pane, indices in groups:
        panes[slice(None) if indices is None else indices] = pane
    numbers: list[int] = panes.tolist()
    return numbers


_COUNTS = b"counts"
_KEYS = b"keys"
# The end of a frame: after the columns, which have to stay aligned.
_PICKLED = b"P"
_COLUMNS = b"C"


@dataclass(frozen=True, slots=True)
class Partials:
    """Reduced elements: keys and values side by side, with where their pane starts, in milliseconds.

    Those of one key are in the order of arrival. ``counts`` says how many elements were reduced, as (pane, number), for
    all subtasks: one of them is told. The watermark is the same in each, so a pane is late for all of them or for none.

    So it is with ``failures``: the panes in which the function raised, as (pane, class of the error, text). Whether a
    pane is late, which the function should not have seen then, is known to the operator alone.
    """

    keys: list[Any]
    values: list[Any]
    panes: list[int]
    counts: list[tuple[int, int]]
    first: int
    failures: list[tuple[int, str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        """How many elements are counted here."""
        return sum(number for _, number in self.counts)

    @property
    def is_unread(self) -> bool:
        """False, because it consists of Python objects."""
        return False

    def numbers(self) -> None:
        """None, because reduced elements have no sequence numbers."""

    def cut(self, begin: int, point: int) -> tuple[Partials, None]:
        """The whole, uncut, because reduced elements have no sequence numbers."""
        return self, None


@dataclass(frozen=True, slots=True)
class PartialsCodec:
    """Arrow columns where nothing is lost on that way, else one pickle of all.

    What is in the midst of being reduced need not fit the declared type yet: a sum may be too large for it until a
    window function divides it.
    """

    value_type: TypeInformation
    key_type: TypeInformation

    def encode(self, partials: Partials) -> bytes:
        """Reduced elements to bytes.

        Raises:
            DataError: if a value cannot be pickled.
        """
        keys, values = partials.keys, partials.values
        value_column = None if partials.failures else self._column_of(values)
        key_column = None if self.key_type.is_pickled else self.key_type.to_arrow(keys)
        if self._keys_are_pickled:
            key_column = None
        try:
            if value_column is None:
                keys = keys if key_column is None else self.key_type.from_arrow(key_column)
                content = (keys, values, partials.panes, partials.counts, partials.first, partials.failures)
                return dumps(content) + _PICKLED
            beside = {_COUNTS: json.dumps([partials.counts, partials.first]).encode()}
            if key_column is None:
                beside[_KEYS] = dumps(keys)
        except Exception as error:
            raise DataError(f"a key, or what the reduce function gave, cannot be pickled: {error!r}") from error
        columns = {"value": value_column, "pane": pa.array(partials.panes, pa.int64())}
        if key_column is not None:
            columns["key"] = key_column
        return encode_table(pa.table(columns, metadata=beside)) + _COLUMNS

    @property
    def _keys_are_pickled(self) -> bool:
        return self.key_type.is_pickled or self.key_type.has_exponents

    def _column_of(self, values: list[Any]) -> pa.Array | None:
        """The values as a column; None if they would not come back as they are."""
        if not self.value_type.keeps(values):
            return None
        try:
            return self.value_type.to_arrow(values)
        except (DataError, ValueError, OverflowError):
            return None  # too large a number, say: it need not fit before it is done

    def decode(self, data: bytes) -> Partials:
        """The inverse of :meth:`encode`."""
        content, form = data[:-1], data[-1:]
        if form == _PICKLED:
            return Partials(*loads(content))
        table = decode_table(content)
        counts, first = json.loads(table.schema.metadata[_COUNTS])
        if self._keys_are_pickled:
            keys = loads(table.schema.metadata[_KEYS])
        else:
            keys = self.key_type.from_arrow(table.column("key"))
        values = self.value_type.from_arrow(table.column("value"))
        return Partials(keys, values, table.column("pane").to_pylist(), list(map(tuple, counts)), first)

    def size(self, data: bytes) -> int:
        """How many bytes they have: they are not sent in fewer."""
        return len(data)


Indices: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""Indices of elements in a batch, rising."""


def by_pane(panes: Panes, timestamps: TimeArray) -> list[tuple[int, Indices | None]]:
    """The elements of each pane, in the order of time; None stands for all elements, where there is but one pane.

    >>> from eventide.runtime.columnar.panes import RegularPanes
    >>> by_pane(RegularPanes(10, 10), np.array([1, 12, 3]))
    [(0, array([0, 2])), (10, array([1]))]
    >>> by_pane(RegularPanes(10, 10), np.array([1, 3]))
    [(0, None)]
    """
    ends = panes.start_of(np.array([timestamps.min(), timestamps.max()]))
    if ends[0] == ends[1]:
        return [(int(ends[0]), None)]
    return by_pane_start(panes.start_of(timestamps))


def by_pane_start(starts: TimeArray) -> list[tuple[int, Indices | None]]:
    """The elements of each pane, in the order of time, from where the pane of each starts.

    >>> by_pane_start(np.array([0, 10, 0]))
    [(0, array([0, 2])), (10, array([1]))]
    """
    distinct, codes = np.unique(starts, return_inverse=True)
    narrow = codes.astype(np.uint16) if len(distinct) < 1 << 16 else codes  # numpy sorts 16 bits by radix
    order = np.argsort(narrow, kind="stable")
    cuts = np.cumsum(np.bincount(codes, minlength=len(distinct)))[:-1]
    return list(zip(distinct.tolist(), np.split(order, cuts), strict=True))


def together(groups: list[Indices | None]) -> Indices | None:
    """The indices of several panes in the order of arrival; None stands for all there are."""
    if len(groups) == 1:
        return groups[0]
    return np.sort(np.concatenate([group for group in groups if group is not None]))
