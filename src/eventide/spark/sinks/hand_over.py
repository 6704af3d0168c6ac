"""Hand-over of elements to the driver, to be printed or collected: each once, though its micro-batch is run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from eventide.connectors.sink import CollectSink, PrintSink


class HandOver:
    """Prints elements, or gives them to the program, and knows how far it has come in a micro-batch.

    It lives as long as the job, and a job that starts again repeats the micro-batch that failed. What a micro-batch
    gives is the same then, so those elements that were handed over are passed over.

    Args:
        take: gets each element of a collecting sink.

    >>> from eventide.connectors.sink import CollectSink
    >>> taken = []
    >>> hand_over = HandOver(taken.append)
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

    def __call__(self, batch: int, elements: Iterable[tuple[PrintSink | CollectSink, Any]]) -> None:
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
