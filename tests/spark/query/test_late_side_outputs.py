"""Windows with a late side output on Spark: elements that cannot be late are aggregated before the shuffle."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.aggregates import count, sum_
from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag, StreamExecutionEnvironment
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import ScriptedSource, local_environment
from support.steps import in_steps

pytestmark = pytest.mark.spark

EVENT = Types.ROW_NAMED(["user", "at", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])
LATE = OutputTag("late", EVENT)
BATCHES = [[("ann", 1, 1), ("bob", 25, 1)], [("ann", 3, 1), ("bob", 14, 1), ("ann", 28, 2), ("ann", 31, 3)]]
TOO_LARGE = [[("ann", 41, 1 << 62)] * 3]
STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")


def results(env: StreamExecutionEnvironment, batches: list[list[tuple[str, int, int]]]) -> list[str]:
    script = [[("s", Row(user=user, at=at, value=value)) for user, at, value in batch] for batch in batches]
    events = env.from_source(ScriptedSource(["s"], script, EVENT), STRATEGY, "events", EVENT)
    tens = TumblingEventTimeWindows.of(10)
    sums = events.key_by("user").window(tens).side_output_late_data(LATE).aggregate(sum_("value"), count())
    found = sums.map(repr, Types.STRING())
    late = sums.get_side_output(LATE).map(lambda row: f"late {row!r}", Types.STRING())
    with found.union(late).execute_and_collect() as rows:
        return sorted(rows)


@in_steps
def test_late_elements_are_found_and_the_others_are_aggregated_before_the_shuffle(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    """The second job has a sum that is too large: the error says where it was computed."""
    expected = results(local_environment(), BATCHES)
    assert len([row for row in expected if row.startswith("late")]) == 2
    checkpoint = tmp_path / "first"
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    assert results(env, BATCHES) == expected
    assert 1 <= len(list((checkpoint / "eventide-reached").iterdir())) <= 3
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "second"))
    with pytest.raises(Exception, match="when its elements were sent on: sum_"):
        results(env, [*BATCHES, *TOO_LARGE])
