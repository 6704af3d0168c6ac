"""Session windows by column that fire after every few elements: a loop over their times, aggregates on columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.runtime.columnar.aggregation import ROWS, TIMESTAMP
from eventide.runtime.columnar.keyed_operators import SessionOperator, running
from eventide.runtime.columnar.layout import COUNT, END, START, Array, constant, numbered_together, numbers_in
from eventide.runtime.columnar.panes import later

_PART = "__part"


@dataclass(slots=True)
class _Session:
    """A session of the micro-batch, whose elements since it began, or was purged, are a chain of parts.

    ``members`` are the places of these elements, or of what an earlier micro-batch left of it, among all that there
    is; ``last`` is its last part that has any. ``at`` is a place where its key is found.
    """

    start: int
    end: int
    at: int
    count: int = 0
    chain: int = 0
    part: int = 0
    last: int | None = None
    members: list[int] = field(default_factory=list)


class _Simulation:
    """The course of sessions, element by element: which merge, which fire, and what a firing holds.

    A part ends with a firing, and a firing holds the parts of its chain up to that one. Of sessions that merge, the one
    with most members goes on; those of the others join its part, so each is in few parts.
    """

    def __init__(self, every: int, *, purges: bool) -> None:
        self._every = every
        self._purges = purges
        self._live: defaultdict[int, tuple[list[int], list[int], list[_Session]]] = defaultdict(lambda: ([], [], []))
        self.members: list[int] = []
        self.parts: list[int] = []
        self.chains: list[int] = []
        self.fired: list[tuple[int, int, int, int]] = []

    def open(self, key: int, session: _Session, *, has_elements: bool) -> None:
        """Take a session that is there."""
        self._begin(session, None)
        if has_elements:
            self._join(session, [session.at])
        starts, ends, sessions = self._live[key]
        at = bisect_left(starts, session.start)
        starts.insert(at, session.start)
        ends.insert(at, session.end)
        sessions.insert(at, session)

    def add(self, key: int, start: int, end: int, at: int) -> None:
        """Take an element, with the window that it opens; sessions of a key lie in the order of time."""
        starts, ends, sessions = self._live[key]
        near = slice(bisect_left(ends, start), bisect_right(starts, end))
        touched = sessions[near]
        if touched:
            session = max(touched, key=lambda each: len(each.members))
        else:
            session = _Session(start, end, at)
            self._begin(session, None)
        for other in touched:
            start, end = min(start, other.start), max(end, other.end)
            if other is not session:
                session.count += other.count
                self._join(session, other.members)
        session.start, session.end = start, end
        starts[near], ends[near], sessions[near] = [start], [end], [session]
        self._join(session, [at])
        session.count += 1
        if session.count >= self._every:
            self._fire(session, at)

    def sessions(self) -> list[_Session]:
        """All sessions, when all elements have come."""
        return [session for _, _, sessions in self._live.values() for session in sessions]

    def _begin(self, session: _Session, chain: int | None) -> None:
        session.part = len(self.chains)
        session.chain = session.part if chain is None else chain
        self.chains.append(session.chain)

    def _join(self, session: _Session, members: list[int]) -> None:
        if members:
            self.members += members
            self.parts += [session.part] * len(members)
            session.members += members
            session.last = session.part

    def _fire(self, session: _Session, at: int) -> None:
        self.fired.append((session.part, at, session.start, session.end))
        session.count = 0
        if self._purges:
            session.members, session.last = [], None
        self._begin(session, None if self._purges else session.chain)


class CountedSessionOperator(SessionOperator):
    """Fires the session of a key after every few of its elements, as a ``CountTrigger`` does, purged or not.

    What a firing holds depends on which sessions had merged when its last element came, so keys, times and counts go
    through a loop; the elements themselves are aggregated in columns. A session that was purged stays, without
    elements. Nothing fires by time.
    """

    def advance(self, watermark_ms: int) -> None:
        """Drop the sessions that are late."""
        self.watermark = watermark_ms
        self._open.read_due(watermark_ms)
        self._drop_late()

    def _take(self, rows: pa.Table) -> None:
        counts = self.spec.counting
        before = self._open.table
        of_open, of_rows = numbered_together(before, rows, self.keys)
        is_touched = np.isin(of_open, of_rows)
        touched = before.filter(pa.array(is_touched))
        simulation = _Simulation(counts.every, purges=counts.size is not None)
        names = (START, END, COUNT, ROWS)
        columns = (touched.column(name).to_pylist() for name in names)
        for at, (key, start, end, count, size) in enumerate(zip(of_open[is_touched].tolist(), *columns, strict=True)):
            simulation.open(key, _Session(start, end, at, count), has_elements=size > 0)
        times, ends = rows.column(TIMESTAMP).to_pylist(), self._ends(rows).tolist()
        for at, (key, start, end) in enumerate(zip(of_rows.tolist(), times, ends, strict=True), len(touched)):
            simulation.add(key, start, end, at)
        keys = pa.concat_tables([touched.select(self.keys), rows.select(self.keys)]) if self.keys else None
        wholes, place_of = self._aggregated(simulation, touched, rows)

        fired = np.array(simulation.fired, np.int64).reshape(-1, 4)
        found = self._with_keys(keys, fired[:, 1], wholes.take(place_of[fired[:, 0]]))
        self.outputs.add(found, (fired[:, 2], fired[:, 3]), fired[:, 3] - 1)
        kept = [before.filter(pa.array(~is_touched))]
        for has_elements in (True, False):
            sessions = [each for each in simulation.sessions() if (each.last is not None) is has_elements]
            lasts = [each.last for each in sessions if each.last is not None]
            aggregates = wholes.take(place_of[lasts]) if has_elements else self._nothing(len(sessions))
            left = self._with_keys(keys, np.array([each.at for each in sessions], np.int64), aggregates)
            for name in ("start", "end", "count"):
                numbers = pa.array([getattr(each, name) for each in sessions], pa.int64())
                left = left.append_column(f"__{name}", numbers)
            kept.append(left.select(self._schema.names))
        self._open.table = pa.concat_tables(kept)

    def _aggregated(self, simulation: _Simulation, touched: pa.Table, rows: pa.Table) -> tuple[pa.Table, Array]:
        """The aggregates of each part with those before it of its chain, and the row of each part among them."""
        aggregation = self.spec.aggregation
        members, parts = np.array(simulation.members, np.int64), np.array(simulation.parts, np.int64)
        is_old = members < len(touched)
        old = touched.take(members[is_old]).append_column(_PART, pa.array(parts[is_old]))
        new = rows.take(members[~is_old] - len(touched)).append_column(_PART, pa.array(parts[~is_old]))
        partials = aggregation.partial(new, [_PART])
        together = aggregation.merge(pa.concat_tables([old.select(partials.column_names), partials]), [_PART])
        part, chains = numbers_in(together, _PART), np.array(simulation.chains, np.int64)
        order = np.lexsort((part, chains[part]))
        place_of = np.zeros(len(chains), np.int64)
        place_of[part[order]] = np.arange(len(order))
        return running(aggregation, together.take(order), chains[part[order]]), place_of

    def _with_keys(self, keys: pa.Table | None, at: Array, aggregates: pa.Table) -> pa.Table:
        """Aggregates beside the keys of some places."""
        for place, name in enumerate(self.keys):
            if keys is not None:
                aggregates = aggregates.add_column(place, name, keys.column(name).take(at))
        return aggregates

    def _nothing(self, count: int) -> pa.Table:
        """Aggregates of no elements."""
        fields = self.spec.aggregation.partial_fields
        columns = {each.name: pa.nulls(count, each.type) for each in fields}
        return pa.table({**columns, ROWS: constant(0, count)}, schema=pa.schema(fields))

    def _due(self, sessions: pa.Table) -> Array:
        """When each session is dropped."""
        return later(numbers_in(sessions, END) - 1, self.spec.lateness_ms)
