"""Exchange between a program and its job on Spark: collected elements, warnings, parameters, the names of splits."""

from __future__ import annotations

import datetime as dt
import gc
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.common import JobClient, Row, Time, Types, WatermarkStrategy
from eventide.datastream import MapFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from eventide.datastream.connectors import CollectSink, Source
from eventide.datastream.window import CountTumblingWindowAssigner, TumblingProcessingTimeWindows
from eventide.errors import ProgramError, StateError, TimersLeftWarning
from eventide.plan.job import SinkSpec
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements
from eventide.runtime.exchange.frames import BY_ELEMENT, Frame, Signal
from eventide.spark.query.data_frame import DataFrameReader
from eventide.spark.query.data_source import FRAME_SCHEMA
from eventide.spark.sinks.kafka import SinkRun
from eventide.spark.sinks.program_sinks import Collected, DriverSinks, ProgramSinks, ResultHandover
from eventide.spark.sinks.routing import Delivery

pytestmark = pytest.mark.spark


class Endless(Source):
    """Two thousand more numbers each time that it is asked."""

    def __init__(self) -> None:
        self.planned = 0

    def splits(self) -> list[str]:
        return ["numbers"]

    def latest_position(self, split: str) -> int:
        self.planned += 2_000
        return self.planned

    def read(self, split: str, start: int, end: int) -> Iterator[int]:
        yield from range(start, end)

    def is_bounded(self) -> bool:
        return False


def test_a_job_goes_no_further_than_its_elements_are_taken_and_can_be_ended_at_any_time(
    env: StreamExecutionEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Collected.__init__, "__defaults__", (500,))
    stream = env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    with stream.execute_and_collect() as numbers:
        assert [next(numbers) for _ in range(100)] == list(range(100))
        time.sleep(2)
        assert len(numbers._client.get_progress()) <= 1
        assert [next(numbers) for _ in range(6_000)] == list(range(100, 6_100))
    again = stream.execute_and_collect(limit=600)  # from the checkpoint
    assert again == list(range(again[0], again[0] + 600))


def test_a_job_goes_on_when_its_elements_are_forgotten(
    env: StreamExecutionEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Collected.__init__, "__defaults__", (500,))
    gc.collect()
    gc.disable()  # a program that waits for its job makes no garbage either, so that none is collected
    try:
        client = _client_of_a_job_whose_elements_are_forgotten(env)
        deadline = time.monotonic() + 60
        while len(client.get_progress()) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(client.get_progress()) >= 3
    finally:
        gc.enable()
    client.cancel()


def _client_of_a_job_whose_elements_are_forgotten(env: StreamExecutionEnvironment) -> JobClient:
    stream = env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    elements = stream.execute_and_collect()
    next(elements)
    return elements._client


def test_a_query_that_is_stopped_by_hand_ends_while_its_elements_wait(
    spark: SparkSession, env: StreamExecutionEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Collected.__init__, "__defaults__", (500,))
    stream = env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    numbers = stream.execute_and_collect()
    assert next(numbers) == 0
    query = spark.streams.get(str(numbers._client.get_job_id()))
    assert query is not None
    query.stop()
    assert list(numbers) == list(range(1, 501))
    assert stream.execute_and_collect(limit=501) == list(range(501))  # what was not taken was not committed


def test_collected_elements_come_in_their_order_however_their_frames_come(spark: SparkSession) -> None:
    codec = ElementCodec(Types.LONG())
    contents = [codec.encode(Elements([n], [None], [n])) for n in range(50)]
    frames = [Frame(1, 0, Signal.ELEMENTS, BY_ELEMENT, 1, "split", content) for content in contents]
    rows = [(frame.target, frame.subtask, frame.to_bytes()) for frame in reversed(frames)]
    taken: list[Any] = []
    sink = SinkSpec(1, "collect", Types.LONG(), CollectSink(), None)
    to_program = DriverSinks(ProgramSinks((sink,), ResultHandover(taken.append)))
    deliver = Delivery((sink,), to_program, lambda *_: b"", SinkRun(), {})
    deliver(spark.createDataFrame(rows, FRAME_SCHEMA), 0)
    assert taken == list(range(50))


def test_an_order_of_rows_holds_where_there_is_one_split(env: StreamExecutionEnvironment, spark: SparkSession) -> None:
    numbers = spark.range(0, 100, 1, 4).select((99 - F.col("id")).alias("n"))
    stream = env.from_data_frame(numbers, order_by=["n"])
    pairs = stream.key_by(lambda _: 1).count_window(2).reduce(lambda a, b: Row(n=a.n * 1_000 + b.n))
    assert [row.n for row in pairs.execute_and_collect()] == [n * 1_000 + n + 1 for n in range(0, 100, 2)]


def test_a_sink_of_a_batch_job_may_start_another_job(
    env: StreamExecutionEnvironment, spark: SparkSession, tmp_path: Path
) -> None:
    found: list[int] = []

    def count(rows: DataFrame, batch: int) -> None:
        inner = StreamExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(1)
        inner.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "inner"))
        found.extend(inner.from_collection([rows.count()]).execute_and_collect())

    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection([(1,), (2,)], Types.ROW_NAMED(["n"], [Types.LONG()])).sink_to(count)
    env.execute()
    assert found == [2]


def test_one_checkpoint_is_for_one_job_whatever_its_name(
    env: StreamExecutionEnvironment, spark: SparkSession, tmp_path: Path
) -> None:
    running = env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "numbers").execute_and_collect()
    env.get_checkpoint_config().set_checkpoint_storage_dir(f"file://{tmp_path / 'checkpoint'}")
    with running, pytest.raises(StateError, match="is running in this process"):
        env.from_collection([1]).execute_and_collect()


class Asks(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.currency = runtime_context.get_job_parameter("currency", "none")

    def map(self, value: Any) -> Any:
        return [*value, self.currency]


def test_job_parameters_reach_the_workers(env: StreamExecutionEnvironment, spark: SparkSession) -> None:
    env.get_config().set_global_job_parameters({"currency": "EUR"})
    rows = env.from_data_frame(spark.createDataFrame([(1,)], "n INT")).map(Asks())
    assert list(rows.execute_and_collect()) == [[1, "EUR"]]
    windows = env.from_collection([["a"]]).map(Asks()).key_by(lambda _: 1).window(CountTumblingWindowAssigner.of(1))
    assert list(windows.reduce(lambda a, b: a).map(Asks()).execute_and_collect()) == [["a", "EUR", "EUR"]]


def test_a_job_that_ends_before_its_timers_of_processing_time_says_so(env: StreamExecutionEnvironment) -> None:
    windows = env.from_collection(["a", "b"]).key_by(lambda e: e)
    results = windows.window(TumblingProcessingTimeWindows.of(Time.hours(10**6))).reduce(max).name("largest")
    with pytest.warns(TimersLeftWarning, match=r"time of 2 timer\(s\).*: 'largest' \(2\)") as caught:
        assert list(results.execute_and_collect("visits")) == []
    assert [w.filename for w in caught if w.category is TimersLeftWarning] == [__file__]


def test_decimals_of_spark_keep_their_precision_and_scale(env: StreamExecutionEnvironment, spark: SparkSession) -> None:
    prices = spark.createDataFrame([("a", Decimal("1.10")), ("a", Decimal("2.00"))], "word STRING, price DECIMAL(7,2)")
    stream = env.from_data_frame(prices)
    assert str(stream.get_type()) == "ROW(word: STRING, price: BIG_DEC(7, 2))"
    windows = stream.key_by("word").window(CountTumblingWindowAssigner.of(2))
    sums = windows.reduce(lambda a, b: Row(word=a.word, price=a.price + b.price))
    assert list(map(repr, sums.execute_and_collect())) == ["Row(word='a', price=Decimal('3.10'))"]
    back = stream.filter(lambda row: row.price > 1).to_data_frame()
    assert back.schema["price"].dataType.simpleString() == "decimal(7,2)"
    assert [row.price for row in back.collect()] == [Decimal("1.10"), Decimal("2.00")]


UTC = dt.UTC
SPLITS: list[tuple[str, list[tuple[Any, ...]], list[Any]]] = [
    ("a DOUBLE", [(1.0,)], [1]),
    ("a FLOAT", [(0.1,)], [0.1]),
    ("a INT", [(1,), (None,)], ["1", None]),
    ("a BOOLEAN", [(True,)], [True]),
    ("a DECIMAL(10, 2)", [(Decimal("1.10"),)], [Decimal("1.1")]),
    ("a DATE", [(dt.date(2024, 1, 2),)], [dt.date(2024, 1, 2)]),
    ("a TIMESTAMP", [(dt.datetime(2024, 1, 2, 3, tzinfo=UTC),)], [dt.datetime(2024, 1, 2, 3, tzinfo=UTC)]),
    ("a TIMESTAMP_NTZ", [(dt.datetime(2024, 1, 2, 3),)], [dt.datetime(2024, 1, 2, 3)]),  # noqa: DTZ001 - has none
    ("a BINARY", [(b"\xff",)], [b"\xff"]),
    ("a STRING", [("null",), (None,), ("a,b",)], ["null", None, "a,b"]),
    (
        "a STRING, b STRING",
        [("a,b", "c"), ("a", "b,c"), ("a\\", "b"), ("a", "\\,b"), (None, "null"), ("null", None)],
        [("a,b", "c"), ("a", "b,c"), ("a\\", "b"), ("a", "\\,b"), (None, "null"), ("null", None)],
    ),
]


def test_expected_splits_have_the_names_of_the_rows_and_each_its_own(spark: SparkSession) -> None:
    for schema, rows, values in SPLITS:
        data_frame = spark.createDataFrame(rows, schema)
        reader = DataFrameReader.of(data_frame, None, data_frame.columns, values, None)
        named = [row[0] for row in reader.rows.select("__eventide_split").collect()]
        assert list(reader.splits) == named, schema
        assert len(set(named)) == len(rows)


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ("a INT", 1.5, "1.5 cannot be a value of a column of type int"),
        ("a INT", "x", "'x' cannot be"),
        ("a INT", 2**40, "cannot be"),
        ("a INT", dt.date(2024, 1, 1), r"one of \[datetime.date\(2024, 1, 1\)\] cannot be"),
        ("a DATE", dt.datetime(2024, 1, 1, 3), "cannot be"),  # noqa: DTZ001 - as a user writes it
        ("a INT", object(), "Spark has no value for"),
        ("a INT, b INT", 1, r"has 1 value\(s\), and split_by names 2"),
    ],
)
def test_a_split_that_no_row_can_have_is_refused(spark: SparkSession, schema: str, value: Any, told: str) -> None:
    data_frame = spark.createDataFrame([], schema)
    with pytest.raises(ProgramError, match=told):
        DataFrameReader.of(data_frame, None, data_frame.columns, [value], None)
