"""Deals out what leaves a task: elements to the subtasks of their keys, signals to every subtask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from eventide.errors import DataError, TypeMismatch
from eventide.runtime.chain.chain import ChainNode, Edge
from eventide.runtime.chain.key_check import EXTRACTING
from eventide.runtime.elements.columns import Batch
from eventide.runtime.elements.keys import NoKey
from eventide.runtime.eventtime.timestamp_summary import TimestampSummary
from eventide.runtime.exchange.frames import BY_ELEMENT, END_OF_BATCH, END_OF_INPUT, Frame, Signal, WatermarkReport
from eventide.runtime.exchange.partitioners import RecordWriter
from eventide.runtime.invoke import user_function_error
from eventide.runtime.metrics import OperatorCounters

_KEYS_TYPED = "when the keys of its elements were brought to their declared type"

_MANY = 100
"""Number of splits of one task above which the usual disorder of each split is not reported."""


class Router:
    """Gathers what one channel of a task sends on each edge, and packs it into frames.

    ``task`` is the index of the task among its like; ``slot`` says which subtask gets what is not dealt out by key.
    ``shared`` are writers, by the address of their edge, that belong to someone else, who gives away what is in them.
    """

    def __init__(
        self,
        root: ChainNode,
        channel: str,
        task: int,
        slot: int,
        shared: Mapping[tuple[int, int], RecordWriter] | None = None,
    ) -> None:
        self._channel = channel
        self._task = task
        self._shared = shared or {}
        self._own = [edge for edge in root.all_edges() if edge.address not in self._shared]
        self._writers = dict(self._shared)
        self._writers |= {edge.address: edge.partitioner.open(edge.producer, slot, edge.subtasks) for edge in self._own}

    @property
    def size(self) -> int:
        """How many elements are waiting in the writers of its own."""
        return sum(self._writers[edge.address].size for edge in self._own)

    def send(self, edge: Edge, batch: Batch) -> None:
        """Take elements that leave on an edge.

        Raises:
            DataError: if an element is not of its declared type, or has no key.
            UserFunctionError: if a key selector raised.
        """
        try:
            self._writers[edge.address].add(batch)
        except (NoKey, TypeMismatch) as error:
            _refuse(edge, error)

    def element_frames(self, point: int = BY_ELEMENT) -> Iterator[Frame]:
        """Pack and give away what is waiting; on edges by element, each has a point of its own.

        Raises:
            DataError: if an element or its key is not of the type that was declared for it, or cannot be sent.
        """
        for edge in self._own:
            at = BY_ELEMENT if edge.by_element else point
            yield from packed(edge, self._writers[edge.address], self._channel, at, self._task)


def report_frames(edge: Edge, reports: list[WatermarkReport]) -> Iterator[Frame]:
    """Tell every subtask after an edge what channels say; sinks have no clock."""
    said = [report for report in reports if report.says_something]
    return _to_all(edge, Signal.REPORTS, END_OF_BATCH, said) if said else iter(())


def arrival_frames(edge: Edge, arrived: list[tuple[str, TimestampSummary]]) -> Iterator[Frame]:
    """Tell the first subtask after an edge what splits brought: it remembers that for all."""
    if arrived and edge.has_watermarks and edge.takes_elements:
        brief = len(arrived) > _MANY
        content = [[split, arrivals.snapshot(brief=brief)] for split, arrivals in arrived]
        yield Frame(edge.target, 0, Signal.ARRIVALS, END_OF_BATCH, edge.number, "", content)


def count_frames(edges: Sequence[Edge], counted: OperatorCounters) -> Iterator[Frame]:
    """Tell the first subtask after one of some edges the counts of tasks without state: it remembers them."""
    hears = [edge for edge in edges if edge.has_watermarks and edge.takes_elements]
    if hears and counted:
        yield Frame(hears[0].target, 0, Signal.COUNTS, END_OF_BATCH, hears[0].number, "", counted)


def end_frames(edge: Edge) -> Iterator[Frame]:
    """Tell every subtask after an edge that the source as a whole has ended."""
    return _to_all(edge, Signal.END_OF_SOURCE, END_OF_INPUT, None)


def _to_all(edge: Edge, signal: Signal, point: int, content: Any) -> Iterator[Frame]:
    if edge.has_watermarks:
        for subtask in range(edge.subtasks):
            yield Frame(edge.target, subtask, signal, point, edge.number, "", content)


def packed(edge: Edge, writer: RecordWriter, channel: str, point: int, task: int) -> Iterator[Frame]:
    """Give the elements that wait in a writer, as frames.

    Raises:
        DataError: if an element or its key is not of the type that was declared for it, or cannot be sent.
    """
    try:
        for subtask, content in writer.take():
            yield Frame(edge.target, subtask, Signal.ELEMENTS, point, edge.number, channel, content, task)
    except DataError as error:
        _refuse(edge, error)


def _refuse(edge: Edge, error: DataError) -> NoReturn:
    """Say of elements why they cannot leave on an edge, and what would let the job go on.

    Raises:
        DataError: if they are to blame.
        UserFunctionError: if a key selector raised.
    """
    reason: Exception = error
    advice, of = "", {}
    match error:
        case NoKey():
            reason, advice, of = error.error, edge.advice_on_key, error.of
            during = _KEYS_TYPED if isinstance(reason, TypeMismatch) else EXTRACTING
        case TypeMismatch():
            during, advice = "when its elements were brought to their declared type", edge.advice_on_type
        case _:
            during = "when its elements were sent on"
    raise user_function_error(edge.producer, reason, during=during, advice=advice, **of) from reason
