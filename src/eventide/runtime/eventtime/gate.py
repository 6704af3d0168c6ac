"""The inputs of one subtask: splits through a multiplexer each, all channels through one valve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eventide.common._ms import MAX_MS
from eventide.runtime.events import Signal, SplitReport
from eventide.runtime.eventtime.combiner import Combiner, Progress, Rejoin


@dataclass(frozen=True, slots=True)
class GateInput:
    """One edge into an operator: the splits of a source, or the subtasks of a stage.

    ``channels`` are those that are expected: they hold the watermark until they speak. Splits that are not among them
    join with their first watermark, and leave no trace when they end.
    """

    edge: int
    channels: tuple[str, ...]
    is_source: bool


class Gate:
    """Keeps the watermark of one subtask.

    The splits of each source combine first, as in Flink's source operator; what comes out of that is one channel of
    the valve, beside each subtask of the stages before. Signals are taken as they come and take effect together at
    :meth:`advance`.
    """

    def __init__(self, inputs: Sequence[GateInput]) -> None:
        self._sources = {i.edge: Combiner(Rejoin.AT_ONCE, i.channels) for i in inputs if i.is_source}
        subtasks = [f"{i.edge}/{channel}" for i in inputs if not i.is_source for channel in i.channels]
        self._valve = Combiner(Rejoin.WHEN_CAUGHT_UP, [*map(str, self._sources), *subtasks])
        self._ended: dict[int, list[str]] = {}
        self._ended_sources: list[int] = []

    @property
    def watermark(self) -> int:
        """The watermark of this subtask, in milliseconds."""
        return self._valve.watermark

    @property
    def idle(self) -> bool:
        """Whether every input is idle."""
        return self._valve.idle

    def split_watermarks(self) -> dict[str, int]:
        """The watermark of each split of each source, in milliseconds."""
        return {split: ms for source in self._sources.values() for split, ms in source.channel_watermarks().items()}

    def receive(self, signal: Signal, edge: int, channel: str, content: Any) -> None:
        """Take one signal of an input."""
        name = f"{edge}/{channel}"
        if signal is Signal.SPLIT_REPORT:
            self._receive_report(edge, channel, content)
        elif signal is Signal.END_OF_SOURCE:
            self._ended_sources.append(edge)
        elif signal is Signal.WATERMARK:
            self._valve.update(name, content)
        elif signal is Signal.IDLE:
            self._valve.mark_idle(name)
        elif signal is Signal.ACTIVE:
            self._valve.mark_active(name)

    def _receive_report(self, edge: int, split: str, report: SplitReport) -> None:
        source = self._sources[edge]
        if report.watermark is not None:
            source.update(split, report.watermark)
        if report.idle:
            source.mark_idle(split)
        if report.ended:
            self._ended.setdefault(edge, []).append(split)

    def advance(self) -> Progress:
        """Bring the watermark up to date with all that was received, and say what changed.

        A split that ends gives its last watermark first, and then holds nobody. Those that were expected end together.
        Those that come and go, such as files, end as if they had been read in turn: the one that is furthest ahead
        comes last. A source that ends while it is idle as a whole stays so: Flink sends no final watermark then.
        """
        for edge, source in self._sources.items():
            self._pass_on(edge, source.advance())
        for edge, splits in self._ended.items():
            source = self._sources[edge]
            last = source.furthest(splits)
            for split in splits:
                if split != last:
                    source.remove(split)
            self._pass_on(edge, source.advance())
            if last is not None:
                source.remove(last)
                self._pass_on(edge, source.advance())
        for edge in self._ended_sources:
            if not self._sources[edge].idle:
                self._valve.update(str(edge), MAX_MS)
        self._ended.clear()
        self._ended_sources.clear()
        return self._valve.advance()

    def _pass_on(self, edge: int, progress: Progress) -> None:
        if progress.watermark is not None:
            self._valve.update(str(edge), progress.watermark)
        if progress.idle:
            self._valve.mark_idle(str(edge))
        elif progress.idle is False:
            self._valve.mark_active(str(edge))

    def snapshot(self) -> dict[str, Any]:
        """All that must survive a restart, as JSON values."""
        sources = {str(edge): source.snapshot() for edge, source in self._sources.items()}
        return {"valve": self._valve.snapshot(), "sources": sources}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Become what :meth:`snapshot` saw."""
        self._valve.restore(snapshot["valve"])
        for edge, source in self._sources.items():
            source.restore(snapshot["sources"][str(edge)])
