"""Evidence on a job's event time: its graph, and what its operators keep in their state."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from eventide.common.checksum import has_checksum
from eventide.common.ms import MIN_MS
from eventide.errors import StateError
from eventide.pickling.stand_ins import shown_loads
from eventide.runtime.elements.codec import encode_table
from eventide.runtime.eventtime.combiner import Members, WatermarkCombiner
from eventide.runtime.metrics import DEAD_LETTERS, OperatorCounters, add_up, held_together
from eventide.runtime.observation.event_time_log import EVENT_TIME, LATE, NUMBERS, EventTimeLog, Lateness, remembered
from eventide.runtime.state.backend import MemoryBackend, value_of
from eventide.runtime.state.bucket_store import BUCKET
from eventide.runtime.state.chunks import CHUNKS
from eventide.runtime.state.extents import HASH, NAMES, RowStore
from eventide.runtime.state.journal import has_base, whole
from eventide.runtime.state.operators import small_values
from eventide.runtime.state.rows_of_keys import are_of_keys
from eventide.runtime.state.runs import decompressed

if TYPE_CHECKING:
    import pyarrow as pa

Json: TypeAlias = dict[str, Any]

ReadState: TypeAlias = Callable[[str, str], Iterable[tuple[int, str, bytes]]]

SmallState: TypeAlias = Mapping[int, Mapping[str, bytes]]
"""The small values in the state of each subtask that has state, by name."""


_SIDES = ("first", "second", "left", "right")


class StoredValue(NamedTuple):
    """Something that an operator keeps: of which side of a join, in which row of windows if in one, and its content.

    Keyed state comes as the rows in which it lies, or as the bytes of a bucket of an earlier version.
    """

    side: str
    row: int | None
    content: bytes | pa.Table


@dataclass(frozen=True)
class Evidence:
    """A job as its last committed micro-batch left it.

    Args:
        description: The graph, as :func:`eventide.plan.description.describe` gives it.
        states: The small state of each operator, by the operator's id.
        asked_ms: The time by the clock, in milliseconds, at which somebody asks.
        batch: The number of the micro-batch; None if that is not known.
        read: Gives the values of an operator, by its id, whose names begin in some way: name and content, of
            all subtasks, with the subtask's number before them.
        loads: Reads objects from bytes; by default without any class or code of the program's, for which stand-ins are
            shown.
        state_bytes: For each stage of operators, the bytes of all values in its state, as far as the host tells.
    """

    description: Json
    states: Mapping[str, SmallState]
    asked_ms: int
    batch: int | None = None
    read: ReadState = field(default=lambda operator, prefix: (), kw_only=True)
    loads: Callable[[bytes], Any] = field(default=shown_loads, kw_only=True)
    state_bytes: tuple[int, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(
        cls, description: Json, heads: Iterable[tuple[int, bytes]], asked_ms: int, batch: int | None, **ways: Any
    ) -> Self:
        """Make the evidence from the heads of the state of subtasks, each with the subtask's number.

        Raises:
            StateError: if the state is damaged, or of another form.
        """
        states: dict[str, dict[int, Mapping[str, bytes]]] = {}
        checked: set[tuple[str, int]] = set()
        for subtask, head in heads:
            for operator, small in small_values(head).items():
                if has_checksum(head):
                    checked.add((operator, subtask))
                if "gate" in small:
                    states.setdefault(operator, {})[subtask] = small
        if "read" in ways:
            ways["read"] = _checking(ways["read"], checked)
        return cls(description, states, asked_ms, batch, **ways)

    @property
    def operators(self) -> list[Json]:
        """The operators that have a watermark, stage by stage."""
        return [one for one in self.description["operators"] if one["kind"] == "operator"]

    def operator(self, name: str) -> Json:
        """The operator of a name.

        Raises:
            StateError: if there is none, saying which there are.
        """
        found = [one for one in self.operators if name in {one["name"], one["id"]}]
        if not found:
            names = ", ".join(repr(one["name"]) for one in self.operators) or "none"
            raise StateError(f"there is no operator {name!r} with a watermark in this job; there are: {names}")
        return found[0]

    def operator_before(self, edge: Json) -> Json | None:
        """The operator that an edge comes from; None if it comes from a source, or from one without a watermark."""
        return next((one for one in self.operators if one["name"] == edge["from"]), None)

    def valve(self, operator: Json) -> ValveState:
        """How the watermark of an operator comes about; all of its subtasks hear the same."""
        edges = {edge["name"]: edge for edge in self.description["edges"] if edge["to"] == operator["name"]}
        subtasks = self.states.get(operator["id"])
        if subtasks is not None:
            return ValveState(json.loads(self._whole(operator, min(subtasks), "gate") or b"{}"), edges)
        return ValveState(self._before_anything(edges), edges)

    def log(self, operator: Json) -> EventTimeLog:
        """The operator's log of its splits."""
        found = remembered(self._whole(operator, 0, EVENT_TIME))
        return EventTimeLog() if found is None else EventTimeLog.of(found)

    def lateness(self, operator: Json) -> Lateness:
        """The late elements of all subtasks."""
        late = Lateness()
        for one in self._remembered(operator, LATE):
            late.take(Lateness.of(one))
        return late

    def counters(self) -> OperatorCounters:
        """The counts since the state began, by operator and counter, as in the metrics of a job."""
        return add_up([one["counters"] for operator in self.operators for one in self._remembered(operator, NUMBERS)])

    def dead_letters(self, operator: Json) -> dict[str, int]:
        """How many dead letters there were in the tasks of an operator: its own, and those of what is chained to it."""
        counted = add_up([one["counters"] for one in self._remembered(operator, NUMBERS)])
        return {name: counters[DEAD_LETTERS] for name, counters in counted.items() if DEAD_LETTERS in counters}

    def held(self, operator: Json) -> dict[str, int]:
        """How much an operator holds, where it has a count."""
        return held_together([one["held"] for one in self._remembered(operator, NUMBERS)])

    def _remembered(self, operator: Json, name: str) -> list[Any]:
        """The memories of an operator's subtasks under a name, in their order."""
        found = (remembered(small.get(name)) for _, small in sorted(self._small(operator).items()))
        return [content for content in found if content is not None]

    def rows(self, operator: Json) -> dict[int, int]:
        """How much fixed windows hold, by the row of chunks that it lies in: a count of keys, or of elements."""
        held: dict[int, int] = {}
        indexes = [small["chunks"] for small in self._small(operator).values() if "chunks" in small]
        if not indexes:  # those of a join, by side, are no small values
            stored = ((_part_of(name), content) for _, name, content in self.read(operator["id"], ""))
            indexes = [content for (_, path), content in stored if path == [CHUNKS]]
        for index in indexes:
            for pane, chunks in json.loads(index).items():
                sizes = (chunk if isinstance(chunk, int) else chunk[0] for chunk in chunks)
                held[int(pane)] = held.get(int(pane), 0) + sum(sizes)
        return held

    def _whole(self, operator: Json, subtask: int, name: str) -> bytes | None:
        """A small value of a subtask, put together with its base if it has one."""
        small = self._small(operator).get(subtask, {}).get(name)
        if small is None or not has_base(small):
            return small
        found = self.read(operator["id"], f"{name}/")
        values = {of_base: content for number, of_base, content in found if number == subtask}
        return whole(MemoryBackend({**values, name: small}), name)

    def _small(self, operator: Json) -> SmallState:
        return self.states.get(operator["id"], {})

    def _before_anything(self, edges: Mapping[str, Json]) -> Json:
        """The valve of an operator without input so far: every expected channel holds it."""
        splits, channels = {}, dict[str, list[str]]()
        parallelism = {one["name"]: one["parallelism"] for one in self.description["operators"]}
        for name, edge in edges.items():
            sources = self.sources_behind(edge)
            if sources:
                splits[name] = _untouched([split for source in sources for split in source["splits"]])
            ways = [name] if sources else [f"{name}/{subtask}" for subtask in range(parallelism[edge["from"]])]
            channels.setdefault(str(edge["input"]), []).extend(ways)
        of_inputs = {number: _untouched(ways) for number, ways in channels.items()}
        return {"splits": splits, "channels": of_inputs, "inputs": _untouched([*channels])}

    def stored(self, operator: Json) -> Iterator[StoredValue]:
        """All that an operator keeps by key and by window: buckets with their changes, rows, then the chunks by row."""
        pieces: dict[tuple[str, int, int, int], dict[int, bytes]] = {}
        buckets: dict[tuple[str, int, str], dict[str, bytes]] = {}
        rows: dict[tuple[str, int], dict[str, bytes]] = {}
        for subtask, name, content in self.read(operator["id"], ""):
            part, path = _part_of(name)
            if path[0] == BUCKET:
                buckets.setdefault((part, subtask, path[1]), {})["/".join(path)] = decompressed(content)
            elif path[0] in NAMES:
                rows.setdefault((part, subtask), {})["/".join(path)] = content
            elif path[0] == CHUNKS and len(path) > 1:
                row, number, piece, *_ = (*map(int, path[1:]), 0)
                pieces.setdefault((part, row, subtask, number), {})[piece] = content
        for (part, *_), with_changes in buckets.items():
            yield StoredValue(part, None, b"".join(content for _, content in sorted(with_changes.items())))
        small = self._small(operator)
        for (part, subtask), values in sorted(rows.items()):
            store = RowStore(MemoryBackend(values if part else {**small.get(subtask, {}), **values}))
            for _, found in store.read(store.others()):
                yield StoredValue(part, None, found if are_of_keys(found) else encode_table(found.drop_columns([HASH])))
        for (part, row, *_), parts in sorted(pieces.items()):
            yield StoredValue(part, row, b"".join(content for _, content in sorted(parts.items())))

    def sources_behind(self, edge: Json) -> list[Json]:
        """The sources whose splits come on an edge; none where it comes from an operator with a watermark."""
        sources = {one["name"]: one for one in self.description["sources"]}
        if edge["from"] in sources:
            return [sources[edge["from"]]]
        kinds = {one["name"]: one["kind"] for one in self.description["operators"]}
        if kinds.get(edge["from"]) != "splits":
            return []
        before = (one for one in self.description["edges"] if one["to"] == edge["from"])
        return [source for one in before for source in self.sources_behind(one)]


def _part_of(name: str) -> tuple[str, list[str]]:
    """Which side of a join a value is of, "" where there are none, and its name there, by its parts."""
    first, *rest = name.split("/")
    return (first, rest) if first in _SIDES else ("", [first, *rest])


class ValveState:
    """The valve of a subtask as it is stored; ``edges`` are those to its operator, as they are described, by name."""

    def __init__(self, stored: Json, edges: Mapping[str, Json]) -> None:
        self._stored = stored
        self.edges = edges

    @property
    def watermark(self) -> int:
        """The watermark, in milliseconds."""
        return int(self._stored["inputs"][0])

    @property
    def idle(self) -> bool:
        """Whether every input is idle."""
        return bool(self._stored["inputs"][1])

    @cached_property
    def splits(self) -> dict[str, WatermarkCombiner]:
        """The splits of each edge that comes from a source."""
        return {name: _combiner(Members.SPLITS, stored) for name, stored in self._stored["splits"].items()}

    @cached_property
    def channels(self) -> dict[str, WatermarkCombiner]:
        """The channels of each input."""
        return {name: _combiner(Members.CHANNELS, stored) for name, stored in self._stored["channels"].items()}

    @cached_property
    def inputs(self) -> WatermarkCombiner:
        """The inputs."""
        return _combiner(Members.INPUTS, self._stored["inputs"])

    def edge_of(self, channel: str) -> tuple[Json, str]:
        """The edge that a channel of an input is one of, and which of its subtasks it is; "" for a source."""
        if channel in self.edges:
            return self.edges[channel], ""
        name, _, subtask = channel.rpartition("/")
        return self.edges[name], subtask

    def ended(self, edge: str) -> int:
        """How many of the splits that were expected on an edge have ended."""
        return len(self._stored["splits"][edge][3])


def _checking(read: ReadState, checked: Collection[tuple[str, int]]) -> ReadState:
    """Read the values of operators as they see them; those of some operators and subtasks are stored with checksums."""

    def read_checked(operator: str, prefix: str) -> Iterator[tuple[int, str, bytes]]:
        for subtask, name, stored in read(operator, prefix):
            is_checked = (operator, subtask) in checked
            yield subtask, name, value_of(stored, f"{operator}/{name}") if is_checked else stored

    return read_checked


def _untouched(names: list[str]) -> list[Any]:
    """A combiner, as it is stored, whose members have said nothing."""
    return [MIN_MS, False, {name: [MIN_MS, False, True, MIN_MS] for name in names}, [], names]


def _combiner(kind: Members, stored: list[Any]) -> WatermarkCombiner:
    combiner = WatermarkCombiner(kind, stored[4])
    combiner.restore(stored)
    return combiner
