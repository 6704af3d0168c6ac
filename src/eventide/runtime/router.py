"""Deals out what leaves a task: elements to the subtasks of their keys, signals to every subtask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eventide.errors import DataError, TypeMismatch
from eventide.runtime.chain import ChainNode, Edge
from eventide.runtime.columns import Batch
from eventide.runtime.events import Signal
from eventide.runtime.frames import Frame
from eventide.runtime.invoke import user_function_error
from eventide.runtime.outlets import Outbox


class Router:
    """Gathers what one task sends on each edge in one round, and packs it into frames.

    ``place`` is the index of the task among its like. ``shared`` are the outboxes, by place of their edge, that belong
    to someone else, who gives away what is in them.
    """

    def __init__(
        self, root: ChainNode, channel: str, place: int, shared: Mapping[tuple[int, int], Outbox] | None = None
    ) -> None:
        self._channel = channel
        self._shared = shared or {}
        self._own = [edge for edge in root.all_edges() if edge.place not in self._shared]
        self._outboxes = dict(self._shared)
        self._outboxes |= {edge.place: edge.outlet.open(edge.producer, place, edge.subtasks) for edge in self._own}

    @property
    def size(self) -> int:
        """How many elements are waiting in the outboxes of its own."""
        return sum(self._outboxes[edge.place].size for edge in self._own)

    def send(self, edge: Edge, batch: Batch) -> None:
        """Take elements that leave on an edge."""
        self._outboxes[edge.place].add(batch)

    def element_frames(self, round_: int) -> Iterator[Frame]:
        """Pack and give away what is waiting.

        Raises:
            TypeMismatch: if an element does not match the type that was declared for it.
        """
        for edge in self._own:
            yield from packed(edge, self._outboxes[edge.place], self._channel, round_)

    def signal_frames(
        self, edge: Edge, signal: Signal, round_: int, content: Any = None, channel: str | None = None
    ) -> Iterator[Frame]:
        """Tell every subtask behind an edge, in the name of another channel if need be; sinks have no clock."""
        name = self._channel if channel is None else channel
        if edge.has_watermarks:
            for subtask in range(edge.subtasks):
                yield Frame(edge.target, subtask, signal, round_, edge.number, name, content)


def packed(edge: Edge, outbox: Outbox, channel: str, round_: int) -> Iterator[Frame]:
    """What is waiting in an outbox, as frames."""
    try:
        for subtask, content in outbox.take():
            yield Frame(edge.target, subtask, Signal.ELEMENTS, round_, edge.number, channel, content)
    except DataError as error:
        typed = isinstance(error, TypeMismatch)
        during = "when its elements were " + ("brought to their declared type" if typed else "sent on")
        raise user_function_error(edge.producer, error, during=during) from error
