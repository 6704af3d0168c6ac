"""Batches that come as columns, and whose content makes a function be called with each element, are counted."""

import pytest

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.functions import AggregateFunction
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.host import LocalHost
from eventide.runtime.metrics import BATCHES_IN_PYTHON
from support.columns import in_columns

KIND = Types.ROW_NAMED(["user", "v", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
ROWS = [Row(user="a", v=2**62, at=1), Row(user="ß", v=2**62, at=2)]


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value.v * 2

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def in_tens(stream):
    return stream.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))


def summed(stream):
    pairs = stream.map(lambda e: (1, e.v)).key_by(lambda e: e[0])
    return in_tens(pairs).reduce(lambda a, b: (a[0], a[1] + b[1])).name("window")


@pytest.mark.parametrize(
    ("operators", "time", "build"),
    [
        ("times", lambda e, _: e.at * 2**62 // 2**62, lambda s: s),
        ("map", "at", lambda s: s.map(lambda e: e.v * 2).name("map")),
        ("times last", "at", lambda s: s.key_by(lambda e: e.user.upper()).reduce(lambda a, b: b).name("last")),
        ("window", "at", lambda s: in_tens(s.key_by(lambda e: e.at % 1)).aggregate(Total()).name("window")),
        ("window", "at", summed),
    ],
)
def test_a_batch_that_is_handed_to_a_function_is_counted(operators, time, build):
    host = LocalHost()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time)
    env = StreamExecutionEnvironment(host)
    source = env.from_source(in_columns(KIND, ROWS), WatermarkStrategy.no_watermarks(), "rows")
    stream = build(source.assign_timestamps_and_watermarks(strategy).name("times"))
    stream.print()
    env.execute()
    counted = host.last_run[-1].progress.counters
    found = {name: of[BATCHES_IN_PYTHON] for name, of in counted.items() if BATCHES_IN_PYTHON in of}
    assert found == dict.fromkeys(operators.split(), 1)
