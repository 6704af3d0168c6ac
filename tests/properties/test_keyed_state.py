"""Keyed state against a dict, with restarts at any point and buckets so small that they split all the time.

And as the rows of a savepoint, which come in any order, some at a time.
"""

from hypothesis import given
from hypothesis import strategies as st

from eventide.common.time_window import TimeWindow
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.bucket import BucketStore
from eventide.runtime.state.keyed import KeyedState
from eventide.savepoint.rows import KeyRows, keep_values, rows_of_buckets

KEYS = st.integers(0, 40) | st.text("ab", max_size=2) | st.tuples(st.integers(0, 2), st.booleans())
NAMESPACES = st.sampled_from([None, "w", ("t", "u"), TimeWindow(0, 10), TimeWindow(5, 10)])
NAMES = st.sampled_from(["trigger:a", "trigger:b", "contents"])
WRITE = st.tuples(st.just("write"), KEYS, NAMESPACES, NAMES, st.text(max_size=30).map(lambda text: [text]))
APPEND = st.tuples(st.just("append"), KEYS, NAMESPACES, NAMES)
READ = st.tuples(st.just("read"), KEYS, NAMESPACES, NAMES)
TAKE = st.tuples(st.just("take"), KEYS, NAMESPACES, NAMES)
TAKE_ALL = st.tuples(st.just("take_all"), KEYS, NAMESPACES, st.sampled_from(["trigger:", "x", ""]))
TIMER = st.tuples(st.sampled_from(["register", "delete"]), KEYS, NAMESPACES, st.integers(0, 20))
DUE = st.tuples(st.just("due"), st.integers(0, 20))
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


@given(STEPS, st.sampled_from([1, 100, 1_000]))
def test_keyed_state_is_a_dict(steps, bucket_bytes):
    backend, model = MemoryBackend(), Model()
    keyed = KeyedState(backend, 4, bucket_bytes)
    for what, *arguments in steps:
        if what == "restart":
            keyed.flush()
            keyed = KeyedState(backend, 4, bucket_bytes)
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
        assert keyed.event_timers.next_ms() == min((time for time, _, _ in model.timers), default=None)
    keyed.flush()
    keyed = KeyedState(backend, 4, bucket_bytes)
    assert keyed.all_entries() == model.entries()
    assert sorted(keyed.event_timers.all(), key=str) == sorted(model.timers, key=str)
    if not model.values and not model.timers:
        assert backend.values == {}


_ENTRIES = st.dictionaries(st.tuples(KEYS, NAMESPACES, NAMES), st.text(max_size=30), max_size=40)
_TIMERS = st.lists(st.tuples(st.integers(0, 9), KEYS, NAMESPACES), unique=True, max_size=40)


@given(_ENTRIES, _TIMERS, st.data())
def test_the_rows_of_a_savepoint_become_the_same_state_however_they_are_cut(entries, timers, data):
    backend, again = MemoryBackend(), MemoryBackend()
    keyed = KeyedState(backend, 4)
    for at, value in entries.items():
        keyed.write(*at, value)
    for timer in timers:
        keyed.event_timers.register(*timer)
    keyed.flush()
    stored = BucketStore(backend, 1, ("event times", "clock times", "expiries"))
    waiting = data.draw(st.permutations([*rows_of_buckets(stored, KeyRows("operator", "", 4))]))
    while waiting:
        size = data.draw(st.integers(1, len(waiting)))
        keep_values(waiting[:size], again, 4)
        waiting = waiting[size:]
    expected, found = KeyedState(backend, 4), KeyedState(again, 4)
    assert found.all_entries() == expected.all_entries()
    assert found.event_timers.all() == expected.event_timers.all()
    assert found.event_timers.number == expected.event_timers.number
