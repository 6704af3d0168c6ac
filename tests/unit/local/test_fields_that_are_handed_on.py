"""Filters and unions hand on elements without the fields that nothing after them needs."""

from copy import copy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.aggregates import collect_list, count, sum_
from eventide.common import Row, Time, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, OutputTag
from eventide.datastream.connectors import CollectionSource, FileSource, HybridSource, Source
from eventide.datastream.functions import in_python
from eventide.datastream.window import CountTrigger, EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.errors import DataError
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


class ByTime(WatermarkGenerator):
    """The usual one: it looks at times alone."""

    def __init__(self):
        self.latest = -(2**62)

    def on_event(self, event, event_timestamp, output):
        self.latest = max(self.latest, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.latest - 3))


class Rows(Source):
    """A source of the user's that may leave out columns, and gives rows one by one."""

    def __init__(self, rows):
        self.rows = rows
        self.kind = ORDER

    def splits(self):
        return ["all"]

    def latest_position(self, split):
        return len(self.rows)

    def is_bounded(self):
        return True

    def get_produced_type(self):
        return self.kind

    def with_columns(self, columns):
        narrow, pairs = copy(self), zip(ORDER.field_names, ORDER.types, strict=True)
        narrow.kind = Types.ROW_NAMED(*zip(*(pair for pair in pairs if pair[0] in columns), strict=True))
        return narrow

    def read(self, split, start, end):
        for row in self.rows[start:end]:
            yield Row(**{name: row[name] for name in self.kind.field_names})


class Reordered(Rows):
    """A source whose rows, with columns left out, have another order of fields: they cannot be used."""

    def with_columns(self, columns):
        narrow = super().with_columns(columns)
        names, types = narrow.kind.field_names, narrow.kind.types
        narrow.kind = Types.ROW_NAMED(names[::-1], types[::-1])
        return narrow


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    """Where the orders lie."""
    place = tmp_path_factory.mktemp("orders")
    pq.write_table(pa.table(ORDERS), place / "orders.parquet")
    return place


UNTIMED = WatermarkStrategy.no_watermarks()
GENERATED = WatermarkStrategy.for_generator(ByTime).with_timestamp_assigner("at")
FEW = [Row(user="z", at=70, amount=1, limit=9, text="-"), Row(user="a", at=71, amount=2, limit=8, text="-")]


def generated(stream, where):
    return stream(UNTIMED).union(stream(UNTIMED)).assign_timestamps_and_watermarks(GENERATED).filter(where)


def generated_before(stream, where):
    return stream(UNTIMED).filter(where).assign_timestamps_and_watermarks(GENERATED)


def generated_between(stream, where):
    timed = stream(UNTIMED).filter(where).assign_timestamps_and_watermarks(GENERATED)
    return timed.assign_timestamps_and_watermarks(STRATEGY).filter(where)


def of_two_kinds(stream, where):
    files_first = [stream.files(), CollectionSource(FEW, type_info=ORDER)]
    rows_first = [CollectionSource(FEW[:1], type_info=ORDER), stream.files()]
    streams = [stream.env.from_source(HybridSource(sources), STRATEGY, "two") for sources in (files_first, rows_first)]
    return streams[0].union(streams[1]).filter(where)


def of_rows(stream, where):
    return stream.env.from_source(Rows(FEW), STRATEGY, "rows").filter(where)


def of_reordered_rows(stream, where):
    return stream.env.from_source(Reordered(FEW), STRATEGY, "rows").filter(where)


def with_rows(stream, where):
    few = stream.env.from_source(CollectionSource(FEW, type_info=ORDER), STRATEGY, "few")
    return stream(STRATEGY).union(few).filter(where)


def keyed_in_between(stream, where):
    keyed = stream(STRATEGY).filter(where).key_by(lambda order: (order.text,))
    return keyed.side_output_dead_letters(OutputTag("letters"))


class Files:
    """Streams of the orders in an environment."""

    def __init__(self, env, place):
        self.env = env
        self.place = str(place)

    def files(self):
        return FileSource.parquet(self.place, type_info=ORDER).build()

    def __call__(self, strategy):
        return self.env.from_source(self.files(), strategy, "orders")


WHERES = [
    lambda order: order.at != 12,
    lambda order: order.user.upper() != "B",
    lambda order: "text" in order,
    lambda order: "user" in order,
    lambda order: len(order) != 3 and order.amount > 0,
    lambda order: len(order) != 4 and order.amount > 0,
    lambda order: len(order.as_dict()) != 3,
    lambda order: next(iter(order.as_dict())) == "user",
    lambda order: order[-1] != "v",
]
BEGINNINGS = [
    *(generated, generated_before, generated_between, of_two_kinds),
    *(of_rows, of_reordered_rows, with_rows, keyed_in_between),
]


@pytest.mark.parametrize("where", WHERES)
@pytest.mark.parametrize("program", BEGINNINGS)
def test_what_needs_whole_elements_gets_them(program, where, orders):
    def found(function):
        stream = program(Files(local_environment().set_parallelism(1), orders), function)
        return sorted(map(str, sums(stream, None).execute_and_collect()))

    assert found(where) == found(in_python(where)) != []


AS_THEY_ARE, SHUFFLES = (lambda stream: stream), [lambda stream: stream.rebalance(), lambda stream: stream.global_()]
ENDINGS = [
    *(sums, early_counts, sessions, with_late_ones, rolling, near, far),
    *(in_windows, both, both_by_function, both_joined, whole, unchanged),
]


@given(
    st.sampled_from(BEGINNINGS),
    st.lists(st.sampled_from(WHERES), min_size=1, max_size=3),
    st.sampled_from([AS_THEY_ARE, AS_THEY_ARE, *SHUFFLES]),
    st.sampled_from(ENDINGS),
)
def test_a_program_gives_what_it_gives_with_whole_elements(orders, beginning, wheres, shuffle, ending):
    def found(functions):
        files = Files(local_environment().set_parallelism(1), orders)
        stream = beginning(files, functions[0])
        for function in functions:
            stream = stream.filter(function)
        return sorted(map(str, ending(shuffle(stream), files(STRATEGY)).execute_and_collect()))

    assert found(wheres) == found([*map(in_python, wheres)])


def test_a_row_without_fields_is_of_the_declared_type_or_an_error_says_where():
    env = local_environment().set_parallelism(1)
    rows = env.from_source(Rows([*FEW, Row(user="z", at=72, amount=2**70, limit=9, text="-")]), STRATEGY, "rows")
    with pytest.raises(DataError, match=r"operator 'rows', .*split 'all'.* field amount: expected LONG"):
        list(rows.map(lambda order: (order.user, order.amount)).execute_and_collect())


def test_a_program_of_many_unions_is_planned(orders, capsys):
    stream = Files(local_environment().set_parallelism(1), orders)
    united = stream(STRATEGY)
    for _ in range(250):
        united = united.union(stream(STRATEGY))
    sums(united, None).explain()
    assert capsys.readouterr().out.count("  reads      user, at, amount, limit\n") == 251
