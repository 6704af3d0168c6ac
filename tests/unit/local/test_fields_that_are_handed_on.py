"""Filters and unions hand on elements without the fields that nothing after them needs."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.aggregates import collect_list, count, sum_
from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, OutputTag
from eventide.datastream.connectors import FileSource
from eventide.datastream.functions import in_python
from eventide.datastream.window import CountTrigger, EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.joins import left, right
from eventide.testing import local_environment

ORDER = Types.ROW_NAMED(
    ["user", "at", "amount", "limit", "text"], [Types.STRING(), *[Types.LONG()] * 3, Types.STRING()]
)
ORDERS = {
    "user": ["a", "b", "a", "ß", "b", "ß", "a", "c"],
    "at": [1, 2, 11, 12, 5, 40, 41, 60],
    "amount": [5, 6, 7, 8, 9, 10, 11, 2**61],
    "limit": [0, 9, 3, 1, 4, 2, 7, 5],
    "text": [*"stuvwxyz"],
}
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Time(3)).with_timestamp_assigner("at")
LATE = OutputTag("late", ORDER)


class Amounts(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.get_current_key(), value.text


def sums(stream, _):
    windows = stream.key_by("user").window(TumblingEventTimeWindows.of(Time(10)))
    return windows.aggregate(sum_("amount").alias("total"), collect_list("limit").alias("limits"))


def early_counts(stream, _):
    windows = stream.key_by(lambda order: order.user).window(TumblingEventTimeWindows.of(Time(10)))
    return windows.trigger(CountTrigger.of(1)).aggregate(count().alias("n"))


def sessions(stream, _):
    return stream.key_by("user").window(EventTimeSessionWindows.with_gap(Time(5))).aggregate(sum_("limit").alias("l"))


def with_late_ones(stream, _):
    windows = stream.key_by("user").window(TumblingEventTimeWindows.of(Time(10))).side_output_late_data(LATE)
    counts = windows.aggregate(count().alias("n"))
    return counts.map(str).union(counts.get_side_output(LATE).map(str))


def rolling(stream, _):
    return stream.map(lambda order: (order.user, order.amount)).key_by(lambda pair: pair[0]).sum(1)


def near(stream, other):
    joined = stream.key_by("user").interval_join(other.key_by("user")).between(Time(-10), Time(10))
    return joined.select(left("user"), left("amount"), right("text").alias("of"))


def far(stream, other):
    return stream.key_by("user").interval_join(other.key_by("user")).at_any_time().select(left("at"), right("limit"))


def in_windows(stream, other):
    joined = stream.join(other).where("user").equal_to("user").window(TumblingEventTimeWindows.of(Time(10)))
    return joined.select(left("amount"), right("amount").alias("other"))


def both(stream, other):
    return sums(stream.union(other), None)


def both_by_function(stream, other):
    windows = stream.union(other).key_by(lambda order: order.user).window(TumblingEventTimeWindows.of(Time(10)))
    return windows.reduce(lambda one, two: one if one.amount >= two.amount else two)


def both_joined(stream, other):
    return near(stream.union(other), other)


def whole(stream, _):
    return stream.key_by("user").process(Amounts(), Types.TUPLE([Types.STRING(), Types.STRING()]))


def unchanged(stream, _):
    return stream


@pytest.mark.parametrize(
    "where",
    [
        lambda order: order.user in {"a", "b", "ß"},
        lambda order: order.limit != 3 and order.user.upper() != "B",  # a text that is not ASCII is left to Python
        lambda order: order.amount * 4 > 0,
    ],
    ids=["columns", "text in Python", "numbers in Python"],
)
@pytest.mark.parametrize(
    ("program", "needs"),
    [
        (sums, {"user", "at", "amount", "limit"}),
        (early_counts, {"user", "at"}),
        (sessions, {"user", "at", "limit"}),
        (with_late_ones, None),
        (rolling, {"user", "at", "amount"}),
        (near, {"user", "at", "amount"}),
        (far, {"user", "at"}),
        (in_windows, {"user", "at", "amount"}),
        (both, {"user", "at", "amount", "limit"}),
        (both_by_function, None),
        (both_joined, {"user", "at", "amount"}),
        (whole, None),
        (unchanged, None),
    ],
)
def test_what_comes_of_filters_and_unions_needs_no_other_fields(program, needs, where, tmp_path, capsys):
    rows = pa.table(ORDERS)
    for part in range(2):
        pq.write_table(rows.slice(4 * part, 4), tmp_path / f"orders-{part}.parquet")

    def found(wheres):
        env = local_environment()
        env.set_parallelism(1)
        streams = [
            env.from_source(FileSource.parquet(str(tmp_path), type_info=ORDER).build(), STRATEGY, name)
            for name in ("orders", "others")
        ]
        stream = streams[0]
        for each in wheres:
            stream = stream.filter(each)
        results = program(stream, streams[1])
        results.explain()
        said = capsys.readouterr().out.partition("Source 'others'")[0]
        reads = next((line.split("reads")[1] for line in said.splitlines() if line.startswith("  reads ")), "")
        return sorted(map(str, results.execute_and_collect())), {*filter(None, reads.strip().split(", "))}

    expected, all_fields = found([in_python(where)])
    assert all_fields == set()
    assert expected
    for wheres in ([where], [where, where]):
        results, reads = found(wheres)
        assert results == expected
        asked = {field for field in ORDERS if field in where.__code__.co_names}
        assert reads == (set() if needs is None else needs | asked)
