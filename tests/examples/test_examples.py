"""Every example prints what it says, on one session of Spark; those in the shape of PyFlink's without Spark, too."""

from __future__ import annotations

import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.datastream import StreamExecutionEnvironment
from eventide.errors import ProgramError, TemporaryCheckpointWarning
from eventide.testing import local_environment
from support.one_job import add_programs

EXAMPLES = Path(__file__).parents[2] / "examples"
Run = Callable[..., str]

PRINTED = {
    "tumbling_windows.py": """\
north bridge, minute of 12:00: 3 cars
south bridge, minute of 12:00: 1 cars
north bridge, minute of 12:01: 5 cars
south bridge, minute of 12:01: 5 cars
""",
    "sessions_with_late_data.py": """\
Ada: 2 click(s) from second 0 to 45
Ada: 3 click(s) from second 0 to 50
Bob: 2 click(s) from second 70 to 105
Cleo: 1 click(s) from second 80 to 110
Cleo: 3 click(s) from second 160 to 205
too late> ('Bob', 1)
counted: {'numRecordsIn': 10, 'numRecordsOut': 6, 'numLateRecordsToSideOutput': 1}
""",
    "data_frame_in_and_out.py": """\
root
 |-- station: string (nullable = true)
 |-- window: struct (nullable = true)
 |    |-- start: timestamp (nullable = true)
 |    |-- end: timestamp (nullable = true)
 |-- highest: double (nullable = true)
 |-- readings: integer (nullable = true)

+-------+------------------------------------------+-------+--------+
|station|window                                    |highest|readings|
+-------+------------------------------------------+-------+--------+
|north  |{2026-05-01 08:00:00, 2026-05-01 09:00:00}|9.5    |2       |
|north  |{2026-05-01 09:00:00, 2026-05-01 10:00:00}|11.0   |1       |
|south  |{2026-05-01 09:00:00, 2026-05-01 10:00:00}|16.0   |2       |
+-------+------------------------------------------+-------+--------+

""",
}

LINES = {
    "tumbling_time_window.py": [
        ("left", 0, 10, 2),
        ("right", 10, 20, 1),
        ("left", 10, 20, 2),
        ("right", 20, 30, 1),
        ("left", 20, 30, 1),
    ],
    "sliding_time_window.py": [
        ("pump-2", 0, 6, 15),
        ("pump-1", 0, 6, 40),
        ("pump-2", 3, 9, 15),
        ("pump-1", 3, 9, 55),
        ("pump-2", 6, 12, 20),
        ("pump-1", 6, 12, 15),
        ("pump-2", 9, 15, 20),
    ],
    "session_with_gap_window.py": [
        ("robin", 5, 10, 1),
        ("wren", 1, 14, 3),
        ("robin", 11, 16, 1),
        ("wren", 20, 25, 1),
    ],
    "session_with_dynamic_gap_window.py": [("blue", 2, 15, 2), ("red", 1, 21, 2), ("blue", 30, 31, 1)],
    "tumbling_count_window.py": [("brown", 182), ("white", 166)],
}


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run an example as a script, and return what it printed."""
    before = spark.conf.get("spark.sql.shuffle.partitions")

    def run_example(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TemporaryCheckpointWarning)
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    yield run_example
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.spark
@pytest.mark.parametrize("name", PRINTED)
def test_the_example_prints_exactly_this(run: Run, name: str) -> None:
    assert run(name) == PRINTED[name]


@pytest.mark.parametrize("name", LINES)
def test_the_program_in_the_shape_of_pyflinks_prints_exactly_this(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(StreamExecutionEnvironment, "get_execution_environment", staticmethod(local_environment))
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / "pyflink" / name), run_name="__main__")
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "Printing result to stdout. Use --output to specify output path."
    assert lines == [str(line) for line in LINES[name]]


@pytest.mark.spark
def test_they_print_the_same_on_spark_as_one_job(
    env: StreamExecutionEnvironment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["all of them"])
    programs = (partial(runpy.run_path, str(EXAMPLES / "pyflink" / name), run_name="__main__") for name in LINES)
    add_programs(env, programs, monkeypatch)
    capsys.readouterr()
    env.set_parallelism(1).execute()
    printed = capsys.readouterr().out.splitlines()
    expected = {name: [str(line) for line in lines] for name, lines in LINES.items()}
    assert {name: [line for line in printed if line in lines] for name, lines in expected.items()} == expected
    assert len(printed) == sum(map(len, LINES.values()))


@pytest.mark.spark
def test_with_output_the_lines_are_in_files_and_a_second_job_does_not_touch_them(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    name = "tumbling_time_window.py"
    with pytest.warns(UserWarning, match="files are named part-"):
        assert run(f"pyflink/{name}", "--output", str(out)) == ""
    assert [row.value for row in spark.read.text(str(out)).collect()] == [str(line) for line in LINES[name]]

    files = sorted(out.iterdir())
    with (
        pytest.warns(UserWarning, match="files are named part-"),
        pytest.raises(ProgramError, match="holds the output of another job"),
    ):
        run(f"pyflink/{name}", "--output", str(out))
    assert sorted(out.iterdir()) == files


def test_every_example_is_among_these_tests() -> None:
    there = {path.name for folder in (EXAMPLES, EXAMPLES / "pyflink") for path in folder.glob("*.py")}
    assert there == {*PRINTED, *LINES}
