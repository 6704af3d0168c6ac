"""Keyed state as columns and as objects take over from each other: whatever each of them does, both find the same."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventide.common import Types
from eventide.runtime.elements.keys import hashes_of
from eventide.runtime.state import extents
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.expiring import ONE, SUFFIX
from eventide.runtime.state.extents import RowStore
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.keyed_columns import KeyedColumns
from eventide.runtime.state.rows_of_keys import has_keys

PAIR = Types.TUPLE([Types.LONG(), Types.STRING()])
KINDS = {"s:n": Types.LONG(), "s:pair": PAIR, "s:list": Types.LIST(Types.STRING())}
values = {
    "s:n": st.one_of(st.none(), st.integers(-3, 2**62)),
    "s:pair": st.one_of(st.none(), st.tuples(st.integers(0, 3), st.sampled_from(["", "ä"]))),
    "s:list": st.one_of(st.none(), st.lists(st.sampled_from(["", "xyz"]), max_size=2)),
}
few = st.lists(st.integers(0, 600), min_size=1, max_size=3, unique=True)
many = st.builds(lambda first, count: [*range(first, first + count)], st.integers(0, 300), st.integers(50, 300))
change = st.one_of(
    st.tuples(st.just("put"), st.sampled_from([*KINDS]), st.data()),
    st.tuples(st.just("put"), st.just("s:n"), st.integers(0, 9)),
    st.tuples(st.just("clear"), st.sampled_from([*KINDS]), st.none()),
    st.tuples(st.just("set"), st.integers(0, 1), st.integers(0, 50)),
    st.tuples(st.just("delete"), st.integers(0, 1), st.integers(0, 50)),
    st.tuples(st.just("fire"), st.integers(0, 1), st.integers(0, 40)),
)
batch = st.tuples(st.sampled_from([True, True, True, False]), st.one_of(few, few, many), st.lists(change, max_size=5))


class Model:
    """State and timers by key, in dicts."""

    def __init__(self):
        self.values = {}
        self.timers = set()

    def apply(self, keys, what, name, value):
        """Do one thing to some keys; and give what fires."""
        if what in ("put", "clear"):
            for key in keys:
                self.values.pop((key, name), None)
                if value is not None:
                    self.values[key, name] = value
        elif what == "set":
            self.timers |= {(name, key % 7 + value, key) for key in keys}
        elif what == "delete":
            self.timers -= {(name, key % 7 + value, key) for key in keys}
        else:
            fired = {timer for timer in self.timers if timer[:1] == (name,) and timer[1] <= value}
            self.timers -= fired
            return sorted(fired)
        return []


class Objects:
    def __init__(self, backend, keys):
        self.state, self.keys = KeyedState(backend, 128), keys
        for name, kind in KINDS.items():
            self.state.declare(name, kind)
        self.state.open_all(keys)

    def apply(self, what, name, value):
        state, fired = self.state, []
        timers = (state.event_timers, state.processing_timers)
        if what == "fire":
            return sorted((name, time_ms, key) for time_ms, key, _ in timers[name].due(value))
        for key in self.keys:
            if what == "put" and value is not None:
                state.write(key, None, name, value)
            elif what in ("put", "clear"):
                state.take(key, None, name)
            elif what == "set":
                timers[name].register(key % 7 + value, key, None)
            else:
                timers[name].delete(key % 7 + value, key, None)
        return fired


class Columns:
    def __init__(self, backend, keys):
        self.state = KeyedColumns(backend, Types.LONG(), 128)
        for name, kind in KINDS.items():
            self.state.declare(name, kind)
        self.places, self.keys = self.state.places_of(hashes_of(keys), [pa.array(keys, pa.int64())]), np.array(keys)

    def apply(self, what, name, value):
        state, places = self.state, self.places
        if what == "put":
            state.put(name, places, KINDS[name].to_arrow([value] * len(places)), KINDS[name])
        elif what == "clear":
            state.clear(name, places)
        elif what == "set":
            state.timers[name].register(places, self.keys % 7 + value)
        elif what == "delete":
            state.timers[name].delete(places, self.keys % 7 + value)
        else:
            found = []
            for at, times, _ in state.timers[name].due(value):
                (keys,) = state.keys_at(at)
                found += zip([name] * len(at), times.tolist(), keys.to_pylist(), strict=True)
            return sorted(found)
        return []


def are_before(found, earliest):
    """Whether no timer is overlooked: of those that were deleted, the times may still be there."""
    pairs = zip(found, earliest, strict=True)
    return all(time_ms is None or (at is not None and at <= time_ms) for at, time_ms in pairs)


def check(backend, model):
    """Both views have what the model has, and so do the counts."""
    assert has_keys(backend) == bool(model.values or model.timers)
    held = {key for key, _ in model.values} | {key for _, _, key in model.timers}
    counts = {"numKeys": len(held), "numTimers": len(model.timers)}
    earliest = [
        min((time_ms for of_kind, time_ms, _ in model.timers if of_kind == kind), default=None) for kind in (0, 1)
    ]
    if has_keys(backend):
        columns = KeyedColumns(backend, Types.LONG(), 128)
        assert columns.held() == counts
        assert are_before([columns.next_of_others(kind) for kind in (0, 1)], earliest)
    copied = MemoryBackend(dict(backend.values))
    columns = Columns(copied, [*range(650)])
    for name, kind in KINDS.items():
        expected = kind.to_arrow([model.values.get((key, name)) for key in range(650)])
        assert columns.state.get(name, columns.places, kind).equals(expected)
    assert are_before([timers.next_ms() for timers in columns.state.timers], earliest)
    state = KeyedState(MemoryBackend(dict(backend.values)), 128)
    found = {(key, name): value for (key, _), of_key in state.all_entries().items() for name, value in of_key.items()}
    assert repr(sorted(found.items())) == repr(sorted(model.values.items()))
    timers = (state.event_timers, state.processing_timers)
    assert {(kind, time_ms, key) for kind in (0, 1) for time_ms, key, _ in timers[kind].all()} == model.timers
    state.flush()
    assert state.held() == counts


@settings(deadline=None, max_examples=60)
@given(st.lists(batch, min_size=1, max_size=12), st.booleans())
@example(
    [
        (True, [*range(400)], [("put", "s:n", 5), ("set", 0, 9)]),
        *[(True, [n], [("clear", "s:n", None), ("delete", 0, 9)]) for n in range(9)],
    ],
    True,
)
@example(
    [
        (True, [*range(400)], [("set", 0, 9), ("put", "s:n", 1)]),
        *[(n % 3 > 0, [n, n + 50], [("fire", 0, 9), ("put", "s:n", n)]) for n in range(9)],
    ],
    True,
)
@example(
    [
        (True, [*range(400)], [("put", "s:n", 5), ("set", 0, 90)]),
        *[(n < 5, [n], [("put", "s:n", n), ("delete", 0, 90)]) for n in range(9)],
        *[(n > 4, [n], [("clear", "s:n", None), ("set", 0, 80)]) for n in range(9)],
    ],
    False,
)
def test_both_views_find_what_either_has_left(batches, is_small):
    backend, model = MemoryBackend(), Model()
    with pytest.MonkeyPatch.context() as patch:
        if is_small:
            patch.setattr(extents, "_PAGE_BYTES", 1_024)
            patch.setattr(extents, "_FEW_ROWS", 16)
        for in_columns, keys, changes in batches:
            view = (Columns if in_columns else Objects)(backend, keys)
            for what, name, value in changes:
                drawn = value.draw(values[name]) if hasattr(value, "draw") else value
                assert view.apply(what, name, drawn) == model.apply(keys, what, name, drawn)
            view.state.flush()
            check(backend, model)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 40), min_size=1, max_size=30, unique=True), st.integers(0, 3)), max_size=8
    )
)
def test_keys_of_one_hash_stay_apart(batches):
    backend, expected = MemoryBackend(), {}
    for keys, value in batches:
        state = KeyedColumns(backend, Types.LONG(), 128)
        state.declare("s:n", Types.LONG())
        places = state.places_of(np.array(keys, np.uint64) % 5, [pa.array(keys)])
        assert state.get("s:n", places, Types.LONG()).to_pylist() == [expected.get(key) for key in keys]
        state.put("s:n", places, pa.array([value or None] * len(keys), pa.int64()), Types.LONG())
        state.flush()
        expected |= dict.fromkeys(keys, value or None)


@given(st.sampled_from(["declared", "left out"]), st.sampled_from([5, 500]), st.booleans())
@settings(deadline=None)
def test_state_that_an_earlier_program_gave_a_time_to_live(what, clock_ms, is_renewed):
    """Columns that know its name have it without one; else it expires in the background, as it does with objects."""
    backend = MemoryBackend()
    objects = KeyedState(backend, 128)
    for key in range(40):
        objects.write(key, None, f"s:n{SUFFIX}", (100, ONE, (key, key * 10)))
        objects.write(key, None, "s:other", {"any": "object"})
    objects.flush()
    columns = KeyedColumns(backend, Types.LONG(), 128)
    if what == "declared":
        columns.declare("s:n", Types.LONG())
    places = columns.places_of(hashes_of([*range(40)]), [pa.array(range(40))])
    if what == "declared":
        assert columns.get("s:n", places, Types.LONG()).to_pylist() == [key * 10 for key in range(40)]
        if is_renewed:
            columns.put("s:n", places, pa.array(range(40)), Types.LONG())
    columns.expire(clock_ms)
    columns.flush()
    stored = MemoryBackend(dict(backend.values))
    found = {key: of_key for (key, _), of_key in KeyedState(backend, 128).all_entries().items()}
    assert all(found[key]["s:other"] == {"any": "object"} for key in range(40))
    if what == "declared":
        assert {key: of_key["s:n"] for key, of_key in found.items()} == {
            key: key if is_renewed else key * 10 for key in range(40)
        }
    else:
        left = {key for key, of_key in found.items() if f"s:n{SUFFIX}" in of_key}
        assert left == {key for key in range(40) if key + 100 > clock_ms}
        assert (RowStore(stored).next_of_others(2) or 0) == (100 if left else 0)
