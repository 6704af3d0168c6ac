"""Keyed state: what is stored comes back, and little is read and written."""

import dataclasses
from collections import Counter

import pytest

from eventide.errors import StateError
from eventide.pickling.pickles import ProgramClasses, bring
from eventide.runtime.elements.keys import stable_hash
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.bucket import Pickled
from eventide.runtime.state.expiring import ONE, SUFFIX
from eventide.runtime.state.keyed import KeyedState
from support.buckets import address
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


def test_a_bucket_is_read_and_written_once_and_others_not_at_all():
    backend = CountingBackend()
    keyed = KeyedState(backend, 8, bucket_bytes=400)
    for key in range(200):
        keyed.write(key, "w", "n", key)
    keyed = reloaded(keyed, backend)
    backend.calls.clear()
    names = {key: f"bucket/{address(stable_hash(key), keyed._store.count)}" for key in range(200)}
    other = next(key for key in range(1, 200) if names[key] == names[0])
    for key in (0, other, 0):
        keyed.write(key, "w", "n", "x")
        keyed.read(key, "w", "n")
    keyed.flush()
    assert backend.calls == [("get", names[0]), ("put", names[0]), ("put", "buckets")]


def test_what_was_only_read_is_not_written():
    backend = CountingBackend()
    keyed = KeyedState(backend, 8)
    keyed.write("a", "w", "n", [1])
    keyed = reloaded(keyed, backend)
    backend.calls.clear()
    assert keyed.read("a", "w", "n") == [1]
    assert keyed.read("b", "w", "n") is None
    keyed.flush()
    assert backend.calls == [("get", "bucket/0")]
    keyed.read("a", "w", "n").append(2)
    keyed.flush()
    assert reloaded(keyed, backend).read("a", "w", "n") == [1, 2]


def test_few_keys_cost_the_same_however_many_there_are():
    calls = {}
    for count in (1_000, 30_000):
        backend = CountingBackend()
        keyed = KeyedState(backend, 128, bucket_bytes=1_000)
        keyed.open_all(range(count))
        for key in range(count):
            keyed.write(key, None, "n", key)
            keyed.event_timers.register(key, key, None)
        keyed = reloaded(keyed, backend, 128)
        backend.calls.clear()
        for key in (0, 7, 99):
            keyed.write(key, None, "n", -1)
        keyed.flush()
        calls[count] = len(backend.calls)
    assert calls == {1_000: 7, 30_000: 7}


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


def test_a_key_that_hashes_into_another_bucket_now_is_refused_when_its_old_one_is_read(monkeypatch):
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8, bucket_bytes=1)
    for key in [Sensor(1), *range(40)]:
        keyed.write(key, None, "n", "old")
        keyed.event_timers.register(100, key, None)
    before = address(stable_hash(Sensor(1)), 41)
    keyed.flush()
    with_a_new_field(monkeypatch)
    assert address(stable_hash(Sensor(1)), 41) != before
    keyed = KeyedState(backend, 8, bucket_bytes=1)
    keyed.write(Sensor(1), None, "n", "new")
    with pytest.raises(StateError, match=OTHER_HASH):
        list(keyed.event_timers.due(100))


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


def test_what_nobody_looks_at_stays_pickled():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    for key in "ab":
        keyed.write(key, None, "n", [key])
    keyed = reloaded(keyed, backend)
    keyed.open_all("ab")
    keyed.read("a", None, "n")
    assert [type(value) for value in keyed.values["n"].values()] == [list, Pickled]
    keyed.write("c", None, "n", ["c"])
    assert reloaded(keyed, backend).all_entries() == {(key, None): {"n": [key]} for key in "abc"}


MANY = 2_000


def with_many_keys(names=("n",)):
    """A state whose keys have all been touched at once, so that its buckets have hundreds of them."""
    backend = CountingBackend()
    for times in (0, 1):
        keyed = KeyedState(backend, 8, bucket_bytes=16_384)
        keyed.open_all(range(MANY))
        for key in range(MANY):
            for name in names:
                keyed.write(key, None, name, key * times)
            keyed.event_timers.register(1_000 + key, key, None)
        keyed.flush()
    backend.calls.clear()
    return backend


def written(backend):
    """The bytes written since the last call, by name."""
    names = [name for what, name in backend.calls if what == "put"]
    backend.calls.clear()
    return {name: len(backend.values[name]) for name in names}


def test_few_changed_keys_lie_beside_their_bucket_until_they_are_many():
    backend, expected = with_many_keys(), dict.fromkeys(range(MANY), 0) | {key: key for key in range(MANY)}
    own = {name: len(value) for name, value in backend.values.items() if name.startswith("bucket/")}
    assert min(own.values()) > 3_000
    beside = total = most = 0
    for micro_batch in range(300):
        keyed, key = KeyedState(backend, 8, bucket_bytes=16_384), micro_batch * 7 % 200
        assert keyed.read(key, None, "n") == expected[key]
        expected[key] = -micro_batch - 1
        keyed.write(key, None, "n", expected[key])
        backend.calls.clear()
        keyed.flush()
        sizes = written(backend)
        total += sum(sizes.values())
        beside += any("/changes" in name for name in sizes)
        most = max(most, *Counter(name.split("/")[1] for name in backend.values if "/changes" in name).values())
    assert 250 < beside < 300
    assert total < 300 * min(own.values()) / 8
    assert most == 3
    entries = KeyedState(backend, 8).all_entries()
    assert {key: entries[key, None]["n"] for key in range(MANY)} == expected


def test_keys_that_lose_all_or_are_new_beside_a_bucket_are_counted_and_found():
    backend = with_many_keys()
    keyed = KeyedState(backend, 8)
    keyed.take(7, None, "n")
    keyed.event_timers.delete(1_007, 7, None)
    keyed.write("new", None, "n", 1)
    keyed.flush()
    assert sum("/changes" in name for name in written(backend)) == 2
    keyed = KeyedState(backend, 8)
    assert keyed.held() == {"numKeys": MANY, "numTimers": MANY - 1}
    assert [keyed.read(key, None, "n") for key in (7, 8, "new")] == [None, 8, 1]
    assert [key for _, key, _ in keyed.event_timers.due(1_008)] == [0, 1, 2, 3, 4, 5, 6, 8]
    keyed.write(7, None, "n", "again")
    keyed.take("new", None, "n")
    keyed.flush()
    keyed = KeyedState(backend, 8)
    assert keyed.held() == {"numKeys": MANY, "numTimers": MANY - 9}
    assert [keyed.read(key, None, "n") for key in (7, 8, "new")] == ["again", 8, None]


def test_a_due_timer_brings_up_its_key_alone_and_the_next_one_is_known():
    backend = with_many_keys()
    keyed = KeyedState(backend, 8)
    assert [key for _, key, _ in keyed.event_timers.due(1_002)] == [0, 1, 2]
    assert sorted(keyed.index) == [0, 1, 2]
    assert len(keyed.keys) > 100
    assert keyed.event_timers.next_ms() == 1_003
    keyed.event_timers.register(1_001, 77, None)
    assert keyed.event_timers.next_ms() == 1_001
    keyed.flush()
    assert KeyedState(backend, 8).event_timers.next_ms() == 1_001


def test_what_expires_beside_a_bucket_goes_when_its_time_has_come():
    backend, name, until = CountingBackend(), f"global:n{SUFFIX}", {key: 10_000 + key for key in range(MANY)}
    for value in "ab":
        keyed = KeyedState(backend, 8, bucket_bytes=16_384)
        keyed.open_all(range(MANY))
        for key, time_ms in until.items():
            keyed.write(key, None, name, (10_000, ONE, (time_ms - 10_000, value)))
        keyed.flush()
    backend.calls.clear()
    for key, time_ms in [(5, 9_000), (6, 90_000), (1_999, 20_000)]:
        until[key] = time_ms
        keyed = KeyedState(backend, 8)
        keyed.write(key, None, name, (10_000, ONE, (time_ms - 10_000, "used")))
        keyed.expire(0, used=True)
        keyed.flush()
        assert any("/changes" in name for name in written(backend))
    for clock_ms in (8_999, 9_000, 10_500, 10_501, 11_998, 20_000, 90_000):
        keyed = KeyedState(backend, 8)
        keyed.expire(clock_ms, used=False)
        keyed.flush()
        left = {key for key, time_ms in until.items() if time_ms > clock_ms}
        assert {key for key, _ in KeyedState(backend, 8).all_entries()} == left
    assert backend.values == {}


def test_buckets_that_are_touched_one_key_each_are_split_and_put_together_when_all_are_touched(monkeypatch):
    backend = CountingBackend()
    for key in range(1_000):
        keyed = KeyedState(backend, 8)
        keyed.write(key, None, "n", [key])
        keyed.flush()
    small = KeyedState(backend, 8)._store.count
    keyed = KeyedState(backend, 8)
    keyed.open_all(range(1_000))
    for key in range(1_000):
        keyed.read(key, None, "n").append(1)
    keyed.flush()
    assert small > 4 * KeyedState(backend, 8)._store.count
    assert KeyedState(backend, 8).all_entries() == {(key, None): {"n": [key, 1]} for key in range(1_000)}


def test_the_small_buckets_of_new_keys_and_of_earlier_versions_become_large_when_most_are_touched():
    backend = CountingBackend()
    keyed = KeyedState(backend, 8)
    keyed.open_all(range(MANY))
    for key in range(MANY):
        keyed.write(key, "w", "n", [key])
        keyed.event_timers.register(1_000 + key, key, "w")
    keyed.flush()
    small = keyed._store.count
    keyed = KeyedState(backend, 8)
    assert keyed.read(7, "w", "n") == [7]
    keyed.write(7, "w", "n", [-7])
    keyed.flush()
    assert small <= keyed._store.count < 1.1 * small
    keyed = KeyedState(backend, 8)
    assert [key for _, key, _ in keyed.event_timers.due(1_000 + MANY // 2)] == [*range(MANY // 2 + 1)]
    keyed.flush()
    assert small / 4 > keyed._store.count > 1
    entries = {(key, "w"): {"n": [key]} for key in range(MANY)} | {(7, "w"): {"n": [-7]}}
    keyed = KeyedState(backend, 8)
    assert keyed.all_entries() == entries
    assert [key for _, key, _ in keyed.event_timers.all()] == [*range(MANY // 2 + 1, MANY)]
