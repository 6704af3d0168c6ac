"""A window that does not fire, and why: one partition of three says nothing. Runs without Spark, in a moment.

With `--svg FILE` what is printed is drawn, too: docs/images/why.svg is made so.
"""

import argparse
import re
import time
from pathlib import Path

from rich.console import Console

from eventide.aggregates import count
from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import ScriptedSource, local_environment

ORDER = Types.ROW_NAMED(["shop", "at"], [Types.STRING(), Types.LONG()])
MINUTE = 60_000


def orders(now_ms):
    """An hour of orders up to now, a minute in each micro-batch; those of one partition lag behind, one has none."""
    start = now_ms - 60 * MINUTE
    for minute in range(60):
        yield [
            (partition, Row(shop=f"shop-{second % 7}", at=start + minute * MINUTE + second * 1_000 - lag))
            for second in range(60)
            for partition, lag in (("orders-0", 0), ("orders-1", (second * 1_700) % 2_500))
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--svg", type=Path, help="draw what is printed into this file")
    arguments = parser.parse_args()

    env = local_environment()
    topic = ScriptedSource(
        ["orders-0", "orders-1", "orders-2"], list(orders(time.time_ns() // 1_000_000)), ORDER, bounded=False
    )
    in_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(3)).with_timestamp_assigner("at")
    totals = (
        env.from_source(topic, in_time, "orders")
        .key_by("shop")
        .window(TumblingEventTimeWindows.of(Time.minutes(5)))
        .aggregate(count().alias("orders"))
        .name("totals")
    )
    totals.print()  # nothing
    answer = env.execute_async("orders by shop").why()

    console = Console(record=arguments.svg is not None, width=116 if arguments.svg else None, highlight=False)
    console.print(answer)
    if arguments.svg:
        drawn = console.export_svg(title="eventide why /data/jobs/orders")
        arguments.svg.write_text(re.sub(r"@font-face \{.*?\}\n", "", drawn, flags=re.DOTALL))  # nothing from elsewhere


if __name__ == "__main__":
    main()
