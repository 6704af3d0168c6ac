"""A job that has the faults which files ask for, and a dashboard.

python troubled_job.py CHECKPOINT FOLDER PORT

Each file of FOLDER/in is a split, and each of its lines an element. Files in FOLDER/faults are the faults. When the job
has ended, it is started again as soon as no file asks for a fault.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.common.restart_strategy import RestartStrategies
from eventide.datastream import KeyedProcessFunction, MapFunction, OutputTag, StreamExecutionEnvironment
from eventide.datastream.connectors import Source
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import TumblingEventTimeWindows

HANGS, SINK_SLOW, SINK_GONE, STORE_SLOW = "hangs", "sink is slow", "sink is gone", "store is slow"
GOOD, BAD, KEPT = "good", "bad", "kept"
"""Kinds of elements: those of windows, those that a function refuses, and those whose keys stay in state."""
SLOW_S = 3
RESTARTS = 4
ELEMENT = Types.ROW_NAMED(["key", "ts", "kind"], [Types.STRING(), Types.LONG(), Types.STRING()])
LETTERS = OutputTag("letters")


class Lines(Source):
    """The lines of files, as rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def splits(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def is_bounded(self) -> bool:
        return False

    def latest_position(self, split: str) -> int:
        return (self.folder / split).read_bytes().count(b"\n")

    def read(self, split: str, start: int, end: int) -> Iterator[Row]:
        for line in (self.folder / split).read_text().split("\n")[start:end]:
            yield Row(**json.loads(line))

    def get_produced_type(self) -> Any:
        return ELEMENT


class Check(MapFunction):
    """Refuses bad elements, and waits as long as it has to."""

    def __init__(self, faults: Path) -> None:
        self.faults = faults

    def map(self, value: Row) -> Row:
        while (self.faults / HANGS).exists():
            time.sleep(0.1)
        if value["kind"] == BAD:
            raise ValueError("a bad element")
        return value


class Keep(KeyedProcessFunction):
    """Forgets no key."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Row, ctx: Any) -> None:
        self.last.update(value["ts"])


def start(checkpoint: str, folder: Path, port: int) -> Any:
    """Start the job; return its client."""
    faults = folder / "faults"

    def write(rows: DataFrame, batch: int) -> None:
        if (faults / SINK_GONE).exists():
            raise ConnectionError("the database does not answer")
        rows.count()
        if (faults / SINK_SLOW).exists():
            time.sleep(SLOW_S)

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(RESTARTS, 100))
    env.set_dashboard(port)
    in_order = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner("ts")
    checked = (
        env.from_source(Lines(folder / "in"), in_order, "lines")
        .map(Check(faults), ELEMENT)
        .name("check")
        .side_output_dead_letters(LETTERS)
    )
    windows = (
        checked.filter(lambda e: e["kind"] == GOOD)
        .key_by(lambda e: e["key"], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(2)))
        .reduce(lambda a, b: a)
        .name("windows")
    )
    kept = checked.filter(lambda e: e["kind"] == KEPT).key_by(lambda e: e["key"], Types.STRING())
    windows.union(kept.process(Keep(), ELEMENT).name("keep")).sink_to(write).name("table")
    checked.get_side_output(LETTERS).sink_to(lambda rows, batch: None).name("letters")
    return env.execute_async("troubled")


def main(checkpoint: str, place: str, port: str) -> None:
    """Run the job until the process is killed."""
    folder = Path(place)
    while True:
        with suppress(Exception):  # the sink's error
            start(checkpoint, folder, int(port)).get_job_execution_result().result()
        while any((folder / "faults").iterdir()):
            time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
