"""Iterators over the entries of maps in state: the map may change meanwhile."""

import pytest

from eventide.common import Time, Types
from eventide.datastream import BroadcastProcessFunction, KeyedProcessFunction
from eventide.datastream.state import MapStateDescriptor, StateTtlConfig
from eventide.testing import local_environment


def descriptor(expires):
    described = MapStateDescriptor("seen", Types.STRING(), Types.LONG())
    if expires:
        described.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return described


class Changes(KeyedProcessFunction):
    def __init__(self, expires):
        self.expires = expires

    def open(self, runtime_context):
        self.seen = runtime_context.get_map_state(descriptor(self.expires))

    def process_element(self, value, ctx):
        yield next(self.seen.keys(), None), next(self.seen.values(), None), next(self.seen.items(), None)
        self.seen.put_all({"a": 1, "b": 2})
        for key in self.seen.keys():  # noqa: SIM118 - this is not a dict
            self.seen.remove(key)
            self.seen.put(f"{key}{key}", 0)
        entries = self.seen.items()
        yield sorted(entries), list(entries), sorted(self.seen)


@pytest.mark.parametrize("expires", [False, True])
def test_maps_of_a_key_are_gone_through_with_iterators(expires):
    stream = local_environment().from_collection([1]).key_by(lambda value: "k", Types.STRING())
    assert list(stream.process(Changes(expires)).execute_and_collect()) == [
        (None, None, None),
        ([("aa", 0), ("bb", 0)], [], ["aa", "bb"]),
    ]


class Looks(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        rules = ctx.get_broadcast_state(descriptor(False))
        yield rules.is_empty(), next(rules.keys(), None), next(rules.values(), None), next(rules.items(), None)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(descriptor(False)).put(value, 7)


@pytest.mark.parametrize(
    ("rules", "seen"), [([], (True, None, None, None)), (["a"], (False, "a", 7, ("a", 7)))], ids=["none", "one"]
)
def test_so_are_maps_that_are_broadcast(rules, seen):
    env = local_environment().set_parallelism(1)
    broadcast = env.from_collection(rules, Types.STRING()).broadcast(descriptor(False))
    found = list(env.from_collection([1, 2]).connect(broadcast).process(Looks()).execute_and_collect())
    assert found[-1] == seen
