"""Batches that come as columns, and whose content makes a function be called with each element, are counted."""

import pyarrow as pa
import pytest

from eventide.aggregates import count
from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.functions import AggregateFunction
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.local.host import LocalHost
from eventide.runtime.metrics import BATCHES_IN_PYTHON
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import reason_of
from support.columns import in_columns

KIND = Types.ROW_NAMED(["user", "v", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
ROWS = [Row(user="a", v=2**62, at=1), Row(user="ß", v=2**62, at=2)]
TOO_LARGE = "a whole number with more than 64 bits"


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


def in_sessions(stream, gap):
    sessions = EventTimeSessionWindows.with_dynamic_gap(gap)
    return stream.key_by("user").window(sessions).aggregate(count()).name("sessions")


@pytest.mark.parametrize(
    ("operators", "reason", "time", "build"),
    [
        ("times", TOO_LARGE, lambda e, _: e.at * 2**62 // 2**62, lambda s: s),
        ("map", TOO_LARGE, "at", lambda s: s.map(lambda e: e.v * 2).name("map")),
        (
            "times last",
            "a text that is not ASCII",
            "at",
            lambda s: s.key_by(lambda e: e.user.upper()).reduce(lambda a, b: b).name("last"),
        ),
        ("window", TOO_LARGE, "at", lambda s: in_tens(s.key_by(lambda e: e.at % 1)).aggregate(Total()).name("window")),
        ("window", "a sum with more than 64 bits", "at", summed),
        ("sessions", TOO_LARGE, "at", lambda s: in_sessions(s, lambda e: e.v * 2 // 2**60)),
    ],
)
def test_a_batch_that_is_handed_to_a_function_is_counted_with_the_reason(operators, reason, time, build):
    host = LocalHost()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time)
    env = StreamExecutionEnvironment(host)
    source = env.from_source(in_columns(KIND, ROWS), WatermarkStrategy.no_watermarks(), "rows")
    stream = build(source.assign_timestamps_and_watermarks(strategy).name("times"))
    stream.print()
    env.execute()
    counted = host.last_run[-1].progress.counters
    found = {
        name: {counter: n for counter, n in of.items() if counter.startswith(BATCHES_IN_PYTHON)}
        for name, of in counted.items()
        if BATCHES_IN_PYTHON in of
    }
    expected = {BATCHES_IN_PYTHON: 1, f"{BATCHES_IN_PYTHON}: {reason}": 1}
    assert found == dict.fromkeys(operators.split(), expected)


def test_an_error_of_arrow_is_a_reason_without_values():
    error = pa.ArrowInvalid("cannot make a number of 'secret'")
    assert reason_of(error) == "columns that cannot be computed with (ArrowInvalid)"
    assert reason_of(Guard("a division by zero")) == "a division by zero"
