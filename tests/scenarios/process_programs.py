"""Recorded scenarios whose operator is no window, as the eventide programs that a user would write for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.scenarios.programs import (
    FIRST,
    LATE,
    WITH_TEXT,
    WITHOUT_TIMES,
    Scenario,
    assigner,
    events,
    joined_text,
    streams,
    with_text,
    without_times,
)

from eventide.common import Row, Types
from eventide.datastream import (
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

_IDS = ListStateDescriptor("ids", Types.LONG())
_RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
_TIMER = ValueStateDescriptor("timer", Types.LONG())
_COUNT = ValueStateDescriptor("count", Types.LONG())


class _Ids(KeyedProcessFunction):
    """Gathers ids, and gives them at a timer after each element."""

    def __init__(self, behind_ms: int, *, only_last: bool) -> None:
        self._behind_ms = behind_ms
        self._only_last = only_last

    def open(self, runtime_context):
        self._ids = runtime_context.get_list_state(_IDS)
        self._timer = runtime_context.get_state(_TIMER)

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        self._ids.add(value["id"])
        if self._only_last and self._timer.value() is not None:
            timers.delete_event_time_timer(self._timer.value())
        self._timer.update(ctx.timestamp() + self._behind_ms)
        timers.register_event_time_timer(ctx.timestamp() + self._behind_ms)
        yield from late(value, ctx)

    def on_timer(self, timestamp, ctx):
        if timestamp == self._timer.value():
            self._timer.clear()
        yield fired(self._ids, timestamp, ctx)


class _Again(KeyedProcessFunction):
    """Gathers ids, and gives them at a timer after each element and, some times, at one after the timer."""

    def __init__(self, after_ms: int, every_ms: int, times: int) -> None:
        self._after_ms = after_ms
        self._every_ms = every_ms
        self._times = times

    def open(self, runtime_context):
        self._ids = runtime_context.get_list_state(_IDS)
        self._count = runtime_context.get_state(_COUNT)

    def process_element(self, value, ctx):
        self._ids.add(value["id"])
        self._count.update(self._times)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + self._after_ms)
        yield from late(value, ctx)

    def on_timer(self, timestamp, ctx):
        watermark = ctx.timer_service().current_watermark()
        yield {"k": ctx.get_current_key(), "timer": timestamp, "ids": list(self._ids), "wm": watermark}
        if self._count.value() > 0:
            self._count.update(self._count.value() - 1)
            ctx.timer_service().register_event_time_timer(timestamp + self._every_ms)


class _IdsOfTwo(KeyedCoProcessFunction):
    """Gathers the ids of both streams: at a timer after each of the first, and with each of the second."""

    def __init__(self, behind_ms: int) -> None:
        self._behind_ms = behind_ms

    def open(self, runtime_context):
        self._ids = runtime_context.get_list_state(_IDS)

    def process_element1(self, value, ctx):
        self._ids.add(value["id"])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + self._behind_ms)
        yield from late(value, ctx)

    def process_element2(self, value, ctx):
        self._ids.add(value["id"])
        watermark = ctx.timer_service().current_watermark()
        yield {"k": ctx.get_current_key(), "ids": list(self._ids), "wm": watermark, "in": 2}
        yield from late(value, ctx)

    def on_timer(self, timestamp, ctx):
        yield fired(self._ids, timestamp, ctx)


class _IdsByRule(KeyedBroadcastProcessFunction):
    """Gathers ids, and gives the rule of the key, which the broadcast stream sets, with each element and timer."""

    def __init__(self, behind_ms: int) -> None:
        self._behind_ms = behind_ms

    def open(self, runtime_context):
        self._ids = runtime_context.get_list_state(_IDS)

    def process_element(self, value, ctx):
        self._ids.add(value["id"])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + self._behind_ms)
        yield {"k": value["k"], "id": value["id"], "rule": ctx.get_broadcast_state(_RULES).get(value["k"])}
        if ctx.timestamp() <= ctx.current_watermark():
            yield LATE, value

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(_RULES)[value["k"]] = value["v"]

    def on_timer(self, timestamp, ctx):
        rule = ctx.get_broadcast_state(_RULES).get(ctx.get_current_key())
        yield fired(self._ids, timestamp, ctx) | {"rule": rule}


class _HandsOn(KeyedProcessFunction):
    """Hands on each element, and each of the timers that it sets after them."""

    def __init__(self, behind_ms: int) -> None:
        self._behind_ms = behind_ms

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + self._behind_ms)
        yield {"k": value["k"], "id": value["id"]}
        yield from late(value, ctx)

    def on_timer(self, timestamp, ctx):
        yield {"k": ctx.get_current_key(), "timer": timestamp}


class _IdsAndTimers(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield {
            "k": key,
            "start": window.start,
            "end": window.end,
            "ids": [e["id"] for e in elements if "id" in e],
            "timers": [e["timer"] for e in elements if "timer" in e],
            "wm": context.current_watermark(),
        }


def late(value, ctx):
    """An element at or below the watermark is reported."""
    if ctx.timestamp() <= ctx.timer_service().current_watermark():
        yield LATE, value


def fired(ids, timestamp, ctx):
    """The output of a timer: the ids so far, which are forgotten."""
    result = {"k": ctx.get_current_key(), "timer": timestamp, "ids": list(ids)}
    ids.clear()
    return result | {"wm": ctx.timer_service().current_watermark()}


def _key(element: dict[str, Any]) -> str:
    return element["k"]


def _process(keyed: KeyedStream, op: dict[str, Any]) -> DataStream:
    if op["kind"] == "process_again":
        return keyed.process(_Again(op["timer"], op["every"], op["times"]))
    only_last = op["kind"] == "process_dedup_timer"
    return keyed.process(_Ids(op["timer"], only_last=only_last))


def _rolling(keyed: KeyedStream, op: dict[str, Any]) -> DataStream:
    function = op["f"]
    if function == "reduce":
        rolled = keyed.reduce(lambda a, b: Row(k=b["k"], id=b["id"], v=a["v"] + b["v"]))
    elif function == "text":
        rolled = keyed.reduce(joined_text)
    elif function in ("min_by", "max_by"):
        rolled = getattr(keyed, function)("v", first=op.get("first", True))
    else:
        rolled = getattr(keyed, function)("v")
    return rolled


def process_program(env: StreamExecutionEnvironment, scenario: Scenario) -> tuple[DataStream, DataStream | None]:
    """The scenario's program: its results, and its late elements where there can be any."""
    script = scenario.script
    op = script["op"]
    kind = op["kind"]
    if kind == "connect_process":
        first, second = streams(env, scenario)
        results = first.connect(second).key_by(_key, _key).process(_IdsOfTwo(op["timer"])).name(FIRST)
        return results, results.get_side_output(LATE)
    if kind == "broadcast":
        first, second = streams(env, scenario)
        results = first.key_by(_key).connect(second.broadcast(_RULES)).process(_IdsByRule(op["timer"])).name(FIRST)
        return results, results.get_side_output(LATE)
    stream = events(env, scenario)
    if kind == "rolling":
        is_text = op["f"] == "text"  # the others run on columns
        text_type = scenario.declared(WITH_TEXT)
        typed = stream.map(with_text, text_type) if is_text else stream.map(without_times, WITHOUT_TIMES)
        rolled = _rolling(typed.name("rolled").key_by(_key), op).name(FIRST)
        shown = "t" if is_text else "v"
        return rolled.map(lambda e: {"k": e["k"], "id": e["id"], shown: e[shown]}).name("shown"), None
    keyed = stream.key_by(_key)
    if kind == "process_between":
        between = keyed.process(_HandsOn(op["timer"])).name(FIRST)
        windowed = between.key_by(_key).window(assigner(op["assigner"])).allowed_lateness(script["allowed_lateness"])
        return windowed.process(_IdsAndTimers()), between.get_side_output(LATE)
    results = _process(keyed, op).name(FIRST)
    return results, results.get_side_output(LATE)


PROCESS_KINDS: dict[str, Callable[..., tuple[DataStream, DataStream | None]]] = dict.fromkeys(
    ("process", "process_dedup_timer", "process_again", "process_between", "rolling", "connect_process", "broadcast"),
    process_program,
)
