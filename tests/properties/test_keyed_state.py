"""Keyed state against a dict, with restarts at any point, and extents so small that they are put together all the time.

And as the rows of a savepoint, which come in any order.
"""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.ms import MAX_MS
from eventide.common.windows import TimeWindow
from eventide.runtime.state import extents
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState
from eventide.savepoint import rows as savepoint_rows
from eventide.savepoint.rows import KEYED, KeyRows, keep_values, rows_of_extents

KEYS = st.integers(0, 40) | st.text("ab", max_size=2) | st.tuples(st.integers(0, 2), st.booleans())
NAMESPACES = st.sampled_from([None, "w", ("t", "u"), TimeWindow(0, 10), TimeWindow(5, 10)])
NAMES = st.sampled_from(["trigger:a", "trigger:b", "contents"])
WRITE = st.tuples(st.just("write"), KEYS, NAMESPACES, NAMES, st.text(max_size=30).map(lambda text: [text]))
APPEND = st.tuples(st.just("append"), KEYS, NAMESPACES, NAMES)
READ = st.tuples(st.just("read"), KEYS, NAMESPACES, NAMES)
TAKE = st.tuples(st.just("take"), KEYS, NAMESPACES, NAMES)
TAKE_ALL = st.tuples(st.just("take_all"), KEYS, NAMESPACES, st.sampled_from(["trigger:", "x", ""]))
TIMES_OF_TIMERS = st.integers(0, 20) | st.just(MAX_MS)
TIMER = st.tuples(st.sampled_from(["register", "delete"]), KEYS, NAMESPACES, TIMES_OF_TIMERS)
DUE = st.tuples(st.just("due"), TIMES_OF_TIMERS)
OPEN = st.tuples(st.just("open"), st.lists(KEYS, max_size=10))
RESTART = st.just(("restart",))
STEPS = st.lists(st.one_of(WRITE, WRITE, APPEND, READ, TAKE, TAKE_ALL, TIMER, TIMER, DUE, OPEN, RESTART), max_size=60)


class Model:
    """State and timers as anyone would write them down."""

    def __init__(self):
        self.values = {}
        self.timers = set()

    def entries(self):
        entries = {}
        for (key, namespace, name), value in self.values.items():
            entries.setdefault((key, namespace), {})[name] = value
        return entries


def is_before(next_ms, timers):
    """Whether no timer is overlooked: of those that were deleted, the times may still be there."""
    earliest = min((time_ms for time_ms, _, _ in timers), default=None)
    return earliest is None or (next_ms is not None and next_ms <= earliest)


@given(STEPS)
def test_keyed_state_is_a_dict(steps):
    backend, model = MemoryBackend(), Model()
    keyed = KeyedState(backend, 4)
    for what, *arguments in steps:
        if what == "restart":
            keyed.flush()
            keyed = KeyedState(backend, 4)
        elif what == "open":
            keyed.open_all(*arguments)
        elif what == "due":
            (until,) = arguments
            due = {timer for timer in model.timers if timer[0] <= until}
            assert set(keyed.event_timers.due(until)) == due
            model.timers -= due
        elif what in ("register", "delete"):
            key, namespace, time = arguments
            getattr(keyed.event_timers, what)(time, key, namespace)
            (model.timers.add if what == "register" else model.timers.discard)((time, key, namespace))
        elif what == "append":
            found = keyed.read(*arguments)
            if found is not None:
                found.append(1)
        elif what == "write":
            *at, value = arguments
            keyed.write(*at, list(value))
            model.values[tuple(at)] = list(value)
        elif what == "take_all":
            keyed.take_all(*arguments)
            *at, prefix = arguments
            gone = [each for each in model.values if [*each[:2]] == at and each[2].startswith(prefix)]
            for each in gone:
                del model.values[each]
        else:
            assert getattr(keyed, what)(*arguments) == model.values.get(tuple(arguments))
            if what == "take":
                model.values.pop(tuple(arguments), None)
        if what == "append" and tuple(arguments) in model.values:
            model.values[tuple(arguments)].append(1)
        assert is_before(keyed.event_timers.next_ms(), model.timers)
    keyed.flush()
    keyed = KeyedState(backend, 4)
    assert keyed.all_entries() == model.entries()
    assert sorted(keyed.event_timers.all(), key=str) == sorted(model.timers, key=str)
    if not model.values and not model.timers:
        assert backend.values == {}


_ENTRIES = st.dictionaries(st.tuples(KEYS, NAMESPACES, NAMES), st.text(max_size=30), max_size=40)
_TIMERS = st.lists(st.tuples(st.integers(0, 9), KEYS, NAMESPACES), unique=True, max_size=40)


@given(_ENTRIES, _TIMERS, st.data())
def test_the_rows_of_a_savepoint_become_the_same_state_in_any_order(entries, timers, data):
    backend, again = MemoryBackend(), MemoryBackend()
    keyed = KeyedState(backend, 4)
    for at, value in entries.items():
        keyed.write(*at, value)
    for timer in timers:
        keyed.event_timers.register(*timer)
    keyed.flush()
    rows = pa.concat_tables([KEYED.empty_table(), *rows_of_extents(backend, KeyRows("operator", "", 4))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(savepoint_rows, "_ROWS_AT_ONCE", data.draw(st.integers(1, 10)))
        keep_values(rows.take(pa.array(data.draw(st.permutations(range(len(rows)))), pa.int64())), again)
    expected, found = KeyedState(backend, 4), KeyedState(again, 4)
    assert found.all_entries() == expected.all_entries()
    assert found.event_timers.all() == expected.event_timers.all()
    assert found.event_timers.number == expected.event_timers.number


MANY = 60
LAST, NOTES = "global:last", "global:notes"
VALUES = st.one_of(st.integers(-3, 2**70), st.text("ab", max_size=3), st.booleans(), st.lists(st.integers(0, 3)))
TOUCHED = st.one_of(
    st.lists(st.integers(0, MANY), min_size=1, max_size=3),
    st.just(range(0, MANY, 5)),
    st.just(range(MANY)),
    st.just(range(MANY // 2, 2 * MANY)),
)
CHANGE = st.one_of(
    st.tuples(st.just("last"), VALUES),
    st.tuples(st.just("notes"), VALUES),
    st.tuples(st.just("window"), VALUES),
    st.tuples(st.just("append"), st.just(7)),
    st.tuples(st.just("timer"), TIMES_OF_TIMERS),
    st.tuples(st.just("timer of a window"), TIMES_OF_TIMERS),
    st.tuples(st.just("no timer"), TIMES_OF_TIMERS),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("look"), st.none()),
)
BATCHES = st.lists(
    st.tuples(TOUCHED, st.lists(CHANGE, min_size=1, max_size=3), st.none() | TIMES_OF_TIMERS, st.booleans()),
    min_size=2,
    max_size=10,
)
KINDS_OF_KEYS = [str, lambda number: number, lambda number: (number % 3, f"{number}"), lambda number: number - 0.5]


def _apply(keyed, model, key, what, argument):
    """Change a key in the state and in the model of it."""
    if what in ("last", "notes"):
        keyed.write(key, None, f"global:{what}", argument)
        model.values[key, None, f"global:{what}"] = argument
    elif what == "window":
        keyed.write(key, "w", NOTES, argument)
        model.values[key, "w", NOTES] = argument
    elif what == "append":
        found = keyed.read(key, None, NOTES)
        assert repr(found) == repr(model.values.get((key, None, NOTES)))
        if type(found) is list:
            found.append(argument)
            model.values[key, None, NOTES] = [*found]
    elif what == "no timer":
        keyed.event_timers.delete(argument, key, None)
        model.timers.discard((argument, key, None))
    elif what.startswith("timer"):
        namespace = None if what == "timer" else "w"
        keyed.event_timers.register(argument, key, namespace)
        model.timers.add((argument, key, namespace))
    elif what == "clear":
        for namespace in (None, "w"):
            keyed.take_all(key, namespace, "global:")
        model.values = {at: value for at, value in model.values.items() if at[0] != key}
    else:
        assert repr(keyed.read(key, None, LAST)) == repr(model.values.get((key, None, LAST)))


@given(BATCHES, st.sampled_from(KINDS_OF_KEYS))
def test_micro_batches_that_touch_few_keys_or_many_leave_what_a_dict_would_have(batches, key_of):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_PAGE_BYTES", 512), ("_FEW_ROWS", 8)):
            patch.setattr(extents, name, value)  # so that extents have several pages, and are put together
        _play([(range(MANY), [("last", 1)], None, True), *batches], key_of)


def _play(batches, key_of):
    backend, model = MemoryBackend(), Model()
    keyed = KeyedState(backend, 4)
    for touched, changes, until, restarts in batches:
        keys = [key_of(number) for number in touched]
        keyed.open_all(keys)
        for key in keys:
            for what, argument in changes:
                _apply(keyed, model, key, what, list(argument) if type(argument) is list else argument)
        if until is not None:
            due = {timer for timer in model.timers if timer[0] <= until}
            fired = list(keyed.event_timers.due(until))
            assert [timer[0] for timer in fired] == sorted(timer[0] for timer in fired)
            assert len(fired) == len(due)
            assert set(fired) == due
            model.timers -= due
        assert is_before(keyed.event_timers.next_ms(), model.timers)
        keyed.flush()
        living = {at[0] for at in model.values} | {key for _, key, _ in model.timers}
        assert keyed.held() == {"numKeys": len(living), "numTimers": len(model.timers)}
        if restarts:
            keyed = KeyedState(backend, 4)
    again = KeyedState(backend, 4)
    assert repr(_sorted(again.all_entries())) == repr(_sorted(model.entries()))
    assert sorted(again.event_timers.all(), key=str) == sorted(model.timers, key=str)
    if not model.values and not model.timers:
        assert backend.values == {}


def _sorted(entries):
    return sorted(((at, sorted(values.items())) for at, values in entries.items()), key=repr)
