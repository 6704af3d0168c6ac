"""A streaming DataFrame in, windows of event time over it, and a streaming DataFrame out.

Two weather stations write JSON files; north lags an hour behind south. Each station is a split with a watermark of its
own, so the readings of the slower one are not late, though all of south's are read first.

What to see: a table with the highest temperature of each hour and station, in typed columns; `window` is a struct of
two timestamps. It ends at ten, where the slower station stands: the hours after that are still open. The query at the
end is plain Spark: `writeStream` with `availableNow`, into Parquet files.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows

READINGS = {
    "south": [("09:10", 14.5), ("09:50", 16.0), ("10:20", 18.5), ("11:05", 19.0)],
    "north": [("08:15", 9.0), ("08:40", 9.5), ("09:30", 11.0), ("10:00", 12.5)],
}
WARMEST = Types.ROW_NAMED(
    ["station", "window", "highest", "readings"], [Types.STRING(), Types.TIME_WINDOW(), Types.DOUBLE(), Types.INT()]
)


class Warmest(ProcessWindowFunction[Row, Row, str, TimeWindow]):
    """The highest temperature of a window, and of how many readings it is the highest."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Row]
    ) -> Iterator[Row]:
        temperatures = [reading.temperature for reading in elements]
        yield Row(station=key, window=context.window(), highest=max(temperatures), readings=len(temperatures))


def write_readings(directory: Path) -> None:
    """A file for each station, that of south first."""
    directory.mkdir()
    for station, readings in READINGS.items():
        lines = [
            json.dumps({"station": station, "measured_at": f"2026-05-01T{at}:00Z", "temperature": temperature})
            for at, temperature in readings
        ]
        (directory / f"{station}.json").write_text("\n".join(lines))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        write_readings(here / "readings")

        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        spark = SparkSession.active()
        spark.conf.set("spark.sql.shuffle.partitions", "2")  # as many as subtasks
        readings = (
            spark.readStream.schema("station STRING, measured_at TIMESTAMP, temperature DOUBLE")
            .option("maxFilesPerTrigger", 1)
            .json(str(here / "readings"))
        )
        warmest = (
            env.from_data_frame(
                readings,
                WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("measured_at"),
                split_by=["station"],
                splits=["north", "south"],
            )
            .key_by(lambda reading: reading.station, Types.STRING())
            .window(TumblingEventTimeWindows.of(Time.hours(1)))
            .process(Warmest(), WARMEST)
            .to_data_frame()
        )
        query = (
            warmest.writeStream.format("parquet")
            .option("checkpointLocation", str(here / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(here / "warmest"))
        )
        query.awaitTermination()

        table = spark.read.parquet(str(here / "warmest"))
        table.printSchema()
        table.orderBy("window.start", "station").show(truncate=False)


if __name__ == "__main__":
    main()
