"""Frames, the large, opaque rows that travel from task to task, and the reports on event time that they carry.

``Inbox`` puts what came to a task in a micro-batch in order.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple

from eventide.runtime.exchange.partitioners import Codec, Payload, StreamPartitioner

METRICS = -1
"""The target of frames that are meant for the driver."""

ALIGNMENT = -2
"""The target of the frame that says where sources stand that wait for each other; the host keeps its content."""

REACHED = -3
"""The target of the frame that says which watermark an operator stands at; the host keeps its content."""

_ALIGNED = 16
_HEADER = struct.Struct("<BiiiI")


class Signal(IntEnum):
    """Kind of content of a frame."""

    ELEMENTS = 0
    REPORTS = 1
    END_OF_SOURCE = 2
    METRICS = 3
    OBSERVED = 4


_JSON = frozenset({Signal.METRICS, Signal.OBSERVED})

START_OF_BATCH = -1
"""The point before the first element of a micro-batch."""

END_OF_BATCH = 1 << 30
"""The point after the last element of a micro-batch."""

END_OF_INPUT = (1 << 31) - 1
"""The point at which the input as a whole ends."""

_LAST = (1 << 63) - 1

BY_ELEMENT = -2
"""Stands for a point where each element has its own: its number in its channel."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message from a task to one subtask of an operator, or to a sink: its ``target``.

    ``point`` is where its elements take effect: those of a point come before what is reported at it, and all of a point
    before the next. ``channel`` is the split or the subtask that sends, ``task`` the index of the task, because
    several may have elements of one split. ``content`` depends on the signal: encoded elements (bytes, or a view of
    them), a list of :class:`WatermarkReport`, counters (a dict), what observers of tasks tell each other (a dict of
    JSON values), or None.
    """

    target: int
    subtask: int
    signal: Signal
    point: int
    edge: int
    channel: str
    content: Any = None
    task: int = 0

    def to_bytes(self) -> bytes:
        """All but ``target`` and ``subtask``, which stand beside the bytes to route them.

        The layout is little-endian: signal (1 byte), point (4), edge (4), task (4), length of the channel's name (4),
        the name in UTF-8, zeros up to a multiple of 16 bytes, which Arrow's columns need to be read where they are, the
        content.
        """
        channel = self.channel.encode()
        head = _HEADER.pack(self.signal, self.point, self.edge, self.task, len(channel))
        padding = bytes(_content_start(len(channel)) - len(head) - len(channel))
        return b"".join((head, channel, padding, _content_to_bytes(self.signal, self.content)))

    @classmethod
    def from_bytes(cls, target: int, subtask: int, data: bytes | memoryview) -> Frame:
        """The inverse of :meth:`to_bytes`."""
        signal, point, edge, task, length = _HEADER.unpack_from(data)
        channel = bytes(data[_HEADER.size : _HEADER.size + length]).decode()
        content = _content_from(Signal(signal), memoryview(data)[_content_start(length) :])
        return cls(target, subtask, Signal(signal), point, edge, channel, content, task)


@dataclass(frozen=True, slots=True)
class Edge:
    """The way from a task to the operator or sink ``target``; its ``partitioner`` says how elements leave.

    ``number`` tells the ways into one target apart in frames; the state of the target knows them by their names.
    ``assigner`` is the number of the last assigner of timestamps before it in its task, whose watermarks it
    carries; None if it carries those of the task. ``producer`` is the operator whose output it takes.
    ``by_element`` says that each element takes effect at a point of its own, its place in its channel. Where
    ``takes_elements`` is False, the target hears what is reported, and nothing else. If not ``is_reported``,
    other tasks report the watermarks of its elements. ``advice_on_key`` and ``advice_on_type`` say what lets a job go
    on that stops at elements without a key, or of another type; empty where nothing would.
    """

    number: int
    target: int
    producer: str
    subtasks: int
    partitioner: StreamPartitioner
    assigner: int | None = None
    has_watermarks: bool = True
    by_element: bool = False
    takes_elements: bool = True
    is_reported: bool = True
    advice_on_key: str = ""
    advice_on_type: str = ""

    @property
    def address(self) -> tuple[int, int]:
        """The address of the edge among all edges of the job."""
        return self.target, self.number


def metrics_frame(content: dict[str, Any]) -> Frame:
    """Make the frame of a task's counts for the driver."""
    return Frame(METRICS, 0, Signal.METRICS, 0, 0, "", content)


class WatermarkReport(NamedTuple):
    """Report of a channel, a split or a subtask, on event time after one point of a micro-batch.

    ``point`` is where: after the element of that number, or one of the constants of this module. ``watermark`` is
    in milliseconds (None: no statement). ``idle`` says that the channel has nothing to say for now (True), or counts
    again (False). ``spoke`` tells whether it had elements in this micro-batch. ``ended`` says that nothing will ever
    follow. ``joined`` says that it is new, and holds the watermark from now on. ``rest`` is one of `Rest`, where that
    has changed. ``source_idle`` says that its source itself has nothing to say for now, whatever the strategies after
    the source say.
    """

    channel: str
    point: int = END_OF_BATCH
    watermark: int | None = None
    idle: bool | None = None
    spoke: bool = False
    ended: bool = False
    joined: bool = False
    rest: str | None = None
    source_idle: bool = False

    @property
    def says_something(self) -> bool:
        """Whether anyone has to hear of it."""
        return self != WatermarkReport(self.channel, self.point)


def _content_start(channel: int) -> int:
    return -(-(_HEADER.size + channel) // _ALIGNED) * _ALIGNED


def _content_to_bytes(signal: Signal, content: Any) -> Any:
    if signal is Signal.ELEMENTS:
        return content  # bytes already, and many
    if signal is Signal.REPORTS:
        return json.dumps(list(zip(*content, strict=True))).encode()  # field by field: twice as quick as one by one
    if signal in _JSON:
        return json.dumps(content).encode()
    return b""


def _content_from(signal: Signal, data: memoryview) -> Any:
    if signal is Signal.ELEMENTS:
        return data
    if signal is Signal.REPORTS:
        fields = json.loads(bytes(data))
        return list(map(WatermarkReport, *fields)) if fields else []
    if signal in _JSON:
        return json.loads(bytes(data))
    return None


PIECE_BYTES = 256 << 20
"""How many bytes of the input of a subtask are handled at once, about; Python objects count four times their pickle."""

_OBJECTS = 4


@dataclass(slots=True)
class _Waiting:
    """A frame of elements, of which those from index ``begin`` on have not taken effect yet.

    ``payload`` is what it holds; None if that is decoded when it is asked for, and then ``number`` is the number of
    its next element in its channel, or None if its elements have no numbers any more.
    """

    edge: int
    point: int
    content: Any
    codec: Codec
    payload: Payload | None
    number: int | None = None
    weight: int = 0
    begin: int = 0
    is_done: bool = False

    def is_due(self, point: int) -> bool:
        """Whether some of it may take effect up to a point."""
        if self.point == BY_ELEMENT:
            return self.number is None or self.number <= point
        return self.point <= point

    def take(self, point: int, until: int | None) -> Payload | None:
        """Return what takes effect up to a point, of elements with numbers up to another; None if there is nothing."""
        payload = self.codec.decode(self.content) if self.payload is None else self.payload
        limit = until
        if self.point == BY_ELEMENT:
            limit = point if until is None else min(point, until)
        taken: Payload | None = payload
        rest: int | None = None
        if limit is not None or self.begin:
            taken, rest = payload.cut(self.begin, _LAST if limit is None else limit)
        self.begin, self.payload, self.is_done = rest or 0, payload, rest is None
        if self.number is not None and limit is not None:
            self.number = max(self.number, limit + 1)
        return taken


class Inbox:
    """The frames of a micro-batch: elements by the point at which they take effect, and what is reported at each.

    The order of elements is defined: by edge, channel, task and number, whatever the order in which frames came.

    Args:
        frames: the frames.
        codecs: how the elements of each edge are read.
        piece_bytes: how many bytes are taken at once; all of fewer.
    """

    def __init__(self, frames: Iterable[Frame], codecs: Mapping[int, Codec], piece_bytes: int = PIECE_BYTES) -> None:
        self._reports: dict[int, list[tuple[int, WatermarkReport]]] = {}
        self.ended_sources: list[int] = []
        self.observed: list[Frame] = []
        """Frames for the observer of the task."""
        elements = []
        for frame in frames:
            if frame.signal is Signal.ELEMENTS:
                elements.append(frame)
            elif frame.signal is Signal.END_OF_SOURCE:
                self.ended_sources.append(frame.edge)
            elif frame.signal is Signal.OBSERVED:
                self.observed.append(frame)
            else:
                for report in frame.content:
                    self._reports.setdefault(report.point, []).append((frame.edge, report))
        self._piece_bytes = piece_bytes
        size = sum(codecs[frame.edge].size(frame.content) for frame in elements)
        self._is_whole = size * _OBJECTS <= piece_bytes
        waiting = [self._read(frame, codecs[frame.edge]) for frame in elements]
        self._waiting = [one for _, one in sorted(waiting, key=lambda entry: entry[0])]

    def _read(self, frame: Frame, codec: Codec) -> tuple[tuple[int, str, int, int], _Waiting]:
        """A frame with its place in the order; of much input, its Python objects are made again when they are taken."""
        payload = codec.decode(frame.content)
        order = (frame.edge, frame.channel, frame.task, payload.first)
        one = _Waiting(frame.edge, frame.point, frame.content, codec, payload)
        if not self._is_whole:
            numbers = payload.numbers()
            one.number = None if numbers is None else int(numbers[0])
            one.weight = codec.size(frame.content) * (1 if payload.is_unread else _OBJECTS)
            one.payload = payload if payload.is_unread else None
            # A frame whose elements are not in the order of their numbers cannot be cut by them.
            self._is_whole = numbers is not None and bool((numbers[1:] < numbers[:-1]).any())
        return order, one

    def points(self) -> list[int]:
        """The points at which something is reported, and the end of the micro-batch in any case."""
        end = {END_OF_INPUT} if self.ended_sources else set()
        return sorted({*self._reports, END_OF_BATCH, *end})

    def reports(self, point: int) -> list[tuple[int, WatermarkReport]]:
        """Return the reports at a point, by edge and channel."""
        return sorted(self._reports.get(point, ()), key=lambda entry: (entry[0], entry[1].channel))

    def all_reports(self) -> list[tuple[int, WatermarkReport]]:
        """Return the reports at all points, by edge."""
        return [entry for reports in self._reports.values() for entry in reports]

    def elements_until(self, point: int) -> list[tuple[int, Payload]]:
        """The elements that take effect up to a point, and have not been asked for before, each with its edge."""
        return self._take(self._due(point), point, None)

    def pieces_until(self, point: int, edges: Collection[int]) -> Iterator[list[Payload]]:
        """Give the elements of some edges that take effect up to a point, some at a time where there are many.

        One piece after the other, they are in the order in which an operator brings all of them: elements of several
        channels by their numbers, and then by channel. So not all of them have to be Python objects at once.
        """
        while due := [one for one in self._due(point) if one.edge in edges]:
            some, until = (due, None) if self._is_whole else _piece(due, self._piece_bytes)
            payloads = [payload for _, payload in self._take(some, point, until)]
            if payloads:
                yield payloads
            if until is None and some is due:
                return

    def _due(self, point: int) -> list[_Waiting]:
        return [one for one in self._waiting if one.is_due(point)]

    def _take(self, some: list[_Waiting], point: int, until: int | None) -> list[tuple[int, Payload]]:
        taken = [(one.edge, payload) for one in some if (payload := one.take(point, until)) is not None]
        self._waiting = [one for one in self._waiting if not one.is_done]
        return taken


def _piece(due: list[_Waiting], size: int) -> tuple[list[_Waiting], int | None]:
    """The frames of one piece, and the number up to which elements are taken of them; None: all are."""
    if unnumbered := [one for one in due if one.number is None]:  # they come first, so that the others stay in order
        count = sum(1 for total in accumulate(one.weight for one in unnumbered) if total <= size)
        return (due, None) if count >= len(due) else (unnumbered[: max(1, count)], None)
    by_number = sorted(due, key=lambda one: one.number or 0)
    total = 0
    for at, one in enumerate(by_number):
        total += one.weight
        if total > size and (one.number or 0) > (by_number[0].number or 0):
            first = {id(each) for each in by_number[:at]}
            return [each for each in due if id(each) in first], (one.number or 0) - 1
    return due, None
