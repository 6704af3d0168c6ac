"""A DataFrame is measured in stretches side by side, and says what its rows say in one piece."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.advisor import advise
from eventide.errors import DataError, ProgramError

pytestmark = pytest.mark.spark

ROWS = 20_000


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows whose order is in a column, and nowhere else."""
    rng = np.random.default_rng(4)
    arrived = 1_600_000_000_000 + np.arange(ROWS) * 500
    device = rng.integers(0, 5, ROWS)
    table = pa.table(
        {
            "device": pa.array([f"d{number}" for number in device]),
            "ts": pa.array(arrived - rng.exponential(9_000, ROWS).astype(np.int64) - (device == 3) * 3_600_000),
            "arrived": pa.array(arrived).cast(pa.timestamp("ms", "UTC")),
            "place": pa.array(np.arange(ROWS)),
        }
    ).take(pa.array(rng.permutation(ROWS)))
    path = tmp_path_factory.mktemp("readings") / "readings.parquet"
    pq.write_table(table, path)
    return path


@pytest.fixture(autouse=True)
def three_partitions(spark) -> Iterator[None]:
    """More than one, and not two hundred."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.parametrize("order_by", ["arrived", "place"])
def test_a_data_frame_says_what_the_same_files_say(order_by: str, spark, readings: Path) -> None:
    frame = spark.read.parquet(str(readings)).repartition(3)
    by_spark = advise(frame, time="ts", split_by="device", order_by=order_by).to_json()
    by_arrow = advise(readings, time="ts", split_by="device", order_by=order_by).to_json()
    # How splits are told to wait for each other is no business of a DataFrame's.
    only_files = {"drift_ms", "code"}
    assert {k: v for k, v in by_spark.items() if k not in only_files} == {
        k: v for k, v in by_arrow.items() if k not in only_files
    }
    assert (by_spark["rows"], by_spark["splits"], by_spark["slowest_split"]["name"]) == (ROWS, 5, "d3")


def test_what_cannot_be_measured_is_said(spark, readings: Path) -> None:
    frame = spark.read.parquet(str(readings))
    with pytest.raises(ProgramError, match="the rows of a DataFrame have no order"):
        advise(frame, time="ts")
    with pytest.raises(ProgramError, match="has no column 'time'; it has device, ts, arrived, place"):
        advise(frame, time="time", order_by="place")
    with pytest.raises(ProgramError, match="a streaming DataFrame has no end"):
        advise(spark.readStream.format("rate").load(), time="timestamp", order_by="value")
    with pytest.raises(DataError, match="'ts' look like seconds"):
        advise(frame.selectExpr("ts div 1000 as ts", "place"), time="ts", order_by="place")
