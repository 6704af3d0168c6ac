"""A job on a cluster without a checkpoint location, which prints its first result, and what becomes of it.

python temporary_checkpoint.py
"""

from __future__ import annotations

import warnings

from session import environment_on_cluster

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream.connectors import NumberSequenceSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import StateError


def main() -> None:
    """Sum up numbers for as long as it takes."""
    env = environment_on_cluster().set_parallelism(2).set_max_rows_per_batch(1_000)
    numbers = env.from_source(NumberSequenceSource(0, 10**9), WatermarkStrategy.no_watermarks(), "numbers")
    by_number = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, before: number)
    sums = (
        numbers.assign_timestamps_and_watermarks(by_number)
        .key_by(lambda number: number % 4, Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda a, b: a + b)
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        results = sums.execute_and_collect()
    print("warned of:", *(one.message for one in told), flush=True)
    try:
        for count, _ in enumerate(results):
            if count == 0:
                print("has begun", flush=True)
    except StateError as error:
        print("failed:", error, flush=True)


if __name__ == "__main__":
    main()
