"""Deals out what leaves a task: elements to the subtasks of their keys, signals to every subtask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from eventide.errors import DataError
from eventide.runtime.chain import ChainNode, Edge
from eventide.runtime.events import Elements, Signal
from eventide.runtime.frames import Frame
from eventide.runtime.invoke import user_function_error
from eventide.runtime.keys import key_group, subtask_of, unhashable


class Router:
    """Gathers the elements that one task sends in one round, and packs them into frames.

    ``place`` is the index of the task among its like; what goes to a sink stays at that place.
    """

    def __init__(self, root: ChainNode, channel: str, place: int) -> None:
        self._edges = root.all_edges()
        self._channel = channel
        self._place = place
        self._waiting: dict[tuple[int, int], dict[int, Elements]] = {edge.place: {} for edge in self._edges}
        self._subtask_of: dict[tuple[int, int], dict[Any, int]] = {edge.place: {} for edge in self._edges}
        self.size = 0

    def send(self, edge: Edge, elements: Elements) -> None:
        """Take elements that leave on an edge."""
        self.size += len(elements)
        if edge.key_selector is None:
            self._keep_together(edge, elements)
        else:
            self._deal_out(edge, edge.key_selector, elements)

    def _keep_together(self, edge: Edge, elements: Elements) -> None:
        buffer = self._waiting[edge.place].setdefault(self._place % edge.subtasks, Elements())
        buffer.values += elements.values
        buffer.timestamps += elements.timestamps
        buffer.order += elements.order

    def _deal_out(self, edge: Edge, select: Callable[[Any], Any], elements: Elements) -> None:
        known, buffers, value = self._subtask_of[edge.place], self._waiting[edge.place], None
        try:
            for value, timestamp, order in zip(elements.values, elements.timestamps, elements.order, strict=True):
                key = select(value)
                try:
                    subtask = known.get(key)
                except TypeError as error:
                    raise unhashable(key) from error
                if subtask is None:
                    group = key_group(key, edge.max_parallelism)
                    subtask = known[key] = subtask_of(group, edge.max_parallelism, edge.subtasks)
                buffer = buffers.get(subtask)
                if buffer is None:
                    buffer = buffers[subtask] = Elements()
                buffer.append(value, timestamp, order)
                buffer.keys.append(key)
        except Exception as error:
            raise user_function_error(edge.producer, error, during="when a key was extracted", element=value) from error

    def element_frames(self, round_: int) -> Iterator[Frame]:
        """Pack and give away what is waiting.

        Raises:
            TypeMismatch: if an element does not match the type that was declared for it.
        """
        for edge in self._edges:
            for subtask in range(edge.subtasks):
                elements = self._waiting[edge.place].pop(subtask, None)
                if elements:
                    yield self._frame(edge, subtask, Signal.ELEMENTS, round_, self._encode(edge, elements))
        self.size = 0

    def _encode(self, edge: Edge, elements: Elements) -> bytes:
        try:
            return edge.codec.encode(elements)
        except DataError as error:
            raise user_function_error(
                edge.producer, error, during="when its elements were brought to their declared type"
            ) from error

    def signal_frames(self, edge: Edge, signal: Signal, round_: int, content: Any = None) -> Iterator[Frame]:
        """Tell every subtask behind an edge; sinks are not told, they have no clock."""
        if edge.has_watermarks:
            for subtask in range(edge.subtasks):
                yield self._frame(edge, subtask, signal, round_, content)

    def _frame(self, edge: Edge, subtask: int, signal: Signal, round_: int, content: Any) -> Frame:
        return Frame(edge.target, subtask, signal, round_, edge.number, self._channel, content)
