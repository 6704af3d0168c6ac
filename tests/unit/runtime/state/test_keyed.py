"""Keyed state: what is stored comes back, timers fire once and in order, and little is read and written."""

from eventide.runtime.keys import key_group
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState


class CountingBackend(MemoryBackend):
    """Remembers which names were read, written and deleted."""

    def __init__(self, values=None):
        super().__init__(values)
        self.calls = []

    def get(self, name):
        self.calls.append(("get", name))
        return super().get(name)

    def put(self, name, value):
        self.calls.append(("put", name))
        super().put(name, value)

    def delete(self, name):
        self.calls.append(("delete", name))
        super().delete(name)


def fire(keyed, watermark):
    return list(keyed.due_timers(watermark))


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
        keyed.register_timer(key % 3, key, "w")
    again = reloaded(keyed, backend)
    assert again.all_entries() == {(key, "w"): {"n": [key]} for key in range(20)}
    assert [time for time, _, _ in again.all_timers()] == sorted(key % 3 for key in range(20))
    assert again.read(7, "w", "n") == [7]


def test_a_bucket_is_read_and_written_once_and_others_not_at_all():
    backend = CountingBackend()
    keyed = KeyedState(backend, 8)
    group = key_group("a", 8)
    other = next(key for key in range(100) if key_group(key, 8) == group)
    for key in ("a", other, "a"):
        keyed.write(key, "w", "n", key)
        keyed.read(key, "w", "n")
    keyed.flush()
    assert backend.calls == [("get", "timers"), ("get", f"bucket/{group}"), ("put", f"bucket/{group}")]


def test_an_empty_bucket_is_deleted():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    keyed.write("a", "w", "n", 1)
    keyed = reloaded(keyed, backend)
    keyed.take("a", "w", "n")
    keyed.flush()
    assert backend.values == {}


def test_an_advance_reads_only_the_buckets_it_fires():
    backend = CountingBackend()
    keyed = KeyedState(backend, 64)
    keyed.register_timer(5, "a", "w")
    keyed.register_timer(50, "b", "w")
    keyed.flush()
    backend.calls.clear()
    keyed = KeyedState(backend, 64)
    assert fire(keyed, 4) == []
    assert backend.calls == [("get", "timers")]
    assert fire(keyed, 5) == [(5, "a", "w")]
    assert backend.calls == [("get", "timers"), ("get", f"bucket/{key_group('a', 64)}")]


def test_timers_fire_at_their_time_in_order_over_all_keys_and_once():
    keyed = KeyedState(MemoryBackend(), 8)
    for time, key in [(3, "a"), (1, "b"), (2, "c"), (1, "b"), (4, "d")]:
        keyed.register_timer(time, key, "w")
    assert fire(keyed, 0) == []
    assert fire(keyed, 3) == [(1, "b", "w"), (2, "c", "w"), (3, "a", "w")]
    assert fire(keyed, 3) == []
    assert fire(keyed, 4) == [(4, "d", "w")]
    assert keyed.all_timers() == []


def test_a_deleted_timer_does_not_fire_and_deleting_nothing_is_nothing():
    keyed = KeyedState(MemoryBackend(), 8)
    keyed.register_timer(1, "a", "w")
    keyed.delete_timer(1, "a", "v")
    keyed.delete_timer(2, "a", "w")
    assert keyed.all_timers() == [(1, "a", "w")]
    keyed.delete_timer(1, "a", "w")
    assert fire(keyed, 9) == []


def test_a_timer_set_while_others_fire_fires_in_the_same_advance_if_it_is_due():
    keyed = KeyedState(MemoryBackend(), 8)
    keyed.register_timer(1, "a", "w")
    keyed.register_timer(5, "b", "w")
    fired = []
    for time, key, _ in keyed.due_timers(5):
        fired.append((time, key))
        if key == "a" and time < 9:
            keyed.register_timer(time + 3, "a", "w")
    assert fired == [(1, "a"), (4, "a"), (5, "b")]
    assert keyed.all_timers() == [(7, "a", "w")]


def test_a_timer_deleted_while_others_fire_does_not_fire_even_if_it_is_set_and_deleted_again():
    keyed = KeyedState(MemoryBackend(), 8)
    for time in (1, 2, 3):
        keyed.register_timer(time, "a", "w")
    fired = []
    for time, _, _ in keyed.due_timers(5):
        fired.append(time)
        keyed.delete_timer(2, "a", "w")
        keyed.register_timer(3, "a", "w")
        keyed.delete_timer(3, "a", "w")
        if time == 1:
            keyed.register_timer(4, "a", "w")
            keyed.delete_timer(4, "a", "w")
            keyed.register_timer(4, "a", "w")
    assert fired == [1, 4]
    assert keyed.all_timers() == []


def test_a_table_holds_what_its_keys_have_and_what_is_put_into_it():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    for key in range(5):
        keyed.write(key, "w", "n", [key])
    keyed = reloaded(keyed, backend)
    table = keyed.table([1, 2, 7], "w", "n")
    assert (table[1], table[2], 7 in table) == ([1], [2], False)
    table[1].append("more")
    table[7] = ["new"]
    again = reloaded(keyed, backend)
    assert again.read(1, "w", "n") == [1, "more"]
    assert again.read(7, "w", "n") == ["new"]
    assert again.read(4, "w", "n") == [4]


def test_many_values_are_taken_at_once_in_the_order_of_their_keys():
    keyed = KeyedState(MemoryBackend(), 8)
    for key in "abc":
        keyed.write(key, "w", "n", key.upper())
    keyed.write("a", "w", "m", 1)
    assert list(keyed.take_table("cxa", "w", "n").items()) == [("c", "C"), ("a", "A")]
    assert keyed.all_entries() == {("b", "w"): {"n": "B"}, ("a", "w"): {"m": 1}}
    assert keyed.take_table("b", "w", "n") == {"b": "B"}
    assert keyed.take_table("b", "v", "n") == {}
    assert keyed.all_entries() == {("a", "w"): {"m": 1}}


def test_timers_of_many_keys_are_those_of_each():
    one, many = KeyedState(MemoryBackend(), 8), KeyedState(MemoryBackend(), 8)
    for time, keys, namespace in [(5, "ab", "w"), (3, "ba", "v"), (5, "bc", "w"), (9, "a", "w")]:
        many.register_timers(time, keys, namespace)
        for key in keys:
            one.register_timer(time, key, namespace)
    assert many.all_timers() == one.all_timers()
    at_once = [(t, key, ns) for t, ns, keys in many.due_at_once(5) for key in keys]
    assert at_once == fire(one, 5)
    assert many.all_timers() == one.all_timers() == [(9, "a", "w")]


def test_many_timers_come_from_the_buckets_that_are_due():
    backend = CountingBackend()
    keyed = KeyedState(backend, 64)
    keyed.register_timers(5, ["a"], "w")
    keyed.register_timers(50, ["b"], "w")
    keyed = reloaded(keyed, backend, 64)
    backend.calls.clear()
    assert list(keyed.due_at_once(5)) == [(5, "w", ["a"])]
    assert backend.calls == [("get", f"bucket/{key_group('a', 64)}")]


def test_a_prefix_is_taken_of_a_key_that_was_not_touched_before():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    keyed.write("k", "w", "trigger:a", 1)
    keyed = reloaded(keyed, backend)
    keyed.take_all("k", "w", "trigger:")
    assert keyed.all_entries() == {}
