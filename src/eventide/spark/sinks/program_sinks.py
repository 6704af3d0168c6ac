"""Sinks whose elements come to the program: what is printed, and what is collected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame

from eventide.connectors.sink import CollectSink, PrintSink
from eventide.plan.job import SinkSpec
from eventide.runtime.exchange.frames import Frame
from eventide.spark.query.frame_rows import frame_of
from eventide.spark.sinks.collected import HandOver, Stopped


class ProgramSinks:
    """Sinks of a job that hand elements to its program.

    Args:
        sinks: the sinks of the job, of whatever kind.
        hand_over: gets their elements.
    """

    def __init__(self, sinks: Iterable[SinkSpec], hand_over: HandOver) -> None:
        self.specs = of_the_program(sinks)
        self._hand_over = hand_over

    def receive(self, batch: int, frames: Iterable[Frame]) -> None:
        """Hand over the elements of one micro-batch, given its frames, of whatever sinks."""
        self._hand_over(batch, self._values([frame for frame in frames if frame.target in self.specs]))

    def _values(self, received: list[Frame]) -> Iterator[tuple[PrintSink | CollectSink, Any]]:
        """The elements of some frames, each with its sink, in one order."""
        for (target, *_), of_channel in groupby(sorted(received, key=_channel), key=_channel):
            spec = self.specs[target]
            sink: Any = spec.sink
            decoded = [spec.codec.decode(frame.content) for frame in of_channel]
            for elements in sorted(decoded, key=lambda elements: elements.first):
                for value in elements.values:
                    yield sink, value


def of_the_program(sinks: Iterable[SinkSpec]) -> dict[int, SinkSpec]:
    """The sinks of a job whose elements come to the program, by their numbers."""
    return {sink.number: sink for sink in sinks if isinstance(sink.sink, PrintSink | CollectSink)}


class HereAndNow:
    """Hands over the elements of a micro-batch to the program, in the process where it ends, before it is committed.

    Args:
        sinks: those of the program.
    """

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


def _channel(frame: Frame) -> tuple[int, int, int, str, int]:
    """The channel of a frame: its elements have one order by their numbers, in whatever order its frames came."""
    return frame.target, frame.point, frame.edge, frame.channel, frame.task
