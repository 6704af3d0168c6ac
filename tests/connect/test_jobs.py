"""Programs over Spark Connect: what they print and collect comes to them, and they go on where they stood."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from types import ModuleType

import pytest
from pyarrow.parquet import read_table
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from eventide.aggregates import count, sum_
from eventide.cli.app import app
from eventide.common import (
    Duration,
    JobStatus,
    RestartStrategies,
    Row,
    SimpleStringSchema,
    Time,
    Types,
    WatermarkStrategy,
)
from eventide.datastream import (
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from eventide.datastream.connectors import (
    CollectSink,
    DeliveryGuarantee,
    FormatSink,
    KafkaSink,
    KafkaSource,
    NumberSequenceSource,
)
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError, StateError, UserFunctionError
from eventide.spark.connect import MOST_WAITING, ask
from eventide.testing import KafkaBroker
from support.connect.server import ConnectServer
from support.kafka_topics import new_topic, produce, values
from support.saved_on_spark import NARROW, expected, job, lines, program
from support.saved_program import WIDE
from support.watching import json_of

pytestmark = [pytest.mark.spark, pytest.mark.connect]
IN_ORDER = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
TENS = TumblingEventTimeWindows.of(Time.milliseconds(10))
TOTAL = Types.ROW_NAMED(["total"], [Types.LONG()])
PART_TOTAL = Types.ROW_NAMED(["part", "total"], [Types.LONG(), Types.LONG()])
BIG = OutputTag("big", Types.LONG())
PRINTING = str(Path(__file__).parents[1] / "support" / "connect" / "printing_job.py")
PATIENCE_S = 150


class SortOut(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[object]:
        if value >= 35:
            yield BIG, value
        yield value


def tens_of(env: StreamExecutionEnvironment):
    """The totals of the tens below 40, in two micro-batches."""
    numbers = env.set_max_rows_per_batch(20).from_source(NumberSequenceSource(0, 39), IN_ORDER, "numbers")
    sorted_out = numbers.process(SortOut(), Types.LONG())
    return sorted_out, sorted_out.key_by(lambda _: 0, Types.INT()).window(TENS).reduce(lambda a, b: a + b)


def test_sinks_of_all_kinds_get_their_elements_and_the_client_knows_how_the_job_went(
    env: StreamExecutionEnvironment,
    spark: SparkSession,
    server: ConnectServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, others = str(tmp_path / "files"), str(tmp_path / "others")
    sorted_out, totals = tens_of(env)
    assert env.get_parallelism() == 2  # the server's
    sorted_out.get_side_output(BIG).print("big")
    totals.sink_to(CollectSink())
    as_rows = totals.map(lambda total: Row(total=total), TOTAL)
    as_rows.sink_to(FormatSink("parquet", {"path": files}))
    as_rows.sink_to(lambda rows, _: rows.write.mode("append").parquet(others))
    env.set_dashboard(port=0)
    client = env.execute_async("totals")
    assert list(client.collected()) == [45, 145, 245, 345]
    assert capsys.readouterr().out.splitlines() == [f"big> {number}" for number in range(35, 40)]
    for path in (files, others):
        assert sorted(row.total for row in spark.read.parquet(path).collect()) == [45, 145, 245, 345]
    counted = client.get_job_execution_result().result().metrics
    assert counted["TumblingEventTimeWindows.reduce"] == {"numRecordsIn": 40, "numRecordsOut": 4}
    assert [one.splits_of["numbers"]["0"] for one in client.get_progress()][:2] == [18, 38]
    [standing] = client.why().standings
    assert standing.rows == 40
    shown = json_of(f"{env.get_dashboard_url()}/api/jobs/1/batches")["batches"]
    assert [batch["rows_in"] for batch in shown][:2] == [20, 20]

    monkeypatch.setenv("SPARK_REMOTE", server.url)  # as in a shell, where the commands are other processes
    checkpoint = str(tmp_path / "checkpoint")
    why = CliRunner().invoke(app, ["why", checkpoint, "--json"])
    assert why.exit_code == 0, why.output
    assert "TumblingEventTimeWindows.reduce" in why.output
    found = json.loads(CliRunner().invoke(app, ["checkpoint", checkpoint, "--json"]).output)
    assert found["committed"]["number"] == client.get_progress()[-1].batch


def test_which_runs_planned_micro_batches_is_found_out_where_the_server_is(env: StreamExecutionEnvironment) -> None:
    strategy = IN_ORDER.with_idleness(Duration.of_minutes(5))
    numbers = env.from_source(NumberSequenceSource(0, 39), strategy, "numbers")
    totals = numbers.key_by(lambda _: 0, Types.INT()).window(TENS).reduce(lambda a, b: a + b)
    assert list(totals.execute_and_collect()) == [45, 145, 245, 345]


def test_a_job_whose_program_was_killed_goes_on_with_another_run_and_no_element_is_lost(
    server: ConnectServer, tmp_path: Path
) -> None:
    """The query goes on without its program; the next run ends it, and gets what was left."""
    files = str(tmp_path / "files")
    command = [sys.executable, "-W", "ignore", PRINTING, str(tmp_path / "ck"), files]
    environment = {**os.environ, "SPARK_REMOTE": server.url, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        before = [first.stdout.readline().strip() for _ in range(4)]
        first.kill()
        before += first.stdout.read().split()
    second = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stderr
    behind = second.stdout.split()
    largest = [str(number) for number in range(4, 200, 5)]
    assert before == largest[: len(before)]
    assert behind[-1] == "199"
    again = len(before) + len(behind) - len(largest)
    assert behind == largest[len(before) - again :]
    written = [number for path in Path(files).glob("part-*") for number in read_table(path)["number"].to_pylist()]
    assert sorted(written) == [int(number) for number in largest]
    assert 0 <= again <= 2 * 4  # of the micro-batches that it had taken and not yet deleted
    assert [path.name for path in (tmp_path / "ck" / "eventide-results").iterdir() if path.name.isdigit()] == []


def test_a_job_whose_server_is_killed_goes_on_with_the_next_server_and_no_element_is_lost(tmp_path: Path) -> None:
    """The program of the job ends too, with a sentence that says whether the server was started again."""
    files, largest = str(tmp_path / "files"), [str(number) for number in range(4, 200, 5)]
    command = [sys.executable, "-W", "ignore", PRINTING, str(tmp_path / "ck"), files]
    (tmp_path / "server").mkdir()
    with ConnectServer(tmp_path / "server") as server:
        environment = {**os.environ, "SPARK_REMOTE": server.url, "PYTHONPATH": os.pathsep.join(sys.path)}
        lives: list[list[str]] = []
        for tries, said in (("120", "does not know the session of this job"), ("3", "does not answer any more")):
            started = [*command, tries]
            with subprocess.Popen(started, env=environment, stdout=PIPE, stderr=PIPE, text=True) as life:
                assert life.stdout is not None
                lives.append([life.stdout.readline().strip() for _ in range(4)])
                server.kill()
                if tries == "120":
                    server.start()
                printed, failure = life.communicate(timeout=PATIENCE_S)
            lives[-1] += printed.split()
            assert (life.returncode, said in failure.splitlines()[-1]) == (1, True), failure
        server.start()
        last = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert last.returncode == 0, last.stderr
    had = 0
    for printed_by_one in [*lives, last.stdout.split()]:
        begins = largest.index(printed_by_one[0])
        assert had - 2 * MOST_WAITING <= begins <= had  # what it had taken and not yet deleted comes once more
        had = begins + len(printed_by_one)
        assert printed_by_one == largest[begins:had]
    assert had == len(largest)
    written = [number for path in Path(files).glob("part-*") for number in read_table(path)["number"].to_pylist()]
    assert sorted(written) == [int(number) for number in largest]


def test_a_job_goes_on_from_a_savepoint_with_other_subtasks_and_wider_types(
    spark: SparkSession, server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = str(tmp_path / "saved")
    env = job(tmp_path / "one", 2)
    program(env, 2, tmp_path / "out1", NARROW)
    env.execute()
    with monkeypatch.context() as shell:
        shell.setenv("SPARK_REMOTE", server.url)
        taken = CliRunner().invoke(app, ["savepoint", str(tmp_path / "one"), saved, "--parallelism", "3", "--json"])
        assert taken.exit_code == 0, taken.output
        again = CliRunner().invoke(app, ["savepoint", str(tmp_path / "one"), saved])
        assert (again.exit_code, f"there is something at {saved} already" in again.output) == (2, True)
        assert CliRunner().invoke(app, ["checkpoint", saved, "--json"]).output == taken.output
    assert json.loads(taken.output)["parallelism"] == 3

    unfit = job(tmp_path / "other", 3).from_savepoint(saved)
    unfit.from_source(NumberSequenceSource(0, 1), IN_ORDER, "numbers").print()
    with pytest.raises(StateError, match="the program does not fit the savepoint"):
        unfit.execute()
    with pytest.raises(StateError, match="there is no savepoint at"):
        job(tmp_path / "other", 3).from_savepoint(str(tmp_path / "nothing")).saved_position()
    env = job(tmp_path / "other", 3).from_savepoint(saved)
    program(env, 4, tmp_path / "out2", WIDE, has_another=True)
    env.execute()
    assert lines(tmp_path / "out1", tmp_path / "out2") == expected()


class Remember(KeyedProcessFunction):
    """Says for each number how many of its key came before, by a state that outlives runs."""

    def open(self, runtime_context) -> None:
        from eventide.datastream.state import ValueStateDescriptor

        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int]]:
        before = self.seen.value() or 0
        self.seen.update(before + 1)
        yield value, before


def test_a_job_that_was_cancelled_goes_on_with_its_state(env: StreamExecutionEnvironment) -> None:
    def numbered(env: StreamExecutionEnvironment):
        numbers = env.set_max_rows_per_batch(5).from_source(NumberSequenceSource(0, 29), IN_ORDER, "numbers")
        return numbers.key_by(lambda _: 0, Types.INT()).process(Remember())

    with numbered(env).execute_and_collect() as elements:
        first = [next(elements) for _ in range(3)]
    assert first == [(0, 0), (1, 1), (2, 2)]
    rest = list(numbered(env).execute_and_collect())
    assert rest == [(number, number) for number in range(rest[0][0], 30)]
    assert rest[0][0] % 5 == 0


class FailsOnce(MapFunction):
    """Fails at one element as long as a file is there."""

    def __init__(self, failure: Path) -> None:
        self._failure = failure

    def map(self, value: int) -> int:
        if value == 25 and self._failure.exists():
            self._failure.unlink()
            raise ConnectionError("no answer")
        return value


def test_a_job_that_fails_starts_again_and_gives_each_element_once(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "failure").touch()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
    sorted_out, _ = tens_of(env)
    sorted_out.map(FailsOnce(tmp_path / "failure"), Types.LONG()).sink_to(CollectSink())
    client = env.execute_async("restarted")
    assert sorted(client.collected()) == list(range(40))
    [restart] = client.get_restarts()
    assert "ConnectionError('no answer')" in restart.reason


@pytest.mark.kafka
def test_from_kafka_to_kafka_each_record_comes_once_over_two_runs(
    spark: SparkSession, broker: KafkaBroker, tmp_path: Path
) -> None:
    here, there = new_topic(broker, partitions=2), new_topic(broker)
    numbers = [str(number).encode() for number in range(20)]
    for part in (numbers[:10], numbers[10:]):
        produce(broker, here, [{"value": value, "partition": n % 2} for n, value in enumerate(part)])
        env = StreamExecutionEnvironment.get_execution_environment().set_available_now()
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))
        source = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers).set_topics(here)
        source.set_value_only_deserializer(SimpleStringSchema())
        records = KafkaRecordSerializationSchema.builder().set_topic(there)
        records.set_value_serialization_schema(SimpleStringSchema())
        sink = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers)
        sink.set_record_serializer(records.build()).set_transactional_id_prefix(there)
        sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        read = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "numbers")
        read.sink_to(sink.build())
        env.execute("from Kafka to Kafka")
    assert sorted(values(broker, there)) == sorted(numbers)


def test_modules_come_along_and_are_those_of_the_program_that_runs(
    env: StreamExecutionEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In sources, operators, elements and sinks; of two programs one after the other, each has its own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for factor in (2, 3):
        (tmp_path / "brought.py").write_text(BROUGHT.format(factor=factor, there=str(tmp_path / f"there-{factor}")))
        sys.modules.pop("brought", None)
        importlib.invalidate_caches()
        brought = importlib.import_module("brought")
        env.add_python_file(str(tmp_path / "brought.py"))
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / f"checkpoint-{factor}"))
        times = env.from_collection([1, 2, 3, 4], Types.LONG()).map(brought.Number).key_by(brought.is_even)
        totals = times.reduce(brought.added).map(brought.value_of, Types.LONG())
        totals.sink_to(brought.keep)
        totals.sink_to(CollectSink())
        job = env.execute_async("totals")
        assert sorted(job.collected()) == [factor * total for total in (1, 2, 4, 6)]
        kept = (tmp_path / f"there-{factor}").read_text().split()
        assert sorted(map(int, kept)) == [factor * total for total in (1, 2, 4, 6)]


BROUGHT = """
from dataclasses import dataclass

@dataclass
class Number:
    value: int

def is_even(number): return number.value % 2 == 0

def added(one, other): return Number(one.value + other.value)

def value_of(number): return {factor} * number.value

def keep(rows, batch):
    with open({there!r}, "a") as file:
        file.writelines(f"{{row[0]}}\\n" for row in rows.collect())
"""


def test_what_a_server_cannot_be_brought_is_refused(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").touch()
    with pytest.raises(ProgramError, match=r"set_python_requirements brings nothing .* with it on its PYTHONPATH"):
        env.set_python_requirements(str(tmp_path / "requirements.txt"))
    with pytest.raises(ProgramError, match="add_python_archive brings nothing"):
        env.add_python_archive(str(tmp_path / "requirements.txt"))
    with pytest.raises(ProgramError, match="set_python_executable brings nothing"):
        env.set_python_executable("python3")


def test_an_endless_job_is_stopped_by_its_client(env: StreamExecutionEnvironment, spark: SparkSession) -> None:
    """The collected elements are not taken, so the query waits for the program when it is stopped."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2000).load()
    env.from_data_frame(rows).map(lambda row: row["value"], Types.LONG()).sink_to(CollectSink())
    client = env.execute_async("endless")
    elements = client.collected()
    assert sorted(next(elements) for _ in range(2000)) == list(range(2000))
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_data_frames_are_sources_and_results(env: StreamExecutionEnvironment, spark: SparkSession) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    rows = spark.range(0, 40).selectExpr("id", "timestamp_millis(id) AS at", "id % 2 AS part")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")

    def totals():
        read = env.from_data_frame(rows, strategy, split_by=["part"], splits=[0, 1], order_by=["at"])
        totals = read.key_by("part").window(TENS).aggregate(count(), sum_("id"))
        return totals.map(lambda row: Row(part=row[0], total=row[3]), PART_TOTAL)

    collected = sorted((row.part, row.total) for row in totals().execute_and_collect())
    assert collected == [(0, 20), (0, 70), (0, 120), (0, 170), (1, 25), (1, 75), (1, 125), (1, 175)]
    with pytest.warns(UserWarning, match="before you start a query on this DataFrame"):
        frame = totals().to_data_frame()
    assert sorted((row.part, row.total) for row in frame.collect()) == collected


def test_what_cannot_be_is_refused_with_a_sentence(env: StreamExecutionEnvironment, spark: SparkSession) -> None:
    lock = threading.Lock()
    _, totals = tens_of(env)
    totals.map(lambda total: Row(total=total), TOTAL).sink_to(lambda rows, _: lock.acquire())
    with pytest.raises(ProgramError, match=r"a sink, which runs at the server of Spark Connect, cannot be sent.*lock"):
        env.execute("locked")
    here_alone = ModuleType("here_alone")
    exec("def answer(): return 1", here_alone.__dict__)
    sys.modules["here_alone"] = here_alone
    with pytest.raises(ProgramError, match="the Python of the Spark Connect server has no module 'here_alone'"):
        ask(spark, here_alone.answer)


def test_the_error_of_a_function_comes_to_the_program(env: StreamExecutionEnvironment) -> None:
    _, totals = tens_of(env)
    totals.map(lambda total: total // 0, Types.LONG()).print()
    with pytest.raises(UserFunctionError, match="ZeroDivisionError"):
        env.execute("failing")
