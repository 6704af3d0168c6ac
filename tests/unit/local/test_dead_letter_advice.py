"""The error that stops a job says what would let it go on, and that helps: for every operator of the guide's table."""

from pathlib import Path

import pyarrow as pa
import pytest

from eventide.aggregates import sum_
from eventide.common import Types, WatermarkStrategy
from eventide.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
)
from eventide.datastream.connectors import Source, Unreadable
from eventide.datastream.functions import (
    BroadcastProcessFunction,
    CoGroupFunction,
    KeyedBroadcastProcessFunction,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    VectorizedKeyedProcessFunction,
    associative,
)
from eventide.datastream.state import MapStateDescriptor, ValueStateDescriptor
from eventide.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from eventide.errors import MEMORY_ADVICE, EventideError, ProgramError
from eventide.testing import local_environment
from support.twin import plan_of, run, timed, values

BAD = OutputTag("bad")
ADVICE = "side_output_dead_letters"
GUIDE = Path(__file__).parents[3] / "docs/guide/dead-letters.md"
TENS = TumblingEventTimeWindows.of(10)
SESSIONS = EventTimeSessionWindows.with_gap(3)
IN_ORDER = WatermarkStrategy.for_monotonous_timestamps()
GOOD = [("a", 1, 6), ("a", 3, 3), ("b", 12, 2)]
EVENTS = [GOOD[0], ("b", 2, 0), *GOOD[1:]]
"""Key, time, and a number by which something is divided: one of them is bad, and alone in its window."""

EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
STATES = MapStateDescriptor("states", Types.STRING(), Types.LONG())
THIS, KEYS = "the stream that this operator gives,", "the stream that key_by gives,"
JOINED_KEYS = "the stream that key_by with the same function gives, before it is joined,"


def divided(event):
    return 6 // event[2]


def key(event):
    return event[0]


def divided_key(event):
    return divided(event) and event[0]


def list_if_bad(event):
    return event[0] if event[2] else [event[0]]


def nan_if_bad(event):
    return event[0] if event[2] else float("nan")


def number_or_text(event):
    return event[2] or "none"


def too_large_if_bad(event):
    return event[2] or 1 << 40


def first(one, other):
    return one


def reduced(one, other):
    divided(other)
    return one


def paired(one, other):
    return divided(one)


class Sums(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + divided(value)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Each(ProcessFunction):
    def process_element(self, value, ctx):
        yield divided(value)


class Texts(ProcessFunction):
    def process_element(self, value, ctx):
        yield number_or_text(value)


class Asks(AsyncFunction):
    async def async_invoke(self, value):
        return [divided(value)]


class EachOfKey(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield divided(value)


class TextsOfKey(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield number_or_text(value)


class QuotientsInColumns(VectorizedKeyedProcessFunction):
    def process_batch(self, batch, ctx):
        quotients = [6 // divisor for divisor in batch["f2"].to_pylist()]
        ctx.collect(batch.set_column(2, "f2", pa.array(quotients, pa.int64())))


class Last(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class ByTimer(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value, ctx):
        self.last.update(value[2])
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield 6 // self.last.value()


class OfBoth(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield divided(value)

    def process_element2(self, value, ctx):
        return ()


class Beside(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield divided(value)

    def process_broadcast_element(self, value, ctx):
        return ()


class TextsBeside(Beside):
    def process_element(self, value, ctx):
        yield number_or_text(value)


class LargeBeside(Beside):
    def process_element(self, value, ctx):
        yield too_large_if_bad(value)


class Counts(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        return ()


class OfWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield sum(map(divided, elements))


class Numbers(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield [element[2] for element in elements]


class TextOfWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield number_or_text(next(iter(elements)))


class OfAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield sum(map(divided, elements))


class Looks(CountTrigger):
    def on_element(self, element, timestamp, window, ctx):
        divided(element)
        return super().on_element(element, timestamp, window, ctx)


class Chooses(TumblingEventTimeWindows):
    def assign_windows(self, element, timestamp, context):
        divided(element)
        return super().assign_windows(element, timestamp, context)


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield divided(right)


class PairsOfTexts(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield number_or_text(right)


class Lefts(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left


class Groups(CoGroupFunction):
    def co_group(self, first, second):
        yield sum(map(divided, first))


class Records(Source):
    """The numbers of events, of which what is bad cannot be read."""

    def __init__(self, events):
        self.events = events

    def splits(self):
        return ["records"]

    def latest_position(self, split):
        return len(self.events)

    def read(self, split, start, end):
        for position, event in enumerate(self.events[start:end], start):
            yield event[2] or Unreadable(ValueError("no number"), "none", split, position)

    def get_produced_type(self):
        return Types.LONG()


def stream(events):
    return timed(local_environment(), events)


def collection(events, ok):
    return ok(local_environment().from_collection([too_large_if_bad(event) for event in events], Types.INT()))


def texts(events, ok):
    return ok(local_environment().from_collection([number_or_text(event) for event in events], Types.LONG()))


def records(events, ok):
    return ok(local_environment().from_source(Records(events), WatermarkStrategy.no_watermarks(), "records"))


def with_time(assigner):
    return lambda s, ok: ok(s.assign_timestamps_and_watermarks(IN_ORDER.with_timestamp_assigner(assigner)))


def keyed_by(select, kind=None):
    return lambda s, ok: ok(s.key_by(select, kind)).process(Last())


def joined_by(select, kind=None):
    """A window join by a key that it cannot find; key_by before it finds the same key."""

    def build(s, ok):
        pairs = ok(s.key_by(select, kind)).join(s).where(select, kind).equal_to(key, kind).window(TENS)
        return pairs.apply(first)

    return build


def connected(s, ok):
    return ok(s.key_by(divided_key)).connect(s.key_by(key)).process(OfBoth())


def beside_broadcast(s, ok):
    return ok(s.key_by(divided_key)).connect(s.broadcast(STATES)).process(Counts())


def by_interval(s, ok):
    other = s.key_by(key)
    return ok(s.key_by(divided_key)).interval_join(other).between(0, 0).process(Lefts())


def windows(s, assigner=TENS, by=key):
    return s.key_by(by).window(assigner)


def one_key(_):
    return 0


def with_late(events, by):
    """Windows that have fired when elements come that are late, the bad one among them."""
    return windows(stream([events[0], events[-1], *events[1:-1]]), by=by).allowed_lateness(100)


def two(s):
    return s.join(s).where(key).equal_to(key).window(TENS)


def grouped(s):
    return s.co_group(s).where(key).equal_to(key).window(TENS)


# By the row of the guide's table and what is bad: the stream that the advice names, and a program that marks it (`ok`).
OF_EVENTS = {
    "`from_source`": {
        "a record that cannot be read": (THIS, records),
        "an element of another type": (THIS, texts),
        "an element that is too large": ("the stream that 'collection' gives,", collection),
    },
    "windows": {
        "reduce late elements": (THIS, lambda events, ok: ok(with_late(events, one_key).reduce(reduced))),
    },
    "windows that fire": {
        "process late elements": (THIS, lambda events, ok: ok(with_late(events, key).process(OfWindow()))),
    },
}
OF_STREAM = {
    "`from_source` with a strategy; `assign_timestamps_and_watermarks`": {
        "no timestamp": (THIS, with_time(lambda e, _: e[1] if e[2] else None)),
        "a timestamp out of range": (THIS, with_time(lambda e, _: e[1] if e[2] else 1 << 70)),
        "a timestamp that is none": (THIS, with_time(lambda e, _: e[1] if e[2] else "noon")),
        "an assigner that raises": (THIS, with_time(lambda e, _: divided(e) and e[1])),
    },
    "`map`, `filter`, `flat_map`, `process`, `AsyncDataStream`": {
        "map": (THIS, lambda s, ok: ok(s.map(divided))),
        "map to another type": (THIS, lambda s, ok: ok(s.map(number_or_text, Types.LONG()))),
        "map to what is too large": (
            "the stream that 'map' gives,",
            lambda s, ok: ok(s.map(too_large_if_bad, Types.INT())),
        ),
        "map to what is too large, and a filter": (
            "the stream that 'map' gives,",
            lambda s, ok: ok(s.map(too_large_if_bad, Types.INT())).filter(bool).key_by(one_key).process(Last()),
        ),
        "map to what is too large for columns": (
            "the stream that 'map' gives,",
            lambda s, ok: (
                ok(s.map(lambda e: (e[0], too_large_if_bad(e)), Types.TUPLE([Types.STRING(), Types.INT()])))
                .key_by("f0")
                .count_window(1)
                .aggregate(sum_("f1"))
            ),
        ),
        "filter": (THIS, lambda s, ok: ok(s.filter(divided))),
        "flat_map": (THIS, lambda s, ok: ok(s.flat_map(lambda e: [divided(e)] * 2))),
        "process": (THIS, lambda s, ok: ok(s.process(Each()))),
        "process to another type": (THIS, lambda s, ok: ok(s.process(Texts(), Types.LONG()))),
        "AsyncDataStream": (THIS, lambda s, ok: ok(AsyncDataStream.unordered_wait(s, Asks(), 10))),
    },
    "`key_by` with a function": {
        "a function that raises": (KEYS, keyed_by(divided_key)),
        "what cannot be hashed": (KEYS, keyed_by(list_if_bad)),
        "what does not equal itself": (KEYS, keyed_by(nan_if_bad)),
        "another type": (KEYS, keyed_by(number_or_text, Types.LONG())),
        "behind a window": (
            KEYS,
            lambda s, ok: ok(windows(s, TumblingEventTimeWindows.of(1)).reduce(first).key_by(divided_key)).process(
                Last()
            ),
        ),
        "before elements are reduced": (
            KEYS,
            lambda s, ok: ok(s.key_by(divided_key)).window(TENS).reduce(associative(first)),
        ),
        "of another type, before elements are reduced": (
            KEYS,
            lambda s, ok: ok(s.key_by(number_or_text, Types.LONG())).window(TENS).reduce(associative(first)),
        ),
        "of a connected stream": (KEYS, connected),
        "beside a broadcast stream": (KEYS, beside_broadcast),
        "of an interval join": (KEYS, by_interval),
        "of a window join, by a function that raises": (JOINED_KEYS, joined_by(divided_key)),
        "of a window join, which cannot be hashed": (JOINED_KEYS, joined_by(list_if_bad)),
        "of a window join, of another type": (
            JOINED_KEYS,
            joined_by(lambda e: e[0] if e[2] else 7, Types.STRING()),
        ),
    },
    "`process` and the like on keyed and connected streams, rolling `reduce`": {
        "process": (THIS, lambda s, ok: ok(s.key_by(key).process(EachOfKey()))),
        "process to another type": (THIS, lambda s, ok: ok(s.key_by(key).process(TextsOfKey(), Types.LONG()))),
        "a timer": (THIS, lambda s, ok: ok(s.key_by(lambda e: e[1]).process(ByTimer()))),
        "two streams": (THIS, lambda s, ok: ok(s.key_by(key).connect(s.key_by(key)).process(OfBoth()))),
        "reduce": (THIS, lambda s, ok: ok(s.key_by(one_key).reduce(reduced))),
    },
    "a `VectorizedKeyedProcessFunction`": {
        "process": (THIS, lambda s, ok: ok(s.map(tuple, EVENT).key_by("f0").process(QuotientsInColumns(), EVENT))),
    },
    "windows": {
        "reduce": (THIS, lambda s, ok: ok(windows(s, by=one_key).reduce(reduced))),
        "reduce before the shuffle": (THIS, lambda s, ok: ok(windows(s, by=one_key).reduce(associative(reduced)))),
        "reduce without keys": (THIS, lambda s, ok: ok(s.window_all(TENS).reduce(reduced))),
        "reduce in sliding windows": (
            THIS,
            lambda s, ok: ok(windows(s, SlidingEventTimeWindows.of(10, 5), one_key).reduce(reduced)),
        ),
        "reduce in sessions": (THIS, lambda s, ok: ok(windows(s, SESSIONS, one_key).reduce(reduced))),
        "reduce by number": (THIS, lambda s, ok: ok(s.key_by(one_key).count_window(3).reduce(reduced))),
        "aggregate": (THIS, lambda s, ok: ok(windows(s).aggregate(Sums()))),
        "a trigger": (THIS, lambda s, ok: ok(windows(s).trigger(Looks(1)).process(OfWindow()))),
        "an assigner": (THIS, lambda s, ok: ok(windows(s, Chooses.of(10)).process(Numbers()))),
        "a gap": (
            THIS,
            lambda s, ok: ok(windows(s, EventTimeSessionWindows.with_dynamic_gap(divided)).process(Numbers())),
        ),
    },
    "windows that fire": {
        "process": (THIS, lambda s, ok: ok(windows(s).process(OfWindow()))),
        "process to another type": (THIS, lambda s, ok: ok(windows(s).process(TextOfWindow(), Types.LONG()))),
        "process all": (THIS, lambda s, ok: ok(s.window_all(TumblingEventTimeWindows.of(1)).process(OfAll()))),
        "sliding windows": (THIS, lambda s, ok: ok(windows(s, SlidingEventTimeWindows.of(10, 5)).process(OfWindow()))),
        "sessions": (THIS, lambda s, ok: ok(windows(s, SESSIONS).process(OfWindow()))),
        "by number": (THIS, lambda s, ok: ok(s.key_by(key).count_window(1).process(OfWindow()))),
        "with an evictor": (THIS, lambda s, ok: ok(windows(s).evictor(CountEvictor.of(5)).process(OfWindow()))),
        "with a trigger": (THIS, lambda s, ok: ok(windows(s).trigger(CountTrigger.of(1)).process(OfWindow()))),
    },
    "window joins and co-groups": {
        "join": (THIS, lambda s, ok: ok(two(s).apply(paired))),
        "join to another type": (
            THIS,
            lambda s, ok: ok(two(s).apply(lambda one, other: number_or_text(one), Types.LONG())),
        ),
        "co_group": (THIS, lambda s, ok: ok(grouped(s).apply(Groups()))),
    },
    "interval joins": {
        "process": (THIS, lambda s, ok: ok(s.key_by(key).interval_join(s.key_by(key)).between(0, 0).process(Pairs()))),
        "process to another type": (
            THIS,
            lambda s, ok: ok(
                s.key_by(key).interval_join(s.key_by(key)).between(0, 0).process(PairsOfTexts(), Types.LONG())
            ),
        ),
    },
}


def on_stream(case):
    on, build = case
    return on, lambda events, ok: build(stream(events), ok)


CASES = {(row, what): case for row, cases in OF_EVENTS.items() for what, case in cases.items()}
CASES |= {(row, what): on_stream(case) for row, cases in OF_STREAM.items() for what, case in cases.items()}


@pytest.mark.parametrize("max_rows", [None, 1])
@pytest.mark.parametrize(("row", "what"), CASES)
def test_the_job_stops_with_the_advice_and_goes_on_where_that_is_followed(row, what, max_rows):
    on, build = CASES[row, what]
    letters = []

    def without_advice(stream):
        return stream

    def advised(stream):
        letters.append(stream.side_output_dead_letters(BAD).get_side_output(BAD))
        return stream

    with pytest.raises(EventideError) as stopped:
        run(plan_of(build(EVENTS, without_advice)), max_rows)
    assert f"; {ADVICE}(OutputTag(...)), called on {on} lets the job go on" in str(stopped.value)
    assert str(stopped.value).count(ADVICE) == 1

    result = build(EVENTS, advised)
    found = run(plan_of(result, *letters), max_rows)
    assert values(found) == values(run(plan_of(build(GOOD, without_advice)), max_rows))
    assert values(found, 1)


def test_the_guide_has_a_row_for_each_operator():
    table = GUIDE.read_text().split("## What can be bad")[1].split("|---|---|---|\n")[1].split("\n\n")[0]
    cells = [line.split("|")[1].strip() for line in table.splitlines()]
    assert {*cells} == {"" if row == "windows that fire" else row for row, _ in CASES}


def out_of_memory(event):
    raise MemoryError("too much")


def wrong_program(event):
    raise ProgramError("another setting")


def nan_in_row(event):
    return event[0], 1.0 if event[2] else float("nan")


ROW = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
WITHOUT = {
    "an error of the program": lambda s: s.map(wrong_program),
    "a lack of memory": lambda s: s.key_by(out_of_memory).process(Last()),
    "a function beside a broadcast stream": lambda s: s.connect(s.broadcast(STATES)).process(Beside()),
    "what that gives of another type": lambda s: s.connect(s.broadcast(STATES)).process(TextsBeside(), Types.LONG()),
    "what that gives and is too large": lambda s: s.connect(s.broadcast(STATES)).process(LargeBeside(), Types.INT()),
    "a key that is a field": lambda s: s.map(nan_in_row, ROW).key_by("f1").process(Last()),
    "a partitioner": lambda s: s.partition_custom(lambda key, n: key, lambda e: 6 // e[2]),
}


@pytest.mark.parametrize("what", WITHOUT)
def test_there_is_no_advice_where_nothing_helps_against(what):
    with pytest.raises(EventideError) as stopped:
        run(plan_of(WITHOUT[what](stream(EVENTS))))
    assert ADVICE not in str(stopped.value)
    assert (MEMORY_ADVICE in str(stopped.value)) == (what == "a lack of memory")
