"""An operator that gets its input in pieces gives what it gives of all at once, in the same order."""

import pytest

from eventide.aggregates import collect_list, count, sum_
from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import CoProcessFunction, KeyedProcessFunction
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.runtime.exchange.frames import Inbox
from eventide.runtime.tasks import operator_task
from eventide.testing import local_environment
from support.twin import Contents, plan_of, run

ROW = Types.ROW_NAMED(["key", "ms", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
BY_MS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row.ms)
ROWS = [Row(key="abc"[i * i % 3], ms=i * 3, n=i) for i in range(400)]


def stream(typed, rows=ROWS):
    env = local_environment()
    rows = env.from_collection(rows, ROW) if typed else env.from_collection(rows)
    return rows.assign_timestamps_and_watermarks(BY_MS)


class Sums(KeyedProcessFunction):
    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value, ctx):
        total = (self.sum.value() or 0) + value.n
        self.sum.update(total)
        yield value.key, value.n, total


class Both(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield "one", value.n

    def process_element2(self, value, ctx):
        yield "two", value.n


def keyed(typed=False):
    return stream(typed).key_by(lambda row: row.key, Types.STRING())


def two_inputs():
    one = stream(typed=False)
    return one.connect(one.filter(lambda row: row.n % 2 == 0)).process(Both())


PROGRAMS = {
    "process function": lambda: keyed().process(Sums()),
    "process function, typed": lambda: keyed(typed=True).process(Sums()),
    "rolling": lambda: keyed(typed=True).sum("n"),
    "two inputs": two_inputs,
    "windows": lambda: keyed().window(TumblingEventTimeWindows.of(Time.milliseconds(50))).process(Contents()),
    "count windows": lambda: keyed().count_window(7).process(Contents2()),
    "windows on columns": lambda: (
        stream(typed=True)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        .aggregate(count().alias("times"), sum_("n").alias("total"))
    ),
    "lists on columns": lambda: (
        stream(typed=True)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        .aggregate(collect_list("n").alias("all"))
    ),
    "sessions on columns": lambda: (
        stream(typed=True)
        .key_by("key")
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(4)))
        .aggregate(count().alias("times"), sum_("n").alias("total"))
    ),
    "counts on columns": lambda: stream(typed=True).key_by("key").count_window(7).aggregate(sum_("n").alias("total")),
}


class Contents2(Contents):
    """Numbers of the elements, for windows without times."""

    def process(self, key, context, elements):
        yield key, [row.n for row in elements]


@pytest.mark.parametrize("name", PROGRAMS)
def test_pieces_change_nothing(name, monkeypatch):
    asked = []
    pieces_until = Inbox.pieces_until

    def counting(self, point, edges):
        for piece in pieces_until(self, point, edges):
            asked.append(point)
            yield piece

    monkeypatch.setattr(Inbox, "pieces_until", counting)
    monkeypatch.setattr("eventide.runtime.elements.codec.FRAME_BYTES", 500)
    monkeypatch.setattr("eventide.runtime.elements.codec._MOST_OF_A_FRAME", 2_000)
    at_once = run(plan_of(PROGRAMS[name]()))
    handled_at_once = len(asked)
    asked.clear()
    monkeypatch.setattr(operator_task, "PIECE_BYTES", 1)
    assert run(plan_of(PROGRAMS[name]())) == at_once
    assert any(at_once[0])
    if not name.endswith("on columns"):  # those are few rows, in one frame for each split
        assert len(asked) > handled_at_once
