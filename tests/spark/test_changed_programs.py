"""Some of the changes in `tests/unit/local/test_changed_programs.py`, on Spark, where state is stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.functions import RuntimeContext
from eventide.datastream.state import ListStateDescriptor, StateDescriptor, ValueStateDescriptor
from eventide.errors import StateError
from eventide.testing import ScriptedSource
from support.steps import in_steps

pytestmark = pytest.mark.spark

KIND = Types.ROW_NAMED(["user", "shop", "amount"], [Types.STRING(), Types.STRING(), Types.LONG()])
ROWS = [Row(user="a", shop="x", amount=1), Row(user="b", shop="x", amount=2), Row(user="a", shop="y", amount=3)]
LIST = ListStateDescriptor("seen", Types.LONG())
VALUE = ValueStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY())


class Seen(KeyedProcessFunction):
    """Give the amounts of a key that were seen before each element, as far as the state is a list."""

    def __init__(self, descriptor: StateDescriptor[Any]) -> None:
        self.descriptor = descriptor
        self.is_list = isinstance(descriptor, ListStateDescriptor)

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = self.descriptor.bind(runtime_context)

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        before = list(self.seen.get()) if self.is_list else self.seen.value()
        yield f"{ctx.get_current_key()} {before}"
        if self.is_list:
            self.seen.add(value["amount"])


def results(checkpoint: Path, files: int, key: str = "user", descriptor: StateDescriptor[Any] = LIST) -> list[str]:
    """What a run gives that reads so many micro-batches, each of all rows."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    source = ScriptedSource(["s"], [[("s", row) for row in ROWS]] * files, KIND, bounded=False)
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows")
    seen = rows.key_by(key).process(Seen(descriptor), Types.STRING()).uid("seen")
    return sorted(seen.execute_and_collect())


@in_steps
def test_a_change_that_does_not_fit_is_refused_and_the_former_program_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    assert results(checkpoint, 1) == ["a [1]", "a []", "b []"]
    with pytest.raises(StateError, match="operator 'keyed process': key fields was 'user' and is now 'shop'"):
        results(checkpoint, 2, key="shop")
    with pytest.raises(StateError, match="the state 'seen' was stored as list state and is now value state"):
        results(checkpoint, 2, descriptor=VALUE)
    assert results(checkpoint, 2) == ["a [1, 3, 1]", "a [1, 3]", "b [2]"]
