"""Elements share no objects: whatever a function keeps, uses again or changes, nothing else of the program sees it.

Each program runs twice: once with functions that leave alone what they were given and have given, and once with
functions that do the same work, but keep all of it, put the same objects out again, and spoil at each call what they
have seen at earlier ones. Both give the same.
"""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Time, Types, WatermarkGenerator, WatermarkStrategy
from eventide.common.watermark_strategy import TimestampAssigner
from eventide.datastream import (
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeExecutionMode,
)
from eventide.datastream.functions import (
    AggregateFunction,
    BroadcastProcessFunction,
    CoGroupFunction,
    JoinFunction,
    KeyedCoProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from eventide.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)
from eventide.testing import ScriptedSource, local_environment
from support.twin import plan_of, run

ANY = Types.PICKLED_BYTE_ARRAY()
_SIDE = OutputTag("side")


class Spoils:
    """Keeps what a function meets, and spoils it at a later call, if it is one that does."""

    spoils = False

    def met(self, *lists):
        """Spoil what was met at earlier calls, and keep these."""
        if not self.spoils:
            return
        kept = self.__dict__.setdefault("kept", [])
        for one in kept:
            one.append("spoilt")
        kept.extend(lists)

    def given(self, value):
        """A result: one object for all calls if it spoils, else one of its own."""
        if not self.spoils:
            return value
        reused = self.__dict__.setdefault("reused", [])
        reused[:] = value
        return reused


class Maps(Spoils, MapFunction):
    def map(self, value):
        result = self.given([*value, "m"])
        self.met(value)
        return result


class ReturnsIt(Spoils, MapFunction):
    def map(self, value):
        self.met(value)
        return value


class Filters(Spoils, FilterFunction):
    def filter(self, value):
        self.met(value)
        return True


class Grows(Spoils, FlatMapFunction):
    def flat_map(self, value):
        result = list(value)
        for part in "xy":
            result = result if self.spoils else list(result)
            result.append(part)
            yield result
        self.met(result, value)


class Processes(Spoils, ProcessFunction):
    def process_element(self, value, ctx):
        result = self.given([*value, "p"])
        yield result
        yield _SIDE, result
        self.met(value)


class Selects(Spoils, KeySelector):
    def get_key(self, value):
        key = value[0]
        self.met(value)
        return key


class Assigns(Spoils, TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        time_ms = value[1]
        self.met(value)
        return time_ms


class Watches(Spoils, WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        self.met(event)

    def on_periodic_emit(self, output):
        pass


class Remembers(Spoils, KeyedProcessFunction):
    """Puts one object into the states of all keys; gives what the key has."""

    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", ANY))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", ANY))
        self.by_time = runtime_context.get_map_state(MapStateDescriptor("by time", ANY, ANY))

    def process_element(self, value, ctx):
        before = [
            copy.deepcopy(state) for state in (self.last.value(), list(self.all.get()), list(self.by_time.items()))
        ]
        row = self.given(list(value))
        self.last.update(row)
        self.all.add(row)
        self.by_time.put(value[1], row)
        ctx.timer_service().register_event_time_timer(value[1] + 1)
        yield [ctx.get_current_key(), *before]
        self.met(value)

    def on_timer(self, timestamp, ctx):
        yield self.given([ctx.get_current_key(), timestamp, copy.deepcopy(self.last.value())])


class Reduces(Spoils, ReduceFunction):
    def reduce(self, value1, value2):
        result = [value1[0], max(value1[1], value2[1]), value1[2] + value2[2]]
        if not self.spoils:
            return result
        value1[:] = result
        self.met(value2)
        return value1


class ReturnsTheSecond(Spoils, ReduceFunction):
    def reduce(self, value1, value2):
        total = [value2[0], value2[1], value1[2] + value2[2]]
        if not self.spoils:
            return total
        value2[:] = total
        self.met(value2)
        return value2


class Aggregates(Spoils, AggregateFunction):
    def create_accumulator(self):
        return self.__dict__.setdefault("empty", []) if self.spoils else []

    def add(self, value, accumulator):
        added = [*accumulator, value[2]]
        if self.spoils:
            accumulator[:] = added
            added = accumulator
        self.met(value)
        return added

    def get_result(self, accumulator):
        return self.given(accumulator)

    def merge(self, a, b):
        return self.given([*a, *b])


class Fires(Spoils, ProcessWindowFunction):
    def process(self, key, context, elements):
        elements = list(elements)
        yield self.given([key, context.window().start, copy.deepcopy(elements)])
        self.met(*(element for element in elements if isinstance(element, list)))


class FiresEach(Spoils, Trigger):
    def on_element(self, element, timestamp, window, ctx):
        self.met(element)
        return TriggerResult.FIRE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        pass


class Both(Spoils, CoMapFunction):
    def map1(self, value):
        self.met(value)
        return self.given([1, *value])

    def map2(self, value):
        self.met(value)
        return self.given([2, *value])


class BothKeyed(Spoils, KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", ANY))

    def _handle(self, value):
        self.seen.add(value)
        yield self.given([copy.deepcopy(list(self.seen.get()))])
        self.met(value)

    def process_element1(self, value, ctx):
        yield from self._handle(value)

    def process_element2(self, value, ctx):
        yield from self._handle(value)


_RULES = MapStateDescriptor("rules", ANY, ANY)


class Beside(Spoils, BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield self.given([*value, copy.deepcopy(sorted(ctx.get_broadcast_state(_RULES).items()))])
        self.met(value)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(_RULES).put((value[0], value[1]), value)
        self.met(value)
        return ()


class Pairs(Spoils, ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield self.given([list(left), list(right)])
        self.met(left, right)


class Joins(Spoils, JoinFunction):
    def join(self, first, second):
        result = self.given([list(first), list(second)])
        self.met(first, second)
        return result


class Groups(Spoils, CoGroupFunction):
    def co_group(self, first, second):
        first, second = list(first), list(second)
        yield self.given([copy.deepcopy(first), copy.deepcopy(second)])
        self.met(*first, *second)


class Program:
    """Makes streams with functions that spoil, or do not; the elements of its source are lists ``[key, time, n]``."""

    def __init__(self, batches, *, spoils, in_batch=False):
        self.spoils = spoils
        self.env = local_environment()
        self.batches = batches
        if in_batch:
            self.env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        self.in_batch = in_batch

    def f(self, kind):
        function = kind()
        function.spoils = self.spoils
        return function

    def source(self):
        """Elements of which equal ones are one object, where functions spoil."""
        known = {}
        batches = [
            [("s", known.setdefault(tuple(one), one) if self.spoils else list(one)) for one in map(list, batch)]
            for batch in self.batches
        ]
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(self.f(Assigns))
        if self.in_batch:
            values = [value for batch in batches for _, value in batch]
            return self.env.from_collection(values).assign_timestamps_and_watermarks(strategy)
        return self.env.from_source(ScriptedSource(["s"], batches), strategy, "s")

    def keyed(self):
        return self.source().key_by(self.f(Selects))

    def run(self, build):
        out = run(plan_of(*build(self)))
        return [sorted(map(repr, elements)) for batch in out for elements in batch]


def chained(p):
    stream = p.source()
    for kind in (Maps, Filters, ReturnsIt):
        stream = getattr(stream, "filter" if kind is Filters else "map")(p.f(kind))
    return [stream.flat_map(p.f(Grows))]


def branches(p):
    stream = p.source().map(p.f(Maps))
    return [stream, stream.map(p.f(ReturnsIt)), stream.filter(p.f(Filters)), stream.flat_map(p.f(Grows))]


def side_outputs(p):
    stream = p.source().process(p.f(Processes))
    side = stream.get_side_output(_SIDE)
    return [stream, side.map(p.f(ReturnsIt)), side.map(p.f(Maps))]


def behind_an_operator(p):
    stream = p.keyed().process(p.f(Remembers))
    return [stream.map(p.f(ReturnsIt)), stream]


def generators(p):
    strategy = WatermarkStrategy.for_generator(lambda _: p.f(Watches)).with_timestamp_assigner(p.f(Assigns))
    return [p.source().assign_timestamps_and_watermarks(strategy).map(p.f(Maps))]


def states_and_timers(p):
    return [p.keyed().process(p.f(Remembers))]


def rolling(p):
    return [p.keyed().reduce(p.f(kind)) for kind in (Reduces, ReturnsTheSecond)]


def _windows(p, assigner):
    return p.keyed().window(assigner)


TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))
SLIDING = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))
SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(3))


def windows_of(assigner, *, lateness=0, customize=lambda p, windowed: windowed):
    def build(p):
        def windowed():
            stream = p.keyed().window(assigner).allowed_lateness(lateness).side_output_late_data(_SIDE)
            return customize(p, stream)

        streams = [windowed().process(p.f(Fires)), windowed().reduce(p.f(Reduces), p.f(Fires))]
        streams += [windowed().reduce(p.f(ReturnsTheSecond)), windowed().aggregate(p.f(Aggregates))]
        streams += [windowed().aggregate(p.f(Aggregates), p.f(Fires))]
        return [*streams, streams[0].get_side_output(_SIDE).map(p.f(ReturnsIt))]

    return build


def connected(p):
    one, other = p.source(), p.source()
    return [
        one.connect(other).map(p.f(Both)),
        one.connect(other).key_by(p.f(Selects), p.f(Selects)).process(p.f(BothKeyed)),
        one.union(other).map(p.f(Maps)),
    ]


def broadcast(p):
    return [p.source().connect(p.source().broadcast(_RULES)).process(p.f(Beside))]


def interval_joins(p):
    joined = p.keyed().interval_join(p.keyed()).between(Time.milliseconds(-5), Time.milliseconds(5))
    return [joined.process(p.f(Pairs))]


def window_joins(p):
    def both():
        return p.source(), p.source()

    one, other = both()
    joined = one.join(other).where(p.f(Selects)).equal_to(p.f(Selects)).window(SLIDING).apply(p.f(Joins))
    one, other = both()
    grouped = one.co_group(other).where(p.f(Selects)).equal_to(p.f(Selects)).window(SLIDING).apply(p.f(Groups))
    return [joined, grouped]


def dealt_out(p):
    return [
        p.source().partition_custom(lambda key, count: hash(key) % count, p.f(Selects)).map(p.f(Maps)),
        p.source().rebalance().map(p.f(ReturnsIt)),
    ]


PROGRAMS = {
    "chained": chained,
    "branches": branches,
    "side outputs": side_outputs,
    "behind an operator": behind_an_operator,
    "generators": generators,
    "states and timers": states_and_timers,
    "rolling": rolling,
    "tumbling": windows_of(TUMBLING),
    "late": windows_of(TUMBLING, lateness=20),
    "sliding": windows_of(SLIDING),
    "sliding, late": windows_of(SLIDING, lateness=20),
    "sessions": windows_of(SESSIONS, lateness=5),
    "evictors": windows_of(SLIDING, customize=lambda p, windowed: windowed.evictor(CountEvictor.of(2))),
    "triggers": windows_of(SLIDING, customize=lambda p, windowed: windowed.trigger(p.f(FiresEach))),
    "connected": connected,
    "broadcast": broadcast,
    "interval joins": interval_joins,
    "window joins": window_joins,
    "dealt out": dealt_out,
}

_ELEMENTS = st.tuples(st.sampled_from("ab"), st.integers(0, 15), st.integers(0, 1))
_BATCHES = st.lists(st.lists(_ELEMENTS, min_size=1, max_size=4), min_size=1, max_size=3)


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=10)
@given(_BATCHES)
def test_nothing_sees_what_functions_do_to_objects(name, batches):
    seen = Program(batches, spoils=True).run(PROGRAMS[name])
    assert seen == Program(batches, spoils=False).run(PROGRAMS[name])


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("broadcast", "generators")])
@settings(max_examples=5)
@given(_BATCHES)
def test_nor_in_batch_mode(name, batches):
    seen = Program(batches, spoils=True, in_batch=True).run(PROGRAMS[name])
    assert seen == Program(batches, spoils=False, in_batch=True).run(PROGRAMS[name])
