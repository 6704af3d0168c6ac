"""The program in the README runs as it stands."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.guide_pages import BLOCK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = Path(__file__).parents[2] / "README.md"
READINGS = [
    (0, "Oslo", 3.0, "2026-11-25 12:00:10"),
    (0, "Oslo", 5.0, "2026-11-25 12:00:40"),
    (0, "Rome", 18.0, "2026-11-25 12:00:20"),
    (0, "Oslo", 4.0, "2026-11-25 12:02:30"),
    (1, "Rome", 21.0, "2026-11-25 12:00:50"),
    (1, "Oslo", 1.0, "2026-11-25 12:01:10"),
]


@pytest.mark.spark
def test_the_program_gives_the_highest_temperature_of_each_city_in_the_minute_that_both_partitions_have_passed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark.sql.functions import to_timestamp

    rows = spark.createDataFrame(READINGS, "partition INT, city STRING, celsius DOUBLE, measured_at STRING")
    rows = rows.withColumn("measured_at", to_timestamp("measured_at"))
    rows.coalesce(1).write.parquet(str(tmp_path / "readings"))
    spark.sql(f"CREATE TABLE readings USING parquet LOCATION '{tmp_path / 'readings'}'")
    try:
        (program,) = [text for language, text in BLOCK.findall(README.read_text()) if language == "python"]
        main = types.ModuleType("__main__")
        main.spark = spark
        monkeypatch.setitem(sys.modules, "__main__", main)
        here = {
            "/data/checkpoints/temperatures": str(tmp_path / "checkpoint"),
            "env.execute(": "env.set_available_now().execute(",  # the table has no end: the job ends with what is there
        }
        for shown, run in here.items():
            assert program.count(shown) == 1
            program = program.replace(shown, run)
        exec(program, vars(main))
    finally:
        spark.sql("DROP TABLE readings")
    printed = capsys.readouterr().out
    assert re.findall(r"city='(\w+)', celsius=([\d.]+)", printed) == [("Oslo", "5.0"), ("Rome", "21.0")]
