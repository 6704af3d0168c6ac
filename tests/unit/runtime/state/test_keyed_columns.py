"""State of many keys at once lies in rows; what single keys have in buckets moves there, and back."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.common.ms import MAX_MS
from eventide.runtime.elements.keys import hashes_of
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.declared import DECLARED, types_of
from eventide.runtime.state.extents import NAMES
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.keyed_columns import KeyedColumns
from eventide.runtime.state.rows_of_keys import NoColumns
from support.buckets import in_buckets

KEYS = [f"key-{number}" for number in range(5_000)]


def in_columns(backend, keys=KEYS):
    state = KeyedColumns(backend, Types.STRING(), 128)
    state.declare("n", Types.LONG())
    return state, state.places_of(hashes_of(keys), [pa.array(keys)])


def named(state, places):
    (keys,) = state.keys_at(places)
    return keys.to_pylist()


def test_single_keys_and_many_share_state_and_timers_while_buckets_change_their_number():
    backend = MemoryBackend()
    state, places = in_columns(backend)
    state.put("n", places, pa.array(range(len(KEYS))), Types.LONG())
    event_timers, processing_timers = state.timers
    event_timers.register(places, np.arange(len(KEYS)))
    event_timers.register(places[:10], np.arange(10))
    processing_timers.register(places[:1], np.array([7]))
    event_timers.delete(places[5:], np.arange(5, len(KEYS)))
    state.flush()
    assert state.held() == {"numKeys": len(KEYS), "numTimers": 6}

    single = KeyedState(backend, 128)
    assert [single.read(key, None, "n") for key in KEYS] == list(range(len(KEYS)))
    assert single.event_timers.all() == [(number, f"key-{number}", None) for number in range(5)]
    single.take("key-0", None, "n")
    single.event_timers.register(9, "key-1", None)
    single.flush()

    state, places = in_columns(backend, [*KEYS[1:], "new", KEYS[0]])
    found = state.get("n", places, Types.LONG()).to_pylist()
    assert found == [*range(1, len(KEYS)), None, None]
    rounds = [[column.tolist() for column in rows[:2]] for rows in state.timers[0].due(20)]
    by_name = [sorted(zip(named(state, np.array(at)), times, strict=True)) for at, times in rounds]
    assert by_name == [[(f"key-{number}", number) for number in range(5)], [("key-1", 9)]]
    assert (state.timers[0].next_ms(), state.timers[1].next_ms()) == (None, 7)


def test_a_timer_that_is_deleted_or_set_again_while_others_fire_follows_that():
    state, places = in_columns(MemoryBackend(), ["a", "b"])
    timers, _ = state.timers
    for time_ms in (1, 2, 3):
        timers.register(places, np.full(2, time_ms))
    fired = []
    for at, times, _ in timers.due(10):
        fired.append(sorted(zip(named(state, at), times.tolist(), strict=True)))
        if times[0] == 1:
            timers.delete(places[:1], np.array([2]))
            timers.register(places[1:], np.array([3]))
            timers.register(places[1:], np.array([11]))
            timers.register(places[:1], np.array([0]))
    assert fired == [[("a", 1), ("b", 1)], [("a", 0), ("b", 2)], [("a", 3), ("b", 3)]]
    assert timers.next_ms() == 11


def test_a_timer_at_the_end_of_time_is_due_then():
    backend = MemoryBackend()
    state, places = in_columns(backend, ["a", "b"])
    state.timers[0].register(places[:1], np.array([MAX_MS]))
    state.flush()
    state = KeyedColumns(backend, Types.STRING(), 128)
    assert [timers.next_ms() for timers in state.timers] == [MAX_MS - 1, None]
    assert [(named(state, at), times.tolist()) for at, times, _ in state.timers[0].due(MAX_MS)] == [(["a"], [MAX_MS])]


def test_a_type_that_is_declared_beside_one_that_becomes_wider_is_kept():
    backend = MemoryBackend()
    narrow, wide = (Types.ROW_NAMED(names, [Types.LONG()] * len(names)) for names in (["a"], ["a", "b"]))
    state, places = in_columns(backend, ["a"])
    state.declare("wide", narrow)
    state.put("wide", places, narrow.to_arrow([Row(a=7)]), narrow)
    state.flush()
    state = KeyedColumns(backend, Types.STRING(), 128)
    state.declare("new", Types.STRING())
    state.declare("wide", wide)
    state.flush()
    assert types_of(backend.get(DECLARED)) == {"n": "LONG", "new": "STRING", "wide": str(wide)}


def test_keys_that_had_a_narrower_type_are_found():
    backend, numbers = MemoryBackend(), [*range(1_000)]
    for kind, keys, value in ((Types.INT(), numbers, 1), (Types.LONG(), [2_000, 3_000], 2), (Types.LONG(), [7], 3)):
        state = KeyedColumns(backend, kind, 128)
        state.declare("n", Types.LONG())
        places = state.places_of(hashes_of(keys), [pa.array(keys, kind.arrow_type())])
        state.put("n", places, pa.array([value] * len(keys)), Types.LONG())
        state.flush()
    entries = KeyedState(backend, 128).all_entries()
    expected = dict.fromkeys(numbers, 1) | {2_000: 2, 3_000: 2, 7: 3}
    assert {key: of_key["n"] for (key, _), of_key in entries.items()} == expected


NUMBERS = {key: key for key in range(400)} | {3: -1, 300: -2}
TEXTS = {1: [], 2: ["b", "c"]}
EVENT_TIMES = {(1_000 + key, key) for key in range(200)} - {(1_000, 0), (1_003, 3), (1_007, 7)} | {(5, 300)}


@pytest.mark.parametrize("stored", ["numbers", "pages"])
def test_buckets_of_version_0_1_0_become_rows(stored):
    backend, kind = in_buckets(stored), Types.LIST(Types.STRING())
    for _ in range(2):
        state = KeyedColumns(backend, Types.LONG(), 128)
        for name, of_name in (("s:n", Types.LONG()), ("s:list", kind)):
            state.declare(name, of_name)
        places = state.places_of(hashes_of([*range(400)]), [pa.array(range(400))])
        expected = [None if key in (0, 7) else NUMBERS[key] for key in range(400)]
        assert state.get("s:n", places, Types.LONG()).to_pylist() == expected
        assert state.get("s:list", places, kind).to_pylist() == [TEXTS.get(key) for key in range(400)]
        assert [timers.next_ms() for timers in state.timers] == [5, 7]
        state.flush()
        assert state.held() == {"numKeys": 398, "numTimers": len(EVENT_TIMES) + 1}
        assert {name.split("/")[0] for name in backend.values} <= {"declared types", *NAMES}


@pytest.mark.parametrize("stored", ["numbers", "pages"])
def test_timers_that_lie_in_buckets_fire_where_they_are_the_first_that_is_asked_for(stored):
    state = KeyedColumns(in_buckets(stored), Types.LONG(), 128)
    [(at, times, _)] = state.timers[0].due(1_002)
    assert [*zip(times.tolist(), named(state, at), strict=True)] == [(5, 300), (1_001, 1), (1_002, 2)]
    before = state.timers[0].number
    state.timers[0].register(at[:1], np.array([9]))
    assert state.timers[0].number == before + 1 > len(EVENT_TIMES)


MIXED_KEYS = st.one_of(st.text(max_size=2), st.integers(0, 5), st.none())
MIXED = st.dictionaries(
    MIXED_KEYS, st.one_of(st.integers(-5, 5), st.none(), st.floats(allow_nan=False), st.text(max_size=1))
)


@given(st.lists(st.tuples(st.booleans(), MIXED), max_size=6))
def test_columns_refuse_what_they_would_not_give_back_as_it_is_and_objects_take_over(batches):
    """Also within a micro-batch: what was changed in columns is written before."""
    backend, model = MemoryBackend(), {}
    for in_objects, changed in batches:
        state, kind = KeyedColumns(backend, Types.STRING(), 128), Types.LONG()
        state.declare("n", kind)
        names = [*changed]
        fits = all(type(name) is str and type(value) in (int, type(None)) for name, value in changed.items())
        takes_columns = fits and not in_objects
        if takes_columns:
            try:
                places = state.places_of(hashes_of(names), [pa.array(names, pa.string())])
                found = state.get_as_they_are("n", places, kind).to_pylist()
                assert found == [model.get(name) for name in names]
                state.put("n", places, pa.array([*changed.values()], pa.int64()), kind)
            except NoColumns:
                takes_columns = False
        state.flush()
        if not takes_columns:
            objects = KeyedState(backend, 128)
            for name, value in changed.items():
                objects.write(name, None, "n", value)
            objects.flush()
        model = {name: value for name, value in (model | changed).items() if value is not None}
        objects = KeyedState(backend, 128)
        objects.open_everything()
        assert {name: repr(value) for name, value in objects.items("n")} == {name: repr(model[name]) for name in model}
        objects.flush()
        assert objects.held() == {"numKeys": len(model), "numTimers": 0}
