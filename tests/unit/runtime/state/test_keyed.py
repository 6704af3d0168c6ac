"""Keyed state: what is stored comes back, and little is read and written."""

import dataclasses
import random

import pytest

from eventide.common.ms import MAX_MS
from eventide.common.windows import TimeWindow
from eventide.errors import StateError
from eventide.pickling.pickles import ProgramClasses, bring
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.bucket import Pickled
from eventide.runtime.state.expiring import ONE, SUFFIX
from eventide.runtime.state.extents import NAMES, RowStore
from eventide.runtime.state.keyed import KeyedState
from support.buckets import in_buckets
from support.counting_backend import CountingBackend


def reloaded(keyed, backend, max_parallelism=8):
    keyed.flush()
    return KeyedState(backend, max_parallelism)


def test_values_are_kept_by_key_namespace_and_name():
    keyed = KeyedState(MemoryBackend(), 8)
    keyed.write("a", "w", "n", 1)
    keyed.write("a", None, "n", 2)
    keyed.write("b", "w", "n", 3)
    keyed.write("a", "w", "m", 4)
    assert [keyed.read(*at) for at in [("a", "w", "n"), ("a", None, "n"), ("b", "w", "n"), ("a", "w", "m")]] == [
        1,
        2,
        3,
        4,
    ]
    assert keyed.read("b", None, "n") is None
    assert keyed.take("a", "w", "n") == 1
    assert keyed.take("a", "w", "n") is None
    assert keyed.all_entries() == {("a", None): {"n": 2}, ("b", "w"): {"n": 3}, ("a", "w"): {"m": 4}}


def test_a_prefix_is_taken_and_the_rest_stays():
    keyed = KeyedState(MemoryBackend(), 8)
    for name in ("trigger:a", "trigger:b", "window:a"):
        keyed.write("k", "w", name, 1)
    keyed.take_all("k", "w", "trigger:")
    assert keyed.all_entries() == {("k", "w"): {"window:a": 1}}
    keyed.take_all("k", "w", "window:")
    keyed.take_all("k", "w", "window:")
    assert keyed.all_entries() == {}


def test_equal_keys_of_different_types_are_one_key():
    keyed = KeyedState(MemoryBackend(), 8)
    keyed.write(1, None, "n", "one")
    assert keyed.read(1.0, None, "n") == keyed.read(True, None, "n") == "one"


def test_what_was_flushed_is_there_again():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    for key in range(20):
        keyed.write(key, "w", "n", [key])
        keyed.event_timers.register(key % 3, key, "w")
        keyed.processing_timers.register(key % 2, key, "w")
    again = reloaded(keyed, backend)
    assert again.all_entries() == {(key, "w"): {"n": [key]} for key in range(20)}
    assert [time for time, _, _ in again.event_timers.all()] == sorted(key % 3 for key in range(20))
    assert [time for time, _, _ in again.processing_timers.all()] == sorted(key % 2 for key in range(20))
    assert again.read(7, "w", "n") == [7]


def test_keys_of_one_hash_do_not_get_mixed_up(monkeypatch):
    monkeypatch.setattr("eventide.runtime.state.keyed.stable_hash", lambda key: 5)
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    for key in "abc":
        keyed.write(key, "w", "n", key.upper())
        keyed.event_timers.register(3, key, "w")
    keyed = reloaded(keyed, backend)
    assert [keyed.read(key, "w", "n") for key in "dcba"] == [None, "C", "B", "A"]
    keyed.take("b", "w", "n")
    keyed.event_timers.delete(3, "b", "w")
    keyed = reloaded(keyed, backend)
    assert keyed.all_entries() == {("a", "w"): {"n": "A"}, ("c", "w"): {"n": "C"}}
    assert list(keyed.event_timers.due(3)) == [(3, "a", "w"), (3, "c", "w")]


def test_an_empty_bucket_is_deleted():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    keyed.write("a", "w", "n", 1)
    keyed = reloaded(keyed, backend)
    keyed.take("a", "w", "n")
    keyed.flush()
    assert backend.values == {}


def test_a_prefix_is_taken_of_a_key_that_was_not_touched_before():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    keyed.write("k", "w", "trigger:a", 1)
    keyed = reloaded(keyed, backend)
    keyed.take_all("k", "w", "trigger:")
    assert keyed.all_entries() == {}


@dataclasses.dataclass(frozen=True)
class Sensor:
    number: int


def with_a_new_field(monkeypatch):
    """Restart a program whose class has got a field with a default."""
    fields = [("number", int), ("floor", int, 0)]
    new = dataclasses.make_dataclass("Sensor", fields, frozen=True, namespace={"__module__": __name__})
    monkeypatch.setitem(globals(), "Sensor", new)
    bring(ProgramClasses((new,)))


def stored_sensor():
    bring(ProgramClasses((Sensor,)))
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    keyed.write(Sensor(1), None, "n", "old")
    keyed.event_timers.register(100, Sensor(1), None)
    keyed.flush()
    return backend


OTHER_HASH = r"the key Sensor\(number=1, floor=0\).* has another hash than when it was stored.*undo the change"


def test_a_key_whose_class_has_got_a_field_is_refused_when_it_is_touched(monkeypatch):
    backend = stored_sensor()
    with_a_new_field(monkeypatch)
    with pytest.raises(StateError, match=OTHER_HASH):
        KeyedState(backend, 8).read(Sensor(1), None, "n")
    with pytest.raises(StateError, match=OTHER_HASH):
        KeyedState(backend, 8).open_all([Sensor(1), Sensor(2)])


def test_a_key_whose_class_has_got_a_field_is_refused_when_its_timer_is_due(monkeypatch):
    backend = stored_sensor()
    with_a_new_field(monkeypatch)
    with pytest.raises(StateError, match=OTHER_HASH):
        list(KeyedState(backend, 8).event_timers.due(100))


def test_a_class_of_keys_may_change_when_nothing_is_kept_of_them(monkeypatch):
    backend = stored_sensor()
    keyed = KeyedState(backend, 8)
    keyed.write("plain", None, "n", 1)
    keyed.take(Sensor(1), None, "n")
    keyed.event_timers.delete(100, Sensor(1), None)
    keyed.flush()
    with_a_new_field(monkeypatch)
    keyed = KeyedState(backend, 8)
    keyed.write(Sensor(1), None, "n", "new")
    keyed.flush()
    assert KeyedState(backend, 8).all_entries() == {("plain", None): {"n": 1}, (Sensor(1), None): {"n": "new"}}


def test_an_entry_never_takes_the_place_of_that_of_an_equal_key(monkeypatch):
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    keyed.write("other", None, "n", 1)
    keyed.event_timers.register(100, "other", None)
    keyed.write(Sensor(1), None, "n", "old")
    keyed.event_timers.register(100, Sensor(1), None)
    keyed.flush()
    with_a_new_field(monkeypatch)
    with pytest.raises(StateError, match=OTHER_HASH):
        KeyedState(backend, 8).write(Sensor(1), None, "n", "new")
    with pytest.raises(StateError, match=OTHER_HASH):
        list(KeyedState(backend, 8).event_timers.due(100))


def test_keys_share_no_object_that_can_be_changed():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    shared = [1]
    keyed.write("a", None, "n", shared)
    keyed.write("b", None, "n", shared)
    keyed.write("b", "w", "n", shared)
    keyed = reloaded(keyed, backend)
    keyed.read("b", None, "n").append(2)
    keyed = reloaded(keyed, backend)
    assert keyed.all_entries() == {("a", None): {"n": [1]}, ("b", None): {"n": [1, 2]}, ("b", "w"): {"n": [1]}}


def test_what_is_not_looked_at_stays_pickled():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    for key in "ab":
        keyed.write(key, None, "n", [key])
    keyed = reloaded(keyed, backend)
    keyed.open_all("ab")
    keyed.read("a", None, "n")
    assert {key: type(value) for key, value in keyed.values["n"].items()} == {"a": list, "b": Pickled}
    keyed.write("c", None, "n", ["c"])
    assert reloaded(keyed, backend).all_entries() == {(key, None): {"n": [key]} for key in "abc"}


MANY = 2_000


def with_many_keys():
    """A state with many keys, each with a value and a timer."""
    backend = CountingBackend()
    keyed = KeyedState(backend, 8)
    keyed.open_all(range(MANY))
    for key in range(MANY):
        keyed.write(key, None, "n", 0)
        keyed.event_timers.register(1_000 + key, key, None)
    keyed.flush()
    backend.calls.clear()
    return backend


def written(backend):
    """The bytes written since the last call."""
    names = [name for what, name in backend.calls if what == "put"]
    backend.calls.clear()
    return sum(len(backend.values.get(name, b"")) for name in names)


def test_what_was_only_read_is_not_written():
    backend = with_many_keys()
    keyed = KeyedState(backend, 8)
    assert [keyed.read(key, None, "n") for key in (7, MANY)] == [0, None]
    keyed.flush()
    assert written(backend) == 0


def test_what_is_written_follows_the_keys_that_change_however_many_there_are():
    backend, expected = with_many_keys(), dict.fromkeys(range(MANY), 0)
    everything = sum(map(len, backend.values.values()))
    total = 0
    for micro_batch in range(300):
        keyed, key = KeyedState(backend, 8), micro_batch * 7 % 200
        assert keyed.read(key, None, "n") == expected[key]
        expected[key] = -micro_batch - 1
        keyed.write(key, None, "n", expected[key])
        backend.calls.clear()
        keyed.flush()
        total += written(backend)
    assert total < 300 * everything / 8
    entries = KeyedState(backend, 8).all_entries()
    assert {key: entries[key, None]["n"] for key in range(MANY)} == expected


def test_keys_that_lose_all_or_are_new_are_counted_and_found():
    backend = with_many_keys()
    keyed = KeyedState(backend, 8)
    keyed.take(7, None, "n")
    keyed.event_timers.delete(1_007, 7, None)
    keyed.write("new", None, "n", 1)
    keyed.flush()
    keyed = KeyedState(backend, 8)
    assert keyed.held() == {"numKeys": MANY, "numTimers": MANY - 1}
    assert [keyed.read(key, None, "n") for key in (7, 8, "new")] == [None, 0, 1]
    assert [key for _, key, _ in keyed.event_timers.due(1_008)] == [0, 1, 2, 3, 4, 5, 6, 8]
    keyed.write(7, None, "n", "again")
    keyed.take("new", None, "n")
    keyed.flush()
    keyed = KeyedState(backend, 8)
    assert keyed.held() == {"numKeys": MANY, "numTimers": MANY - 9}
    assert [keyed.read(key, None, "n") for key in (7, 8, "new")] == ["again", 0, None]


def test_a_due_timer_brings_up_its_key_alone_and_the_next_one_is_known():
    backend = with_many_keys()
    keyed = KeyedState(backend, 8)
    assert [key for _, key, _ in keyed.event_timers.due(1_002)] == [0, 1, 2]
    assert sorted(keyed.index) == sorted(keyed.keys) == [0, 1, 2]
    assert keyed.event_timers.next_ms() == 1_003
    keyed.event_timers.register(1_001, 77, None)
    assert keyed.event_timers.next_ms() == 1_001
    keyed.flush()
    assert KeyedState(backend, 8).event_timers.next_ms() == 1_001


def test_what_expires_goes_when_its_time_has_come():
    backend, name, until = CountingBackend(), f"global:n{SUFFIX}", {key: 10_000 + key for key in range(MANY)}
    keyed = KeyedState(backend, 8)
    keyed.open_all(range(MANY))
    for key, time_ms in until.items():
        keyed.write(key, None, name, (10_000, ONE, (time_ms - 10_000, "a")))
    keyed.flush()
    for key, time_ms in [(5, 9_000), (6, 90_000), (1_999, 20_000)]:
        until[key] = time_ms
        keyed = KeyedState(backend, 8)
        keyed.write(key, None, name, (10_000, ONE, (time_ms - 10_000, "used")))
        keyed.expire(0)
        keyed.flush()
    for clock_ms in (8_999, 9_000, 10_500, 10_501, 11_998, 20_000, 90_000):
        keyed = KeyedState(backend, 8)
        keyed.expire(clock_ms)
        keyed.flush()
        left = {key for key, time_ms in until.items() if time_ms > clock_ms}
        assert {key for key, _ in KeyedState(backend, 8).all_entries()} == left
    assert backend.values == {}


def test_what_expires_goes_where_its_key_was_read_and_not_touched():
    backend, name = MemoryBackend(), f"global:n{SUFFIX}"
    keyed = KeyedState(backend, 8)
    keyed.write("a", None, name, (0, ONE, (100, "old")))
    keyed.event_timers.register(50, "a", None)
    keyed = reloaded(keyed, backend)
    keyed.event_timers.delete(50, "a", None)
    keyed.event_timers.register(5_000, "a", None)
    keyed = reloaded(keyed, backend)
    assert not [*keyed.event_timers.due(60)]  # which reads the key: that its timer was deleted, is known by its row
    keyed.expire(200)
    keyed = reloaded(keyed, backend)
    assert keyed.all_entries() == {}
    assert keyed.event_timers.all() == [(5_000, "a", None)]


def test_few_keys_that_have_a_state_do_not_make_the_state_of_all_dearer():
    cost = {}
    for rare in (0, 8):
        backend, randomness, cost[rare] = CountingBackend(), random.Random(1), 0
        keyed = KeyedState(backend, 8)
        keyed.open_all(range(20_000))
        for key in range(20_000):
            keyed.write(key, None, "n", 0)
        for micro_batch in range(1, 60):
            keyed = reloaded(keyed, backend)
            for key in randomness.sample(range(20_000), 50):
                keyed.write(key, None, "n", micro_batch)
                if rare and randomness.random() < 0.1:
                    keyed.write(key, None, f"rare{randomness.randrange(rare)}", micro_batch)
            cost[rare] += written(backend) if micro_batch > 1 else 0
    assert cost[8] < 1.5 * cost[0]


@pytest.mark.parametrize(
    "window", [TimeWindow(0.5, 10.5), TimeWindow(0, 2**63), TimeWindow(False, True), TimeWindow(0, 9)]
)
def test_timers_of_any_window_come_back_with_it(window):
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    keyed.write("a", window, "contents", [1])
    keyed.event_timers.register(9, "a", window)
    keyed = reloaded(keyed, backend)
    [(_, key, found)] = keyed.event_timers.due(9)
    assert repr(found) == repr(window)
    assert keyed.read(key, found, "contents") == [1]


def test_the_last_timers_there_are_wake_in_time():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    keyed.event_timers.register(MAX_MS - 1, "a", None)
    keyed.event_timers.register(MAX_MS, "b", None)
    keyed = reloaded(keyed, backend)
    assert keyed.event_timers.next_ms() == MAX_MS - 1
    assert [key for _, key, _ in keyed.event_timers.due(MAX_MS - 1)] == ["a"]
    assert [key for _, key, _ in keyed.event_timers.due(MAX_MS)] == ["b"]


def test_keys_that_are_touched_one_by_one_are_read_together_in_the_end():
    backend = with_many_keys()
    keyed = KeyedState(backend, 8)
    backend.calls.clear()
    assert all(keyed.read(key, None, "n") == 0 for key in range(MANY))
    assert len(backend.calls) < 200


VALUES = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, True, 1.5, float("inf"), "", "\ud800", b"x", (1, "a"), [1], None]


def test_keys_that_are_touched_one_by_one_are_looked_for_once(monkeypatch):
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    for key in range(600):
        keyed.write(key, None, "n", key)
    keyed = reloaded(keyed, backend)
    asked, others = [], RowStore.others
    monkeypatch.setattr(RowStore, "others", lambda store: asked.append(store) or others(store))
    for key in range(400, 2_000):
        keyed.write(key, None, "n", -key)
    assert len(asked) == 1
    keyed = reloaded(keyed, backend)
    assert [keyed.read(key, None, "n") for key in (399, 400, 1_999, 2_000)] == [399, -400, -1_999, None]


@pytest.mark.parametrize("key", [*VALUES[:9], (1, "a"), (1, 2**70), (), ((1,), 2), TimeWindow(0, 5)])
def test_keys_and_values_come_back_as_they_were(key):
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    for number, value in enumerate(VALUES[:-1]):
        keyed.write(key, None, f"n{number}", value)
        keyed.write((number, "other"), None, "n", value)
    keyed.event_timers.register(5, key, TimeWindow(0, 5))
    keyed.event_timers.register(6, key, ("any", 1))
    found = reloaded(keyed, backend)
    assert [(type(v), repr(v)) for v in (found.read(key, None, f"n{n}") for n in range(len(VALUES) - 1))] == [
        (type(v), repr(v)) for v in VALUES[:-1]
    ]
    assert [found.read((n, "other"), None, "n") for n in range(len(VALUES) - 1)] == VALUES[:-1]
    fired = [*found.event_timers.due(9)]
    assert fired == [(5, key, TimeWindow(0, 5)), (6, key, ("any", 1))]
    assert type(fired[0][1]) is type(key)


@pytest.mark.parametrize("stored", ["windows", "changed windows"])
def test_buckets_of_version_0_1_0_become_rows(stored):
    """Of 100 keys with values, lists, state and timers of windows, and a time to live."""
    backend, windows = in_buckets(stored), (TimeWindow(0, 10), TimeWindow(10, 20))
    expected = {}
    for number in range(100):
        of_key = {"n": -4 if number == 4 else number} | ({"list": [number]} if number % 3 == 0 else {})
        if number == 3:
            of_key = {}
        if number % 11 == 0:
            of_key[f"ttl{SUFFIX}"] = (100, ONE, (number, number * 10))
        if of_key:
            expected[(number, f"k{number}"), None] = of_key
        if number % 5 == 0:
            for window, value in zip(windows, (number, [number]), strict=True):
                expected[(number, f"k{number}"), window] = {"w": value}
    for _ in range(2):
        keyed = KeyedState(backend, 128)
        assert keyed.all_entries() == expected
        timers = {(9 + 10 * i, (n, f"k{n}"), w) for n in range(0, 100, 5) for i, w in enumerate(windows)}
        assert {*keyed.event_timers.all()} == timers - {(9, (5, "k5"), windows[0])}
        assert {*keyed.processing_timers.all()} == {(50 + n, (n, f"k{n}"), None) for n in range(0, 100, 7)}
        keyed.write("new", None, "n", 1)
        keyed.flush()
        assert {name.split("/")[0] for name in backend.values} <= {"declared types", *NAMES}
        expected["new", None] = {"n": 1}
