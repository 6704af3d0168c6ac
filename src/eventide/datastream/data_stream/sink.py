"""Sinks of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Self

from eventide.common.job import JobClient
from eventide.common.type_variables import T_co
from eventide.datastream._hints import SinkHints
from eventide.plan.graph import SinkTransformation


class DataStreamSink(SinkHints):
    """A sink in the program, to be named. Flink: ``DataStreamSink``."""

    def __init__(self, transformation: SinkTransformation) -> None:
        self._transformation = transformation

    def name(self, name: str) -> Self:
        """Name the sink."""
        self._transformation.name = name
        return self

    def uid(self, uid: str) -> Self:
        """Give the sink an id of its own in the program, which the checkpoint remembers.

        A sink keeps no state, so a job goes on whether or not its sinks, or their ids, have changed.
        """
        self._transformation.uid = uid
        return self


class CloseableIterator(Generic[T_co]):
    """The elements that a job collects, as they come. Closing it cancels the job.

    Use it in a ``with`` block, or run it to its end.
    """

    def __init__(self, client: JobClient) -> None:
        self._client = client
        self._elements: Iterator[T_co] = client.collected()

    def __iter__(self) -> Iterator[T_co]:
        return self

    def __next__(self) -> T_co:
        return next(self._elements)

    def next(self) -> T_co:
        """The next element; raises StopIteration when the job has ended."""
        return next(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the job if it has not ended."""
        if not self._client.get_job_status().result().is_globally_terminal_state():
            self._client.cancel().result()
