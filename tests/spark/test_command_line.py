"""The command line on what Spark itself writes."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.cli.demo import view_of
from eventide.cli.doctor import Health, tried
from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import OutputTag, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, NumberSequenceSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.spark.query.data_source import CAN_LIMIT

pytestmark = pytest.mark.spark


def run_job(spark: SparkSession, place: Path) -> None:
    """Two sources, of which the first meets the second stage alone; windows after windows; late data in files."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place / "checkpoint"))
    rows = spark.readStream.schema("id LONG, at LONG").option("maxFilesPerTrigger", 1).json(str(place / "in"))
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2)).with_timestamp_assigner("at")
    own_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    late = OutputTag("late", Types.LONG())

    given = env.from_data_frame(rows, bounded).map(lambda row: row.id, Types.LONG())
    numbers = env.from_source(NumberSequenceSource(0, 39, splits=2), own_time, "numbers")
    tens = numbers.key_by(lambda n: n % 2, Types.LONG()).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    sums = tens.reduce(lambda a, b: a + b).name("sums").uid("sums/of tens")
    both = sums.union(given).key_by(lambda n: n % 3, Types.LONG())
    windows = both.window(TumblingEventTimeWindows.of(Time.milliseconds(20))).side_output_late_data(late)
    twenties = windows.reduce(lambda a, b: a + b).name("twenties").uid("sums")
    twenties.map(lambda n: (n,), Types.ROW_NAMED(["sum"], [Types.LONG()])).sink_to(
        FormatSink("parquet", {"path": str(place / "out")})
    )
    twenties.get_side_output(late).print("late")
    env.execute("two levels")


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file and folder, hidden ones too, with what is in it and when that was written.

    Folders without a time for PySpark 4.1, whose reader of state changes that.
    """
    return {
        str(path.relative_to(folder)): (
            path.read_bytes() if path.is_file() else b"",
            path.stat().st_mtime_ns if path.is_file() or CAN_LIMIT else 0,
        )
        for path in [folder, *folder.rglob("*")]
    }


def checkpoint_document(place: Path, *options: str) -> dict[str, Any]:
    said = CliRunner().invoke(app, ["checkpoint", str(place), "--json", *options])
    assert said.exit_code == 0, said.stderr
    return json.loads(said.stdout)


def test_a_checkpoint_is_read_and_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 1, "at": 25}\n')
    run_job(spark, tmp_path)
    (tmp_path / "in" / "2.json").write_text('{"id": 2, "at": 70}\n{"id": 3, "at": 1}\n')
    run_job(spark, tmp_path)
    place = tmp_path / "checkpoint"
    before = contents(place)

    found = checkpoint_document(place, "--state")

    assert contents(place) == before
    last = max(int(file.name) for file in (place / "commits").iterdir() if file.name.isdigit())
    assert (found["committed"]["number"], found["unfinished"]) == (last, None)
    assert found["created_ms"] <= found["committed"]["planned_ms"] <= found["committed"]["committed_ms"]
    assert [(one["name"], one["kind"], one["parts"]) for one in found["sources"]] == [
        (
            "numbers",
            "NumberSequenceSource",
            [{"name": name, "committed": 20, "planned": None, "ended": True} for name in ("0", "1")],
        ),
        (
            "data frame",
            "DataFrame",
            [{"name": "logOffset", "committed": 1, "planned": None, "ended": False}],
        ),
    ]
    assert [(one["stage"], one["name"], one["id"]) for one in found["operators"]] == [
        (1, "sums", "sums/of tens"),
        (2, "twenties", "sums"),
    ]
    assert found["directories"] == [str(tmp_path / "out")]
    assert found["listing"]["files"] == sum((place / name).is_file() for name in before)
    shared, of_an_operator = {}, {}
    for one in found["state"]:
        (shared if one["operator"] is None else of_an_operator)[one["stage"], one["operator"]] = one["rows"]
        assert one["bytes"] > one["rows"]
    assert shared == {(1, None): 4, (2, None): 4}  # what is small, and the program, of two subtasks
    assert set(of_an_operator) == {(2, "sums")}  # the first stage has come to its end, the second waits for files

    moved = place.rename(tmp_path / "moved")
    said = CliRunner().invoke(app, ["why", str(moved)])
    assert said.exit_code == 2
    assert (
        f"has been moved or copied: Spark writes whole paths into it, and looks for its state in file:{place}"
        in said.stderr
    )
    moved.rename(place)

    for file in (place / "state" / "0").glob("*/*.*"):
        file.unlink()
    said = CliRunner().invoke(app, ["checkpoint", str(place), "--state"])
    assert (said.exit_code, said.stdout) == (2, "")
    assert "eventide: an executor cannot find what the job has stored: there is no file:" in said.stderr
    assert f"{place}/state/0/" in said.stderr

    # The same of a job that died in a micro-batch: it is the last one planned, and is not committed.
    for file in (place / "commits").glob(f"*{last}*"):
        file.unlink()
    found = checkpoint_document(place)
    assert (found["committed"]["number"], found["unfinished"]["number"]) == (last - 1, last)


def test_the_doctor_runs_a_job(spark: SparkSession) -> None:
    found = tried()
    assert found.state is Health.FINE, found.found


@pytest.mark.long
def test_the_demo_loses_nothing_and_leaves_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path / "demo"), "--json"])
    assert said.exit_code == 0, said.stderr
    story = json.loads(said.stdout)
    ours, theirs = story["eventide"], story["spark"]
    for side in (ours, theirs):
        assert side["counted"] + side["waiting"] + side["late"] + side["lost"] == side["readings"]
    assert ours["lost"] == 0 < ours["hours_too_low"] <= ours["late"]
    assert theirs["lost"] > 1_000 > theirs["says_dropped"]
    assert story["lagging"] == "north"
    assert ours["watermark_ms"] < theirs["watermark_ms"] - 2 * 3_600_000
    page = StringIO()
    Console(file=page, width=100).print(view_of(story))
    shown = "\n".join(line.rstrip() for line in page.getvalue().splitlines())
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "command-line.md").read_text()
    assert shown[: shown.index("Spark has one watermark")].strip() in guide
    asked = CliRunner().invoke(app, ["why", story["checkpoint"]])
    assert asked.exit_code == 1
    assert asked.stdout.splitlines()[0] in guide
    found = checkpoint_document(Path(story["checkpoint"]))
    assert (found["committed"]["number"], found["unfinished"]) == (story["micro_batches"] - 1, None)
    assert [operator["name"] for operator in found["operators"]] == ["temperatures"]
