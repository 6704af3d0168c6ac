"""A small job, run to see whether jobs run here."""

from __future__ import annotations

import tempfile
import time

from eventide.cli.health import Finding, State
from eventide.cli.session import started_spark

_EXPECTED = [20, 25]


def tried() -> Finding:
    """Sum ten numbers in windows on Spark: that needs a session, Python workers, Arrow, and RocksDB for the state."""
    from eventide.api.windows import TumblingEventTimeWindows
    from eventide.common import Time, Types, WatermarkStrategy
    from eventide.connectors.sources import NumberSequenceSource
    from eventide.datastream import StreamExecutionEnvironment

    started = time.monotonic()
    try:
        started_spark()
        with tempfile.TemporaryDirectory(prefix="eventide-doctor-") as folder:
            env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
            env.get_checkpoint_config().set_checkpoint_storage_dir(folder)
            strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
            sums = (
                env.from_source(NumberSequenceSource(0, 9), strategy, "numbers")
                .key_by(lambda number: number % 2, Types.LONG())
                .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
                .reduce(lambda a, b: a + b)
            )
            found = sorted(sums.execute_and_collect())
    except Exception as error:  # whatever is wrong with Spark here is what was asked for
        return Finding("a job on Spark", f"failed: {error}", State.WRONG, "the log above may say more")
    if found != _EXPECTED:
        return Finding("a job on Spark", f"gave {found}, not {_EXPECTED}", State.WRONG, "please report this as a fault")
    return Finding("a job on Spark", f"gave what it should, after {time.monotonic() - started:.0f} s")
