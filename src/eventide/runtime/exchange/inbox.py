"""Input of a task in one micro-batch, put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from eventide.runtime.exchange.frames import BY_ELEMENT, END_OF_BATCH, END_OF_INPUT, Frame, Signal, WatermarkReport
from eventide.runtime.exchange.partitioners import Codec, Payload


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A payload whose elements from index ``begin`` on have not taken effect yet."""

    edge: int
    point: int
    payload: Payload
    begin: int = 0


class Inbox:
    """The frames of a micro-batch: elements by the point at which they take effect, and what is reported at each.

    The order of elements is defined: by edge, channel, task and number, whatever the order in which frames came.
    """

    def __init__(self, frames: Iterable[Frame], codecs: Mapping[int, Codec]) -> None:
        waiting = []
        self._reports: dict[int, list[tuple[int, WatermarkReport]]] = {}
        self.ended_sources: list[int] = []
        self.observed: list[Frame] = []
        """Frames for the observer of the task."""
        for frame in frames:
            if frame.signal is Signal.ELEMENTS:
                payload = codecs[frame.edge].decode(frame.content)
                order = (frame.edge, frame.channel, frame.task, payload.first)
                waiting.append((order, _Waiting(frame.edge, frame.point, payload)))
            elif frame.signal is Signal.END_OF_SOURCE:
                self.ended_sources.append(frame.edge)
            elif frame.signal is Signal.OBSERVED:
                self.observed.append(frame)
            else:
                for report in frame.content:
                    self._reports.setdefault(report.point, []).append((frame.edge, report))
        self._waiting = [one for _, one in sorted(waiting, key=lambda entry: entry[0])]

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
        taken: list[tuple[int, Payload]] = []
        left: list[_Waiting] = []
        for waiting in self._waiting:
            if waiting.point == BY_ELEMENT:
                payload, rest = waiting.payload.cut(waiting.begin, point)
                if payload is not None:
                    taken.append((waiting.edge, payload))
                if rest is not None:
                    left.append(replace(waiting, begin=rest))
            elif waiting.point <= point:
                taken.append((waiting.edge, waiting.payload))
            else:
                left.append(waiting)
        self._waiting = left
        return taken
