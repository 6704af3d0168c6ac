"""What a task gets in one micro-batch, put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from eventide.runtime.events import BY_PLACE, END_OF_BATCH, END_OF_INPUT, Report, Signal
from eventide.runtime.frames import Frame
from eventide.runtime.outlets import Codec, Part


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A part whose elements from index ``begin`` on have not taken effect yet."""

    round: int
    part: Part
    begin: int = 0


class Inbox:
    """The frames of a micro-batch: elements by the round in which they take effect, and what is reported in each.

    The order of elements is defined: by edge, channel, task and place, whatever the order in which frames came.
    """

    def __init__(self, frames: Iterable[Frame], codecs: Mapping[int, Codec]) -> None:
        parts = []
        self._reports: dict[int, list[tuple[int, Report]]] = {}
        self.ended_sources: list[int] = []
        for frame in frames:
            if frame.signal is Signal.ELEMENTS:
                part = codecs[frame.edge].decode(frame.content)
                parts.append(((frame.edge, frame.channel, frame.task, part.place), _Waiting(frame.round, part)))
            elif frame.signal is Signal.END_OF_SOURCE:
                self.ended_sources.append(frame.edge)
            else:
                for report in frame.content:
                    self._reports.setdefault(report.round, []).append((frame.edge, report))
        self._waiting = [waiting for _, waiting in sorted(parts, key=lambda entry: entry[0])]

    def rounds(self) -> list[int]:
        """The rounds in which something is reported, and the end of the micro-batch in any case."""
        end = {END_OF_INPUT} if self.ended_sources else set()
        return sorted({*self._reports, END_OF_BATCH, *end})

    def reports(self, round_: int) -> list[tuple[int, Report]]:
        """What is reported in a round, by edge and channel."""
        return sorted(self._reports.get(round_, ()), key=lambda entry: (entry[0], entry[1].channel))

    def elements_until(self, round_: int) -> list[Part]:
        """The elements that take effect by a round, and have not been asked for before."""
        taken: list[Part] = []
        left: list[_Waiting] = []
        for waiting in self._waiting:
            if waiting.round == BY_PLACE:
                part, rest = waiting.part.cut(waiting.begin, round_)
                if part is not None:
                    taken.append(part)
                if rest is not None:
                    left.append(replace(waiting, begin=rest))
            elif waiting.round <= round_:
                taken.append(waiting.part)
            else:
                left.append(waiting)
        self._waiting = left
        return taken
