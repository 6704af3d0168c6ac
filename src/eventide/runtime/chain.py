"""Chained functions: what runs on elements between a source or an operator and the next shuffle."""

from __future__ import annotations

import datetime
import math
import operator as python_operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from eventide.common._ms import MAX_MS, MIN_MS
from eventide.common.watermark_strategy import WatermarkStrategy
from eventide.errors import DataError
from eventide.runtime.codec import ElementCodec
from eventide.runtime.events import Elements, own
from eventide.runtime.invoke import user_function_error


class Step(Protocol):
    """A function on elements that keeps no state."""

    @property
    def name(self) -> str:
        """The operator's name."""

    @property
    def user_function(self) -> Any:
        """What the user wrote, to be opened and closed."""

    def apply(self, elements: Elements) -> Elements:
        """The elements that come out."""


@dataclass(frozen=True, slots=True)
class Map:
    """One element for one."""

    name: str
    call: Callable[[Any], Any]
    user_function: Any

    def apply(self, elements: Elements) -> Elements:
        """Call the function with each element."""
        call, results = self.call, []
        try:
            for value in elements.values:
                results.append(call(value))
        except Exception as error:
            raise _error(self.name, error, elements, len(results)) from error
        return Elements(results, elements.timestamps, elements.order)


@dataclass(frozen=True, slots=True)
class Filter:
    """The elements for which the function is true."""

    name: str
    call: Callable[[Any], Any]
    user_function: Any

    def apply(self, elements: Elements) -> Elements:
        """Call the function with each element."""
        call, kept = self.call, []
        try:
            for value in elements.values:
                kept.append(bool(call(value)))
        except Exception as error:
            raise _error(self.name, error, elements, len(kept)) from error
        return Elements(
            [v for v, keep in zip(elements.values, kept, strict=True) if keep],
            [t for t, keep in zip(elements.timestamps, kept, strict=True) if keep],
            [o for o, keep in zip(elements.order, kept, strict=True) if keep],
        )


@dataclass(frozen=True, slots=True)
class FlatMap:
    """Any number of elements for one."""

    name: str
    call: Callable[[Any], Iterable[Any] | None]
    user_function: Any

    def apply(self, elements: Elements) -> Elements:
        """Call the function with each element; its results keep the element's timestamp and place."""
        out, done = Elements(), 0
        try:
            for value, timestamp, order in zip(elements.values, elements.timestamps, elements.order, strict=True):
                for result in self.call(value) or ():
                    out.append(result, timestamp, order)
                done += 1
        except Exception as error:
            raise _error(self.name, error, elements, done) from error
        return out


@dataclass(frozen=True, slots=True)
class AssignTimestamps:
    """Gives elements their event time; the watermarks of its strategy replace those that came before.

    ``number`` tells the assigners of a program apart. Flink: ``TimestampsAndWatermarksOperator``.
    """

    name: str
    number: int
    strategy: WatermarkStrategy

    @property
    def user_function(self) -> Any:
        """A timestamp assigner is not opened."""
        return None

    def apply(self, elements: Elements) -> Elements:
        """Extract and check each timestamp."""
        extract = self._extractor()
        timestamps: list[int | None] = []
        try:
            for value, record_timestamp in zip(elements.values, elements.timestamps, strict=True):
                timestamp = extract(value, MIN_MS if record_timestamp is None else record_timestamp)
                timestamps.append(timestamp if _is_sound(timestamp) else _checked(timestamp))
        except Exception as error:
            raise _error(self.name, error, elements, len(timestamps)) from error
        return Elements(elements.values, timestamps, elements.order)

    def _extractor(self) -> Callable[[Any, int], Any]:
        if self.strategy.timestamp_assigner is not None:
            return self.strategy.timestamp_assigner.extract_timestamp
        column = self.strategy.timestamp_column
        if isinstance(column, str):
            return lambda value, _: to_epoch_ms(value[column])
        return lambda _, record_timestamp: None if record_timestamp == MIN_MS else record_timestamp


def to_epoch_ms(value: Any) -> Any:
    """A date and time as milliseconds since the epoch (one without a zone is UTC); anything else as it is.

    >>> to_epoch_ms(datetime.datetime(1970, 1, 1, 0, 0, 1))
    1000
    """
    if not isinstance(value, datetime.datetime):
        return value
    aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return (aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)


def _is_sound(timestamp: Any) -> bool:
    return type(timestamp) is int and MIN_MS < timestamp <= MAX_MS


def _checked(timestamp: Any) -> int:
    """Turn an unusual timestamp into an int, or say what is wrong with it."""
    advice = "a timestamp assigner must return milliseconds since the epoch as an int"
    if timestamp is None:
        raise DataError(f"the timestamp is None; {advice}")
    if isinstance(timestamp, float) and math.isnan(timestamp):
        raise DataError(f"the timestamp is NaN; {advice}")
    if isinstance(timestamp, bool) or not hasattr(timestamp, "__index__"):
        raise DataError(f"the timestamp {timestamp!r} is a {type(timestamp).__name__}, not an integer; {advice}")
    number = python_operator.index(timestamp)
    if not _is_sound(number):
        raise DataError(f"the timestamp {number} is out of range ({MIN_MS + 1} to {MAX_MS}); {advice}")
    return number


def _error(name: str, error: Exception, elements: Elements, done: int) -> Exception:
    return user_function_error(name, error, during="while it handled an element", element=elements.values[done])


@dataclass(frozen=True, slots=True)
class Edge:
    """The way from a task to the stage or sink ``target``: how elements are keyed, dealt out, and encoded.

    ``number`` tells the ways into one target apart; it is what the state of the target knows them by.
    ``assigner`` is the number of the last :class:`AssignTimestamps` before it in its task, whose watermarks it
    carries; None where it carries those of the stage. ``producer`` is the operator whose output it takes.
    """

    number: int
    target: int
    producer: str
    codec: ElementCodec
    subtasks: int
    key_selector: Callable[[Any], Any] | None = None
    max_parallelism: int = 1
    assigner: int | None = None
    has_watermarks: bool = True

    @property
    def place(self) -> tuple[int, int]:
        """What tells it apart from every other edge of the job."""
        return self.target, self.number


@dataclass(frozen=True, slots=True)
class ChainNode:
    """A step with what follows it; the root has no step. ``tag`` names the side output that it listens to."""

    step: Step | None = None
    tag: str | None = None
    nodes: tuple[ChainNode, ...] = ()
    edges: tuple[Edge, ...] = ()

    def all_nodes(self) -> Iterable[ChainNode]:
        """This node and all that follow it in the task."""
        yield self
        for node in self.nodes:
            yield from node.all_nodes()

    def all_edges(self) -> list[Edge]:
        """The edges that leave the task, in a defined order."""
        return sorted((e for node in self.all_nodes() for e in node.edges), key=lambda e: e.place)


@dataclass(slots=True)
class ChainRun:
    """One pass of elements through a chain.

    ``send`` takes what leaves on each edge. ``highest`` gathers, by assigner, the highest timestamp that it gave.
    """

    send: Callable[[Edge, Elements], None]
    highest: dict[int, int] = field(default_factory=dict)

    def push(self, root: ChainNode, outputs: Mapping[str | None, Elements]) -> None:
        """Run the outputs of a source or operator, by side output (None: the main one), through what follows it."""
        self._run(root, outputs.get(None))
        for node in root.nodes:
            if node.tag is not None:
                self._run(node, outputs.get(node.tag))

    def _run(self, node: ChainNode, elements: Elements | None) -> None:
        if elements and node.step is not None:
            elements = node.step.apply(elements)
            if elements and isinstance(node.step, AssignTimestamps):
                highest = max(t for t in elements.timestamps if t is not None)
                self.highest[node.step.number] = max(highest, self.highest.get(node.step.number, MIN_MS))
        if not elements:
            return
        for edge in node.edges:
            self.send(edge, elements)
        followers = [child for child in node.nodes if child.tag is None]
        shared = len(followers) + len(node.edges) > 1
        for child in followers:
            self._run(child, _own_copy(elements) if shared else elements)

    def watermark_of(self, root: ChainNode, assigner: int) -> int | None:
        """The candidate watermark of an assigner after this run, in milliseconds; None where it has none."""
        highest = self.highest.get(assigner)
        if highest is None:
            return None
        for node in root.all_nodes():
            if isinstance(node.step, AssignTimestamps) and node.step.number == assigner:
                return node.step.strategy.generator.watermark_for(highest)
        return None


def _own_copy(elements: Elements) -> Elements:
    """The elements for one of several followers: what one changes in place, another must not see."""
    return Elements([own(value) for value in elements.values], elements.timestamps, elements.order)
