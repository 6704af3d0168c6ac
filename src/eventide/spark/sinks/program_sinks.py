"""Sinks whose elements come to the program: printing and collecting ones.

The thread of the query hands elements over to the program: they are printed there, or taken when it likes.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame

from eventide.connectors.sink import CollectSink, PrintSink, Sink
from eventide.plan.job import SinkSpec
from eventide.runtime.exchange.frames import Frame
from eventide.spark.query.frame_rows import frame_of, in_channels


class ProgramSinks:
    """The sinks of a job that hand their elements to its program; others among those that are given are left out."""

    def __init__(self, sinks: Iterable[SinkSpec], hand_over: ResultHandover) -> None:
        self.specs = of_the_program(sinks)
        self._hand_over = hand_over

    def receive(self, batch: int, frames: Iterable[Frame]) -> None:
        """Hand over the elements of one micro-batch, given its frames, of whatever sinks."""
        elements = in_channels(frames, self.specs)
        self._hand_over(batch, ((spec.sink, value) for spec, some in elements for value in some.values))


def of_the_program(sinks: Iterable[SinkSpec]) -> dict[int, SinkSpec]:
    """The sinks of a job whose elements come to the program, by their numbers."""
    return {sink.number: sink for sink in sinks if isinstance(sink.sink, PrintSink | CollectSink)}


class DriverSinks:
    """Hands over the elements of a micro-batch to the program, in the process where it ends, before it is committed."""

    def __init__(self, sinks: ProgramSinks) -> None:
        self._sinks = sinks

    def __call__(self, frames: DataFrame, batch_id: int) -> None:
        """Hand over; all frames are read, whatever is there of them."""
        rows = [row for row in frames.collect() if row.target in self._sinks.specs]
        try:
            self._sinks.receive(batch_id, map(frame_of, rows))
        except Stopped:
            # Whatever is asked of Spark in a query that has been stopped makes it end, without a word and a commit.
            frames.sparkSession.range(1).collect()
            raise


_MOST_WAITING = 10_000


class Stopped(Exception):
    """Somebody has stopped the query whose element waits to be taken."""


class Collected:
    """A queue with limited room for elements: a producer waits while it is full.

    So a query goes no further than its program takes: while a micro-batch waits here, Spark begins no other.

    It ends in one of two ways: the query says that it has ended, or the program that no more is wanted. In either case
    no thread waits any longer, what is put in from then on is dropped, and what is in it can still be taken. A query
    that is stopped while an element waits ends it too, but must not think that the element has been taken: putting it
    in raises `Stopped`.

    >>> collected = Collected(most_waiting=2)
    >>> collected.put("a")
    >>> collected.close()
    >>> list(collected)
    ['a']
    """

    def __init__(self, most_waiting: int = _MOST_WAITING) -> None:
        self._most_waiting: float = most_waiting
        self._elements: deque[Any] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._is_stopped = False
        self.given = 0
        """How many elements have been handed over."""

    @property
    def taken(self) -> int:
        """How many of them the program has."""
        return self.given - len(self._elements)

    @property
    def is_full(self) -> bool:
        """Whether a producer must wait."""
        return len(self._elements) >= self._most_waiting

    def put(self, element: object) -> None:
        """Hand an element over, as soon as there is room.

        Raises:
            Stopped: if the query has been stopped meanwhile.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or not self.is_full)
            if self._is_stopped:
                raise Stopped
            if not self._is_closed:
                self._elements.append(element)
                self.given += 1
                self._changed.notify_all()

    def hold_the_rest(self) -> None:
        """Make room for all that follows, because it is the rest of the last micro-batch of the job."""
        with self._changed:
            self._most_waiting = math.inf
            self._changed.notify_all()

    def close(self) -> None:
        """Say that nothing will follow, or that it is not wanted."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Say that nothing will follow, because the query has been stopped before its elements were taken."""
        with self._changed:
            self._is_stopped |= not self._is_closed
            self.close()

    def __iter__(self) -> Collected:
        return self

    def __next__(self) -> Any:
        """The next element, as soon as there is one; StopIteration when there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._elements)
            if not self._elements:
                raise StopIteration
            element = self._elements.popleft()
            self._changed.notify_all()
            return element


class TakenResults:
    """The elements of a queue as one program takes them; when it has forgotten them, the job does not wait for it.

    Args:
        collected: the queue.
        at_end: called after the last element; it raises what made the job fail.
    """

    def __init__(self, collected: Collected, at_end: Callable[[], Any]) -> None:
        self._collected = collected
        self._at_end = at_end

    def __iter__(self) -> TakenResults:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._collected)
        except StopIteration:
            self._at_end()
            raise

    def __del__(self) -> None:
        self._collected.close()


class ResultHandover:
    """Prints elements, or gives them to the program, and knows how far it has come in a micro-batch.

    It lives as long as the job, and a job that starts again repeats the micro-batch that failed. What a micro-batch
    gives is the same then, so those elements that were handed over are passed over.

    Args:
        take: gets each element of a collecting sink.

    >>> from eventide.connectors.sink import CollectSink
    >>> taken = []
    >>> hand_over = ResultHandover(taken.append)
    >>> hand_over(0, [(CollectSink(), "a")])
    >>> hand_over(0, [(CollectSink(), "a"), (CollectSink(), "b")])  # the same one, which has more this time
    >>> hand_over(1, [(CollectSink(), "c")])
    >>> taken
    ['a', 'b', 'c']
    """

    def __init__(self, take: Callable[[Any], None]) -> None:
        self._take = take
        self._batch = -1
        self._done = 0

    def __call__(self, batch: int, elements: Iterable[tuple[Sink, Any]]) -> None:
        """Hand over what a micro-batch has, in its order, each element with its sink; nothing of an earlier one."""
        if batch < self._batch:
            return
        if batch > self._batch:
            self._batch, self._done = batch, 0
        for sink, value in islice(elements, self._done, None):
            if isinstance(sink, PrintSink):
                print(sink.line(value))  # noqa: T201 - its purpose
            else:
                self._take(value)
            self._done += 1
