"""The watermark valve of a subtask: splits, then channels of an input, then inputs, become one watermark.

``Idleness`` says which channels have been silent for too long.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from eventide.common.ms import MAX_MS
from eventide.runtime.eventtime.combiner import Members, Progress, WatermarkCombiner
from eventide.runtime.exchange.frames import WatermarkReport
from eventide.runtime.exchange.rest import Rest

Reports: TypeAlias = Sequence[tuple[int, WatermarkReport]]
"""Reports of channels at one point, each with the number of the edge that it came on."""


class Holder(NamedTuple):
    """Holder of a watermark: a channel of an edge, by the edge's name, and how many others stand where it does."""

    edge: str
    channel: str
    others: int = 0


@dataclass(frozen=True, slots=True)
class ValveEdge:
    """One way into an operator: from the splits of a source, or from the subtasks of an operator.

    ``edge`` is its number in frames. Its state is kept under ``name``, which stays when the program around it changes.
    ``channels`` are the expected ones: they hold the watermark until they speak. Other splits join when they are
    found, or with their first watermark, and leave no trace when they end. A channel that is silent for
    ``idle_after_ms`` counts as idle (None: no channel does by itself). ``input`` is the operator's input that it leads
    to, ``producer`` the owner of the channels, in words.
    An edge that is ``active_by_elements`` comes from an operator, not from splits: it counts again as soon as it is
    active.
    Where watermarks are those of the source itself, ``has_own_watermarks``, a split that gives one is not silent; a
    generator may give some by the clock, and Flink does not ask that of a silent split.
    Where they are those of a strategy after the source, ``assigned_after``, the source's last watermark goes through
    that strategy, idle or not, unless the source itself is idle.
    """

    edge: int
    name: str
    channels: tuple[str, ...]
    is_source: bool
    idle_after_ms: int | None = None
    input: int = 0
    active_by_elements: bool = False
    producer: str = ""
    has_own_watermarks: bool = False
    assigned_after: bool = False


class WatermarkValve:
    """Keeps the watermark of one subtask, in three steps.

    The splits of each source combine first, as in Flink's source operator. The result is one channel of an input,
    beside each subtask of the operators before; a union has the channels of all its streams. The channels of an input
    combine, as in Flink's valve, and last the inputs of the operator. What was reported at one point takes effect
    together. With ``in_batch``, only the end of the input takes effect: no watermark comes before it.
    """

    def __init__(self, edges: Sequence[ValveEdge], *, in_batch: bool = False) -> None:
        self._in_batch = in_batch
        self._edges = {e.edge: e for e in edges}
        self._idleness = {e.edge: Idleness(e.idle_after_ms) for e in edges if e.idle_after_ms is not None}
        self._splits = {
            e.edge: WatermarkCombiner(Members.CHANNELS if e.active_by_elements else Members.SPLITS, e.channels)
            for e in edges
            if e.is_source
        }
        self._channels = {
            number: WatermarkCombiner(
                Members.CHANNELS, [c for e in edges if e.input == number for c in _channels_of(e)]
            )
            for number in sorted({e.input for e in edges})
        }
        self._inputs = WatermarkCombiner(Members.INPUTS, map(str, self._channels))
        self._run: str | None = None
        self._idle_sources: dict[int, set[str]] = {e.edge: set() for e in edges if e.assigned_after}
        """By edge with a strategy after its source: the splits of which the source itself says that they are idle."""
        self._without_last: set[int] = set()

    @property
    def watermark(self) -> int:
        """The watermark of this subtask, in milliseconds."""
        return self._inputs.watermark

    @property
    def idle(self) -> bool:
        """Whether every input is idle."""
        return self._inputs.idle

    @property
    def next_clock_ms(self) -> int | None:
        """The time by the clock at which it has to be asked again, with no data too; None if never."""
        if self.watermark == MAX_MS:
            return None
        deadlines = [watched.next_deadline_ms for watched in self._idleness.values()]
        return min((ms for ms in deadlines if ms is not None), default=None)

    def split_watermarks(self) -> dict[str, dict[str, int]]:
        """The watermark of each split, in milliseconds, by the name of the source that they belong to."""
        found: dict[str, dict[str, int]] = {}
        for edge, splits in self._splits.items():
            if known := splits.watermarks():
                found.setdefault(self._edges[edge].producer, {}).update(known)
        return found

    def holder(self) -> Holder | None:
        """The lowest channel that counts: a split of a source, or a subtask before; None if all are idle."""
        for number in self._inputs.holding():
            for channel in self._channels[int(number)].holding():
                edge = self._edge_of(channel)
                if edge.is_source:
                    splits = self._splits[edge.edge].holding()
                    if splits:
                        return Holder(edge.name, splits[0], len(splits) - 1)
                else:
                    return Holder(edge.name, channel.removeprefix(f"{edge.name}/"))
        return None

    def _edge_of(self, channel: str) -> ValveEdge:
        """The edge that a channel of an input is one of."""
        return next(e for e in self._edges.values() if channel in _channels_of(e))

    def known_splits(self) -> list[tuple[str, str]]:
        """The splits that count, by the name of their edge and their own."""
        sources = ((self._edges[edge].name, splits) for edge, splits in self._splits.items())
        return [(name, split) for name, splits in sources for split in splits.watermarks()]

    def splits_of(self, edge: int) -> WatermarkCombiner:
        """How the splits of one source have combined, by the number of its edge."""
        return self._splits[edge]

    def begin_run(self, run: str | None) -> bool:
        """Take note of which run of the job planned the micro-batch, before anything is reported in it.

        The time between two runs is not silence: the timeouts of channels start again in the first micro-batch of a
        run, and those that were silent count again, as in Flink, whose clock begins with each run. ``run`` is a name
        for it; None if the host cannot tell runs apart, so that time goes on as if there were one.

        Returns:
            Whether the run has changed since the micro-batch before.
        """
        if run is None or run == self._run or not self._idleness:
            return False
        self._run = run
        for edge, watched in self._idleness.items():
            for channel in sorted(watched.begin_anew()):
                combiner, name = self._combiner(edge, channel)
                combiner.mark_active(name)
        return True

    def advance(self, reports: Reports) -> Progress:
        """Take what was reported at a point in the middle of a micro-batch, and say what changed."""
        self._listen(reports)
        self._receive(reports)
        for edge, splits in self._splits.items():
            self._pass_on(edge, splits.advance())
        return self._combined()

    def end_batch(self, reports: Reports, clock_ms: int, ending: Collection[int] = ()) -> Progress:
        """Take what was reported at the end of a micro-batch, look at the clock, and say what changed.

        The sources ``ending``, by their edges, end with this micro-batch: their last watermark, which comes next, takes
        the place of this one. So nothing moves here where some end: the watermarks of the others take effect together
        with theirs, in `end_input`. A source that is idle has no last watermark: its splits are not asked any more, so
        what it brings here moves nothing, and it stays idle.

        A split that ends gives its last watermark first, and then holds nothing back. Those that were expected end
        together. Those that come and go, such as files, end as if they had been read in turn: the one that is furthest
        ahead comes last.
        """
        self._listen(reports)
        for edge, watched in self._idleness.items():
            members = self._splits[edge].watermarks() if edge in self._splits else self._edges[edge].channels
            watched.end_batch(members, clock_ms)
        unasked = {
            edge
            for edge in ending
            if self._splits[edge].idle
            and not self._edges[edge].active_by_elements
            and not self._edges[edge].assigned_after
        }
        for edge, idle in self._idle_sources.items():
            if edge in ending and idle and idle >= self._splits[edge].watermarks().keys():
                self._without_last.add(edge)
        self._receive([(edge, _unasked(report) if edge in unasked else report) for edge, report in reports])
        for edge, watched in self._idleness.items():
            # A split that ends is not judged any more: a source that is idle sends no final watermark.
            ended = {r.channel for at, r in reports if at == edge and r.ended}
            for channel in sorted(watched.silent - ended):
                combiner, name = self._combiner(edge, channel)
                combiner.mark_idle(name)
        for edge, splits in self._splits.items():
            progress = splits.advance()
            if edge in ending and self._has_last(edge):
                self._pass_on(edge, replace(progress, watermark=None))
                continue
            self._pass_on(edge, progress)
            self._end_splits(edge, splits, [r.channel for at, r in reports if at == edge and r.ended])
        return Progress() if ending else self._combined()

    def end_input(self, reports: Reports, sources: Iterable[int]) -> Progress:
        """Take the end of whole sources, and what operators before said at the end of theirs, and say what changed.

        A source that ends while it is idle as a whole stays so: Flink sends no final watermark then.
        """
        self._receive(reports)
        for edge in sources:
            if self._has_last(edge):
                self._pass_on(edge, Progress(MAX_MS, idle=False))
        return self._combined()

    def _has_last(self, edge: int) -> bool:
        """Whether the end of a source is its last watermark here: not if it is idle as a whole."""
        return edge not in self._without_last and (self._edges[edge].assigned_after or not self._splits[edge].idle)

    def _listen(self, reports: Reports) -> None:
        for edge, report in reports:
            speaks = report.spoke or (self._edges[edge].has_own_watermarks and report.watermark is not None)
            if speaks and edge in self._idleness:
                self._idleness[edge].hear(report.channel)
            if report.rest is not None and edge in self._idleness:
                self._idleness[edge].hold(report.channel, report.rest == Rest.HELD)
            if report.source_idle and edge in self._idle_sources:
                self._idle_sources[edge].add(report.channel)
            elif report.spoke and edge in self._idle_sources:
                self._idle_sources[edge].discard(report.channel)

    def _receive(self, reports: Reports) -> None:
        for edge, report in reports:
            is_last = report.watermark == MAX_MS
            if self._in_batch and not is_last:
                continue
            combiner, name = self._combiner(edge, report.channel)
            if report.joined:
                combiner.join(name)
            if report.idle is False:
                combiner.mark_active(name)
            if report.watermark is not None and (is_last or not self._is_silent(edge, report.channel)):
                # The generator of a split that is idle is not asked; an operator says its last word before it is.
                take = combiner.hold if report.idle and edge in self._splits else combiner.update
                take(name, report.watermark)
            if report.idle:
                combiner.mark_idle(name)

    def _is_silent(self, edge: int, channel: str) -> bool:
        """Whether a channel has been silent for too long, so that what its generator says by the clock is not asked."""
        return edge in self._idleness and channel in self._idleness[edge].silent

    def _combiner(self, edge: int, channel: str) -> tuple[WatermarkCombiner, str]:
        """Return the combiner that a channel reports to, and the channel's name there."""
        e = self._edges[edge]
        return (self._splits[edge], channel) if e.is_source else (self._channels[e.input], f"{e.name}/{channel}")

    def _end_splits(self, edge: int, splits: WatermarkCombiner, ended: list[str]) -> None:
        if not ended:
            return
        last = splits.furthest(ended)
        for split in ended:
            if split != last:
                splits.remove(split)
        self._pass_on(edge, splits.advance())
        if last is not None:
            splits.remove(last)
            self._pass_on(edge, splits.advance())

    def _pass_on(self, edge: int, progress: Progress) -> None:
        """Tell an input what its source has come to."""
        e = self._edges[edge]
        _hand_on(self._channels[e.input], e.name, progress)

    def _combined(self) -> Progress:
        """Bring all inputs up to date, then the operator."""
        for number, channels in self._channels.items():
            _hand_on(self._inputs, str(number), channels.advance())
        return self._inputs.advance()

    def snapshot(self) -> dict[str, Any]:
        """All that must survive a restart, as JSON values."""
        return {
            "splits": {self._edges[edge].name: splits.snapshot() for edge, splits in self._splits.items()},
            "idleness": {self._edges[edge].name: watched.snapshot() for edge, watched in self._idleness.items()},
            "channels": {str(number): channels.snapshot() for number, channels in self._channels.items()},
            "inputs": self._inputs.snapshot(),
            "idle sources": {self._edges[edge].name: sorted(idle) for edge, idle in self._idle_sources.items() if idle},
        } | ({} if self._run is None else {"run": self._run})

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Become what :meth:`snapshot` saw; the timeouts of the program count, whatever they were before.

        Edges that are new since then start at the beginning, edges that are gone hold nothing back.
        """
        self._inputs.restore(snapshot["inputs"])
        self._run = snapshot.get("run")
        for number, channels in self._channels.items():
            if str(number) in snapshot["channels"]:  # an operator may get another input
                channels.restore(snapshot["channels"][str(number)])
        for edge, idle in self._idle_sources.items():
            idle.update(snapshot.get("idle sources", {}).get(self._edges[edge].name, ()))
        for what, keepers in (("splits", self._splits), ("idleness", self._idleness)):
            for edge, keeper in keepers.items():
                name = self._edges[edge].name
                if name in snapshot[what]:
                    keeper.restore(snapshot[what][name])


def _unasked(report: WatermarkReport) -> WatermarkReport:
    """The part of a report that counts for a split whose generator is not asked."""
    return report._replace(watermark=None, idle=report.idle or None)


def _channels_of(edge: ValveEdge) -> list[str]:
    """The channels that an edge is for its input: one for a source, whose splits have combined, or each subtask."""
    return [edge.name] if edge.is_source else [f"{edge.name}/{channel}" for channel in edge.channels]


def _hand_on(combiner: WatermarkCombiner, member: str, progress: Progress) -> None:
    """Hand on what a combiner came to; a watermark comes before an idle status, and after an active one."""
    if progress.idle is False:
        combiner.mark_active(member)
    if progress.watermark is not None:
        combiner.update(member, progress.watermark)
    if progress.idle:
        combiner.mark_idle(member)


class Idleness:
    """Watches the channels of one input.

    A channel counts as silent when more than ``timeout_ms`` have gone by since the last micro-batch in which it spoke,
    or since it was first heard of. While it is held back, the clock stands still for it. A clock that is set back has
    not gone on since the last micro-batch, as Flink's never goes back. Flink: ``WatermarksWithIdleness``, and its
    ``PausableRelativeClock``.

    >>> watched = Idleness(timeout_ms=100)
    >>> watched.end_batch({"a", "b"}, clock_ms=1_000)
    >>> watched.hear("a")
    >>> watched.end_batch({"a", "b"}, clock_ms=1_101)
    >>> watched.silent, watched.next_deadline_ms
    ({'b'}, 1202)
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._heard: set[str] = set()
        self._last: dict[str, int] = {}
        self._looked_ms: int | None = None
        self._held: set[str] = set()
        self._held_from_now_on: dict[str, bool] = {}
        self.silent: set[str] = set()

    def hear(self, channel: str) -> None:
        """Take note that a channel had elements in this micro-batch."""
        self._heard.add(channel)
        self.silent.discard(channel)

    def hold(self, channel: str, is_held: bool) -> None:
        """Take note that a channel is held back from this micro-batch on, or no longer."""
        self._held_from_now_on[channel] = is_held

    def end_batch(self, channels: Collection[str], clock_ms: int) -> None:
        """Look at the clock: the ``channels`` are those that there are now."""
        passed_ms = 0 if self._looked_ms is None else clock_ms - self._looked_ms
        if passed_ms < 0:
            self._last = {name: last_ms + passed_ms for name, last_ms in self._last.items()}
            passed_ms = 0
        self._last = {name: self._last_of(name, clock_ms, passed_ms) for name in channels}
        self._looked_ms = clock_ms
        self._heard.clear()
        kept = {name for name in self._held if self._held_from_now_on.get(name, True)}
        self._held = (kept | {name for name, is_held in self._held_from_now_on.items() if is_held}) & {*channels}
        self._held_from_now_on.clear()
        self.silent = {name for name, last_ms in self._last.items() if clock_ms - last_ms > self._timeout_ms}

    def _last_of(self, channel: str, clock_ms: int, passed_ms: int) -> int:
        if channel in self._heard:
            return clock_ms
        return self._last.get(channel, clock_ms) + (passed_ms if channel in self._held else 0)

    def begin_anew(self) -> set[str]:
        """Restart the timeouts of all channels at the next look at the clock; return those that were silent."""
        silent, self.silent = self.silent, set()
        self._last.clear()
        self._looked_ms = None
        return silent

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next channel will have been silent for too long; None if all are, or are held, or there is none."""
        waiting = [last_ms for name, last_ms in self._last.items() if name not in self.silent | self._held]
        return min(waiting) + self._timeout_ms + 1 if waiting else None

    def snapshot(self) -> list[Any]:
        """All that must survive a restart, as JSON values."""
        return [self._last, sorted(self.silent), sorted(self._held), self._looked_ms]

    def restore(self, snapshot: list[Any]) -> None:
        """Become what :meth:`snapshot` saw."""
        last, silent, *of_alignment = snapshot
        self._last = {**last}  # what was stored is compared with what will be
        self.silent = set(silent)
        if of_alignment:  # one that is older knows of none
            held, self._looked_ms = of_alignment
            self._held = set(held)
