"""Totals by day in Berlin, over the weekend on which clocks are set forward; and the part of a day so far.

A meter reports a kilowatt hour each hour, in UTC, as all event time is. The windows are days as people in Berlin have
them: Sunday has 23 hours, so 23 readings. Windows of 24 hours would be an hour off from then on.

The second stream asks how much has been used since the day began (in UTC, here), every six hours. Its windows all begin
with the day, and grow.
"""

import datetime

from eventide.aggregates import sum_
from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.window import CumulatingEventTimeWindows, TumblingCalendarWindows

READING = Types.ROW_NAMED(["meter", "at", "kwh"], [Types.STRING(), Types.LONG(), Types.LONG()])
BEGIN = datetime.datetime(2024, 3, 29, 23, tzinfo=datetime.UTC)
"""Midnight in Berlin."""


def readings(hours: int) -> list[Row]:
    """A reading for each hour."""
    times = (BEGIN + datetime.timedelta(hours=hour) for hour in range(hours))
    return [Row(meter="cellar", at=int(time.timestamp()) * 1000, kwh=1) for time in times]


def told(time_ms: int) -> str:
    """A time in words."""
    return f"{datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC):%A %H:%M} UTC"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    meters = env.from_collection(readings(47), READING).assign_timestamps_and_watermarks(by_time).key_by("meter")

    days = meters.window(TumblingCalendarWindows.of("day", zone="Europe/Berlin")).aggregate(sum_("kwh").alias("total"))
    days.map(lambda day: f"from {told(day.window.start)}: {day['total']} kWh", Types.STRING()).print("day")

    growing = CumulatingEventTimeWindows.of(Time.days(1), Time.hours(6))
    so_far = meters.window(growing).aggregate(sum_("kwh").alias("total"))
    so_far.map(lambda part: f"up to {told(part.window.end)}: {part['total']} kWh", Types.STRING()).print("so far")

    env.execute("days of a calendar")


if __name__ == "__main__":
    main()
