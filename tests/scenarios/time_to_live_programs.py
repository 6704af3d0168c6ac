"""Recorded scenarios of state that expires, as the eventide program that a user would write for them."""

from __future__ import annotations

from typing import Any

from tests.scenarios.programs import FIRST, Scenario, events, scenarios

from eventide.common import Time, Types
from eventide.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

_UPDATES = {
    "create_and_write": StateTtlConfig.UpdateType.OnCreateAndWrite,
    "read_and_write": StateTtlConfig.UpdateType.OnReadAndWrite,
}
_VISIBILITIES = {
    "never": StateTtlConfig.StateVisibility.NeverReturnExpired,
    "until_cleaned_up": StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp,
}
_READS = {
    "value.read": lambda s, e: s.value.value(),
    "list.read": lambda s, e: list(s.list.get()),
    "sum.read": lambda s, e: s.sum.get(),
    "map.get": lambda s, e: s.map.get(e["m"]),
    "map.contains": lambda s, e: s.map.contains(e["m"]),
    "map.is_empty": lambda s, e: s.map.is_empty(),
    "map.keys": lambda s, e: sorted(s.map.keys()),
    "map.iterate": lambda s, e: dict(s.map.items()),
}
_WRITES = {
    "value.update": lambda s, e: s.value.update(e["v"]),
    "list.add": lambda s, e: s.list.add(e["v"]),
    "sum.add": lambda s, e: s.sum.add(e["v"]),
    "map.put": lambda s, e: s.map.put(e["m"], e["v"]),
    "map.remove": lambda s, e: s.map.remove(e["m"]),
    "value.clear": lambda s, e: s.value.clear(),
    "map.clear": lambda s, e: s.map.clear(),
    "list.clear": lambda s, e: s.list.clear(),
    "sum.clear": lambda s, e: s.sum.clear(),
}


class _Does(KeyedProcessFunction):
    """Does with the four states of a key what each element says."""

    def __init__(self, config: StateTtlConfig) -> None:
        self._config = config

    def open(self, runtime_context):
        self.value = runtime_context.get_state(self._expiring(ValueStateDescriptor("value", Types.LONG())))
        self.list = runtime_context.get_list_state(self._expiring(ListStateDescriptor("list", Types.LONG())))
        add = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG())
        self.sum = runtime_context.get_reducing_state(self._expiring(add))
        by_text = MapStateDescriptor("map", Types.STRING(), Types.LONG())
        self.map = runtime_context.get_map_state(self._expiring(by_text))

    def process_element(self, value, ctx):
        action = value["do"]
        if action in _WRITES:
            _WRITES[action](self, value)
        else:
            yield {"k": value["k"], "id": value["id"], "do": action, "r": _READS[action](self, value)}

    def _expiring(self, descriptor):
        descriptor.enable_time_to_live(self._config)
        return descriptor


def time_to_live_scenarios() -> list[Scenario]:
    """All scenarios whose state expires by the clock."""
    return scenarios(["ttl"])


def time_to_live_program(env: StreamExecutionEnvironment, scenario: Scenario, ttl_ms: int) -> DataStream:
    """The scenario's program, with the time to live of its state in milliseconds."""
    op: dict[str, Any] = scenario.script["op"]
    config = (
        StateTtlConfig.new_builder(Time.milliseconds(ttl_ms))
        .set_update_type(_UPDATES[op["update"]])
        .set_state_visibility(_VISIBILITIES[op["visibility"]])
        .disable_cleanup_in_background()
        .build()
    )
    return events(env, scenario).key_by(lambda e: e["k"]).process(_Does(config)).name(FIRST)
