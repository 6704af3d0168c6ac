"""A micro-batch that is too large fails at each start, is deferred by the command, and then is read bit by bit."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.common import Duration, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource, Source
from eventide.datastream.state import ValueStateDescriptor
from eventide.errors import UserFunctionError
from eventide.spark.checkpoint.files import CheckpointFiles
from eventide.testing import KafkaBroker
from support.steps import in_steps

pytestmark = pytest.mark.spark

NUMBER = Types.ROW_NAMED(["n"], [Types.LONG()])
COUNTED = Types.TUPLE([Types.LONG(), Types.LONG()])
FEW, MANY, KEYS = 20, 340, 7
LIMIT, ROOM = 40, 60


def own_source(place: Path) -> tuple[Callable[[int, int], None], Callable[[], Source]]:
    """A source of our own with two splits, whose latest position is in a file."""
    ends = place / "ends"

    class Numbers(Source):
        def splits(self):
            return ["even", "odd"]

        def latest_position(self, split):
            return int(ends.read_text()) // 2

        def read(self, split, start, end):
            for i in range(start, end):
                yield from [pa.record_batch({"n": [2 * i + (split == "odd")]})]

        def is_bounded(self):
            return False

        def get_produced_type(self):
            return NUMBER

    return lambda _, end: ends.write_text(str(end)) and None, Numbers


def files(place: Path, ending: str) -> tuple[Callable[[int, int], None], Callable[[], Source]]:
    """Files of 48 numbers."""
    folder = place / "files"
    folder.mkdir()

    def grow(begin: int, end: int) -> None:
        for first in range(begin, end, 48):
            numbers = [*range(first, min(first + 48, end))]
            hidden, path = folder / f".{first:05}", folder / f"{first:05}{ending}"
            if ending == ".parquet":
                pq.write_table(pa.table({"n": numbers}), hidden)
            else:
                hidden.write_text("".join(json.dumps({"n": n}) + "\n" for n in numbers))
            hidden.rename(path)

    kind = FileSource.parquet if ending == ".parquet" else FileSource.json_lines
    return grow, lambda: kind(str(folder), type_info=NUMBER).monitor_continuously(Duration.of_millis(100)).build()


def topic(broker: KafkaBroker) -> tuple[Callable[[int, int], None], Callable[[], Source]]:
    """A topic of three partitions."""
    from eventide.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
    from eventide.datastream.formats.json import JsonRowDeserializationSchema
    from support.kafka_topics import new_topic, produce

    name = new_topic(broker, partitions=3)

    def grow(begin: int, end: int) -> None:
        produce(broker, name, [{"value": json.dumps({"n": n}).encode(), "partition": n % 3} for n in range(begin, end)])

    def source() -> Source:
        return (
            KafkaSource.builder()
            .set_bootstrap_servers(broker.bootstrap_servers)
            .set_topics(name)
            .set_group_id(name)
            .set_starting_offsets(KafkaOffsetsInitializer.earliest())
            .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(NUMBER).build())
            .build()
        )

    return grow, source


class LittleRoom(KeyedProcessFunction):
    """Counts numbers by key, and fails in one subtask, late, if a micro-batch brings more than there is room for."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.is_first = runtime_context.get_index_of_this_subtask() == 0
        self.now, self.there = None, 0

    def process_element(self, value, ctx):
        now = ctx.timer_service().current_processing_time()
        self.now, self.there = now, self.there + 1 if now == self.now else 1
        if self.is_first and self.there > ROOM:
            time.sleep(2)  # the other subtask stores its state meanwhile
            raise MemoryError("no room")
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value.n, count


@pytest.mark.parametrize(
    "kind",
    [
        ".parquet",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ("own", ".jsonl")),
        pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.long]),
    ],
)
@in_steps
def test_what_a_micro_batch_was_too_large_for_comes_once_in_smaller_ones(
    kind: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    location = str(tmp_path / "checkpoint")
    if kind == "kafka":
        grow, source = topic(request.getfixturevalue("broker"))
    else:
        grow, source = own_source(tmp_path) if kind == "own" else files(tmp_path, kind)
    found: dict[int, list[Any]] = {}

    def run(limit: int | None = None) -> None:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
        env.get_checkpoint_config().set_checkpoint_storage_dir(location)
        if limit is not None:
            env.set_max_rows_per_batch(limit)
        numbers = env.from_source(source(), WatermarkStrategy.no_watermarks(), "numbers")
        counted = numbers.key_by(lambda row: row.n % KEYS, Types.LONG()).process(LittleRoom(), COUNTED).uid("counts")
        counted.sink_to(lambda rows, batch: found.__setitem__(batch, [tuple(row) for row in rows.collect()]))
        env.execute("numbers")

    grow(0, FEW)
    run()
    grow(FEW, MANY)
    for limit in (None, LIMIT):  # a lower limit does not help: the micro-batch is planned
        with pytest.raises(UserFunctionError, match="no room"):
            run(limit)

    files_of_job = CheckpointFiles(location)
    number = max(files_of_job.planned())
    assert any(files_of_job.state_of(number).values()), "a subtask has stored its state of what failed"
    said = CliRunner().invoke(app, ["checkpoint", location, "--defer"])
    assert (said.exit_code, said.stderr) == (0, "")
    assert not any(files_of_job.state_of(number).values())

    run(LIMIT)

    rows = [row for batch in found.values() for row in batch]
    assert sorted(n for n, _ in rows) == [*range(MANY)]
    counts = {key: sorted(count for n, count in rows if n % KEYS == key) for key in range(KEYS)}
    assert counts == {key: [*range(1, 1 + times)] for key, times in Counter(n % KEYS for n in range(MANY)).items()}
    assert found.get(number, []) == []
    assert max(map(len, found.values())) <= max(LIMIT, 48)
    again = CliRunner().invoke(app, ["checkpoint", location, "--defer"])
    assert (again.exit_code, "no unfinished micro-batch" in again.stderr) == (2, True)
