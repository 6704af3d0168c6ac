"""How many cars passed each bridge in each minute: tumbling windows over events that are out of order.

What to see: the car of 12:00:50 arrives after the one of 12:01:02 and is still counted in its own minute, because
events may be out of order by 15 seconds. The minute of 12:01 at the north bridge comes out when the input ends.
"""

from datetime import UTC, datetime

from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.window import TumblingEventTimeWindows

PASSED = [
    ("north", "12:00:07", 2),
    ("south", "12:00:21", 1),
    ("north", "12:01:02", 4),
    ("north", "12:00:50", 1),
    ("south", "12:01:30", 3),
    ("south", "12:01:45", 2),
    ("north", "12:01:55", 1),
]


def milliseconds(clock: str) -> int:
    """A time of day on the first of May as milliseconds since the epoch."""
    return int(datetime.fromisoformat(f"2026-05-01T{clock}").replace(tzinfo=UTC).timestamp() * 1000)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(15)).with_timestamp_assigner(
        lambda passed, _: milliseconds(passed[1])
    )
    cars = env.from_collection(PASSED, Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()]))
    per_minute = (
        cars.assign_timestamps_and_watermarks(strategy)
        .key_by(lambda passed: passed[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .reduce(lambda a, b: (a[0], a[1], a[2] + b[2]))
        .map(lambda total: f"{total[0]} bridge, minute of {total[1][:5]}: {total[2]} cars", Types.STRING())
    )
    per_minute.print()
    env.execute("cars per minute")


if __name__ == "__main__":
    main()
