"""Jobs on Spark: streams and DataFrames in and out, several sinks, restarts, refusals, failures, clients."""

from __future__ import annotations

import datetime
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from eventide.common import Duration, JobStatus, Row, Time, Types, WatermarkStrategy
from eventide.datastream import (
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from eventide.datastream.connectors import FormatSink, NumberSequenceSource
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.errors import DataError, ProgramError, StateError, TemporaryCheckpointWarning, UserFunctionError
from eventide.spark.query.frame_rows import subtask_ids
from eventide.testing import Idle, ScriptedSource, local_environment
from support.steps import in_steps

pytestmark = pytest.mark.spark

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
LATE = OutputTag("late", PAIR)
BY_SECOND_FIELD = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])


def sums(stream: DataStream, size: int = 10) -> DataStream:
    """Sums per key and window of a stream of pairs, late pairs on a side output."""
    return (
        stream.key_by(lambda e: e[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(size)))
        .side_output_late_data(LATE)
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


SCRIPT: list[list[Any]] = [
    [("a", ("x", 1)), ("b", ("y", 5))],
    [],
    [("a", ("x", 12)), ("b", ("x", 22)), ("a", ("z", 14))],
    [("a", ("x", 3)), ("a", ("y", 40)), Idle("b")],
    [("a", ("y", 47)), ("b", ("x", 33))],
]


def scripted(env: StreamExecutionEnvironment, script: list[list[Any]], bounded: bool = True) -> DataStream:
    return env.from_source(ScriptedSource(["a", "b"], script, PAIR, bounded), BY_SECOND_FIELD, "script")


def reopened(path: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(path))
    return env


@pytest.mark.parametrize("partitions", [1, 2, 3, 5, 8])
def test_each_subtask_id_has_a_shuffle_partition_of_its_own(spark: SparkSession, partitions: int) -> None:
    ids = spark.createDataFrame([(i,) for i in subtask_ids(partitions)], "subtask INT")
    dealt = ids.repartition(partitions, "subtask").select("subtask", F.spark_partition_id().alias("partition"))
    assert sorted((row.partition, row.subtask) for row in dealt.collect()) == list(enumerate(subtask_ids(partitions)))


@pytest.mark.parametrize("keyed", [False, True], ids=["of a source", "of an operator"])
def test_rows_of_a_sink_that_drops_them_are_counted_and_do_not_reach_spark(
    env: StreamExecutionEnvironment, tmp_path: Path, keyed: bool
) -> None:
    numbers = env.from_source(NumberSequenceSource(0, 99, splits=2), WatermarkStrategy.no_watermarks(), "numbers")
    pairs = numbers.map(lambda n: (str(n % 3), n), PAIR)
    stream = pairs.key_by(lambda e: e[0], Types.STRING()).sum(1).name("sums") if keyed else pairs
    stream.sink_to(FormatSink("noop"))
    metrics = env.execute("dropped").metrics
    assert metrics["numbers"]["numRecordsOut"] == 100
    assert not keyed or metrics["sums"] == {"numRecordsIn": 100, "numRecordsOut": 100}
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "failing"))
    pairs.map(lambda e: 1 // (e[1] - 50), Types.INT()).sink_to(FormatSink("noop"))
    with pytest.raises(UserFunctionError, match="ZeroDivisionError"):
        env.execute("failing")


@in_steps
def test_union_of_sources_chained_windows_and_several_sinks_in_one_query(env: StreamExecutionEnvironment) -> None:
    frames: list[tuple[int, list[Row]]] = []

    def program(env: StreamExecutionEnvironment) -> tuple[DataStream, DataStream]:
        numbers = env.from_source(
            NumberSequenceSource(1, 40, splits=3), WatermarkStrategy.no_watermarks(), "numbers"
        ).map(lambda n: (f"n{n % 2}", n), PAIR)
        events = scripted(env, SCRIPT).union(numbers.assign_timestamps_and_watermarks(BY_SECOND_FIELD))
        first = sums(events)
        again = first.window_all(TumblingEventTimeWindows.of(Time.milliseconds(20))).reduce(
            lambda a, b: ("all", a[1] + b[1])
        )
        return again, first.get_side_output(LATE)

    results, late = program(env)
    late.sink_to(lambda rows, batch: frames.append((batch, rows.collect())))
    results.sink_to(lambda rows, batch: frames.append((batch, rows.collect())))
    client = env.execute_async("several")
    result = client.get_job_execution_result().result()

    twin = local_environment()
    results, late = program(twin)
    expected, expected_late = list(results.execute_and_collect()), list(late.execute_and_collect())
    assert sorted(tuple(row) for _, rows in frames for row in rows) == sorted(expected + expected_late)
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert result.metrics["TumblingEventTimeWindows.reduce"]["numLateRecordsToSideOutput"] == len(expected_late) > 0


@in_steps
def test_a_job_goes_on_from_its_checkpoint_and_refuses_another_program(spark: SparkSession, tmp_path: Path) -> None:
    whole = sorted(sums(scripted(local_environment(), SCRIPT)).execute_and_collect())

    first = list(sums(scripted(reopened(tmp_path), SCRIPT[:3], bounded=False)).execute_and_collect())
    rest = list(sums(scripted(reopened(tmp_path), SCRIPT)).execute_and_collect())
    assert sorted(first + rest) == whole
    assert first
    assert rest

    # Another sink changes nothing of the state.
    script = scripted(reopened(tmp_path), SCRIPT)
    script.print("seen")
    sums(script).print("sum")
    script.get_execution_environment().execute()

    changed: dict[str, Callable[[StreamExecutionEnvironment], DataStream]] = {
        "window was 'TumblingEventTimeWindows": lambda env: sums(scripted(env, SCRIPT), size=20),
        "parallelism was 2 and is now 1": lambda env: sums(scripted(env.set_parallelism(1), SCRIPT)),
        "element type was": lambda env: sums(scripted(env, SCRIPT).map(lambda e: e)),
        r"it had 1 stage\(s\) of operators and has 2": lambda env: sums(sums(scripted(env, SCRIPT))),
        r"it had 1 source\(s\) and has 2": lambda env: sums(scripted(env, SCRIPT).union(scripted(env, SCRIPT))),
    }
    for said, program in changed.items():
        with pytest.raises(StateError, match=said):
            program(reopened(tmp_path)).execute_and_collect()


def slowly(pair: Any) -> Any:
    time.sleep(0.5)
    return pair


@pytest.mark.long
def test_what_is_there_is_read_though_the_run_before_left_a_micro_batch_for_the_clock_undone(
    spark: SparkSession, tmp_path: Path
) -> None:
    in_order: list[list[Any]] = [
        [("a", ("x", 1)), ("b", ("y", 5))],
        [("a", ("x", 12)), ("b", ("x", 22)), ("a", ("z", 14))],
        [("a", ("y", 40)), ("b", ("x", 41))],
    ]

    def program(env: StreamExecutionEnvironment, script: list[list[Any]], bounded: bool) -> DataStream:
        source = ScriptedSource(["a", "b"], script, PAIR, bounded)
        return sums(env.from_source(source, BY_SECOND_FIELD.with_idleness(Duration.of_hours(1)), "script").map(slowly))

    collected = list(program(reopened(tmp_path), in_order[:1], bounded=False).execute_and_collect())
    last = max(int(file.name) for file in (tmp_path / "offsets").iterdir() if file.name.isdigit())
    for file in (tmp_path / "commits").glob(f"*{last}*"):  # it was killed before this
        file.unlink()
    collected += program(reopened(tmp_path), in_order, bounded=True).execute_and_collect()
    assert sorted(collected) == sorted(program(local_environment(), in_order, bounded=True).execute_and_collect())


class _Bounds(ProcessWindowFunction):
    def process(self, key, context, elements):
        values = list(elements)
        yield Row(key=key, window=context.window(), n=len(values), first=values[0]["n"])


COUNTED = Types.ROW_NAMED(
    ["key", "window", "n", "first"], [Types.STRING(), Types.TIME_WINDOW(), Types.LONG(), Types.LONG()]
)


def at(second: int) -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, 0, 0, second)  # noqa: DTZ001 - as Spark gives timestamps: naive, in UTC


def counted(env: StreamExecutionEnvironment, df: DataFrame, time: Any = "at", **columns: Any) -> DataFrame:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(time)
    stream = env.from_data_frame(df, strategy, split_by=["device"], **columns)
    windows = stream.key_by(lambda row: row["kind"], Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.seconds(10))
    )
    return windows.process(_Bounds(), COUNTED).to_data_frame()


@pytest.fixture
def two_partitions(spark: SparkSession) -> Iterator[None]:
    """The setting that a user who starts a query on a DataFrame of eventide is asked for."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def logging_to(log: Path) -> Callable[[int], int]:
    """A function that leaves its argument in a file."""

    def push(value: int) -> int:
        with log.open("a") as file:
            file.write(f"{value}\n")
        return value

    return push


def test_every_operator_and_every_sink_of_a_program_runs_once(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    push, taken = logging_to(tmp_path / "log"), list[int]()
    numbers = env.from_collection([1, 2], Types.LONG())
    numbers.map(push)
    env.execute()
    assert sorted((tmp_path / "log").read_text().split()) == ["1", "2"]
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "second"))
    numbers.map(push)
    numbers.sink_to(lambda rows, _: taken.extend(row[0] for row in rows.collect()))
    assert sorted(numbers.map(lambda v: v * 10).execute_and_collect()) == [10, 20]
    assert sorted((tmp_path / "log").read_text().split()) == ["1", "1", "2", "2"]
    assert sorted(taken) == [1, 2]


def test_functions_open_what_an_archive_held(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a table.zip", "w") as archive:
        archive.writestr("prices.txt", "7")
    env.add_python_archive(str(tmp_path / "a table.zip"), "tables")
    priced = env.from_collection([1, 2]).map(lambda v: (v, Path("tables", "prices.txt").read_text()))
    keyed = (
        priced.key_by(lambda v: v[0])
        .reduce(lambda a, b: a)
        .map(lambda v: (*v, Path("tables", "prices.txt").read_text()))
    )
    assert sorted(keyed.execute_and_collect()) == [(1, "7", "7"), (2, "7", "7")]


@pytest.mark.matrix
@pytest.mark.usefixtures("two_partitions")
def test_a_streaming_data_frame_goes_in_and_comes_out(
    spark: SparkSession, env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    schema = "device STRING, kind STRING, at TIMESTAMP, n LONG"
    batches = [
        [("d1", "k", at(3), 2), ("d1", "k", at(1), 1), ("d1", "k", at(30), 3)],  # d2 has not spoken: nothing fires
        [("d2", "k", at(5), 4), ("d2", "k", at(14), 5)],  # d2 stands at 12.999: the first window fires
        [("d2", "k", at(2), 6), ("d2", "j", at(40), 7)],  # the first of these is late
    ]
    for number, rows in enumerate(batches):
        spark.createDataFrame(rows, schema).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        time.sleep(0.01 * number)
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    result = counted(env, stream, splits=["d1", "d2"], order_by=["n"])
    assert result.isStreaming
    assert result.schema.simpleString() == (
        "struct<key:string,window:struct<start:timestamp,end:timestamp>,n:bigint,first:bigint>"
    )
    writer = result.writeStream.format("memory").queryName("counted").outputMode("append")
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True).start()
    query.awaitTermination()
    rows = [(r.key, r.window.start, r.window.end, r.n, r.first) for r in spark.table("counted").collect()]
    assert rows == [("k", at(0), at(10), 3, 1), ("k", at(10), at(20), 1, 5)]


@pytest.mark.usefixtures("two_partitions")
def test_a_batch_data_frame_goes_in_and_comes_out(spark: SparkSession, env: StreamExecutionEnvironment) -> None:
    rows = [(f"d{i % 2}", "k", at(i), i) for i in range(25)]
    frame = spark.createDataFrame(rows, "device STRING, kind STRING, at TIMESTAMP_NTZ, n LONG").repartition(3)
    result = counted(env, frame, time=F.col("at"), order_by=[F.col("n")])
    assert not result.isStreaming
    assert sorted((r.window.start, r.n, r.first) for r in result.collect()) == [
        (at(0), 10, 0),
        (at(10), 10, 10),
        (at(20), 5, 20),
    ]


def test_batch_mode_reads_bounded_sources_as_a_whole(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    late_in_streaming = [[("a", ("x", 5))], [("a", ("x", 50))], [("a", ("x", 6))]]
    source = ScriptedSource(["a"], late_in_streaming, PAIR)
    stream = env.from_source(source, BY_SECOND_FIELD, "script")
    assert sorted(sums(stream).execute_and_collect()) == [("x", 11), ("x", 50)]

    unbounded = scripted(env, SCRIPT, bounded=False)
    with pytest.raises(ProgramError, match="never ends"):
        unbounded.execute_and_collect()


def test_what_fails_in_a_worker_is_raised_in_the_program(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    def picky(element: tuple[str, int]) -> tuple[str, int]:
        if element[1] == 22:
            raise ValueError("22 is\n\nunwelcome")
        return element

    stream = sums(scripted(env, SCRIPT).map(picky, PAIR).name("picky"))
    stream.print()
    client = env.execute_async()
    with pytest.raises(UserFunctionError, match=r"'picky'.*element \('x', 22\)(.|\n)*22 is\n\nunwelcome$"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED

    wrong = scripted(reopened(tmp_path / "wrong"), SCRIPT).map(lambda e: (e[0], "text"), PAIR).name("wrong")
    with pytest.raises(DataError, match=r"'wrong'.*field f1: expected INT, got 'text'"):
        list(sums(wrong).execute_and_collect())


def test_a_function_that_holds_what_cannot_travel_is_refused_at_the_start(
    spark: SparkSession, env: StreamExecutionEnvironment
) -> None:
    with pytest.raises(ProgramError, match=r"cannot be sent to the workers.*open\(\)"):
        env.from_collection([1]).map(lambda n: (n, spark)).execute_and_collect()


def test_an_unbounded_job_runs_until_it_is_cancelled(env: StreamExecutionEnvironment) -> None:
    sums(scripted(env, SCRIPT[:3], bounded=False)).print("unbounded")
    client = env.execute_async("endless")
    deadline = time.monotonic() + 60
    while client.get_metrics().get("script", {}).get("numRecordsOut") != 5 and time.monotonic() < deadline:
        assert client.get_job_status().result() is JobStatus.RUNNING
        time.sleep(0.1)
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert client.get_progress()[-1].splits == {"a": 13, "b": 21}


def test_without_a_checkpoint_location_a_warning_names_the_temporary_one(spark: SparkSession) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    with pytest.warns(TemporaryCheckpointWarning, match="set_checkpoint_storage_dir") as warned:
        assert list(env.from_collection([1, 2]).execute_and_collect()) == [1, 2]
    (warning,) = (one for one in warned if one.category is TemporaryCheckpointWarning)
    assert warning.filename == __file__
    place = str(warning.message).split("temporary directory ")[1].split(",")[0]
    assert not Path(place).exists()


def test_sessions_on_spark_with_objects_that_are_pickled(env: StreamExecutionEnvironment) -> None:
    events = [{"user": "ann", "at": t} for t in (1, 4, 20)] + [{"user": "bob", "at": 2}]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e["at"])
    sessions = (
        env.from_collection(events)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e["user"])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        .reduce(lambda a, b: {**a, "at": b["at"]})
    )
    assert sorted((e["user"], e["at"]) for e in sessions.execute_and_collect()) == [("ann", 4), ("ann", 20), ("bob", 2)]


@in_steps
def test_elements_share_no_objects_on_spark(env: StreamExecutionEnvironment) -> None:
    """One object in the elements of two keys is changed in state, and one row is emitted again and again."""

    class Counts(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            descriptor = ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY())
            self.state = runtime_context.get_state(descriptor)

        def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
            count = self.state.value() or value[1]
            count[0] += 1
            self.state.update(count)
            yield f"{value[0]}{count[0]}"

    class ReusesOneRow(MapFunction):
        def __init__(self) -> None:
            self.row: list[Any] = [None]

        def map(self, value: Any) -> list[Any]:
            self.row[0] = value
            return self.row

    zero = [0]
    names = env.from_collection(["a", "b", "a", "b"])
    counts = names.map(lambda key: (key, zero)).key_by(lambda e: e[0]).process(Counts())
    rows = names.map(ReusesOneRow()).map(lambda row: "row of " + row[0])
    assert sorted(counts.union(rows).execute_and_collect()) == [
        *("a1", "a2", "b1", "b2"),
        *("row of a", "row of a", "row of b", "row of b"),
    ]


@in_steps
def test_a_function_that_reads_nothing_of_its_micro_batch_harms_no_state(env: StreamExecutionEnvironment) -> None:
    seen: list[tuple[int, list[Row]]] = []

    def every_second_batch(rows: DataFrame, batch: int) -> None:
        if batch % 2:
            seen.append((batch, rows.limit(1).collect()))

    sums(scripted(env, SCRIPT)).sink_to(every_second_batch)
    twin = local_environment()
    sums(scripted(twin, SCRIPT)).print()
    assert env.execute().metrics == twin.execute().metrics
    assert [batch for batch, _ in seen] == [1, 3, 5]
