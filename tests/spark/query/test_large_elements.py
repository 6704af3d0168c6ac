"""Elements of 100 MB go through a job, and one key may have all rows."""

from __future__ import annotations

from typing import Any

import pytest

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import NumberSequenceSource
from eventide.datastream.state import ValueStateDescriptor
from support.steps import in_steps

pytestmark = [pytest.mark.spark, pytest.mark.long]

HUGE, ROWS = 100 << 20, 200_000


def large(number: int) -> bytes:
    return bytes([number]) * HUGE


class Sizes(KeyedProcessFunction):
    """Keeps the last element, and gives the length of the one before with that of this one."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PRIMITIVE_ARRAY(Types.BYTE())))

    def process_element(self, value: bytes, ctx: Any) -> Any:
        before = self.last.value()
        self.last.update(value)
        yield (0 if before is None else len(before)), len(value), value[0]


class Counts(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        if self.count.value() % ROWS == 0:
            yield self.count.value()


@in_steps
def test_elements_of_100_mb_go_through_a_shuffle_into_state(env: StreamExecutionEnvironment) -> None:
    env.set_max_rows_per_batch(1)
    numbers = env.from_source(NumberSequenceSource(1, 2), WatermarkStrategy.no_watermarks(), "numbers")
    sizes = numbers.map(large, Types.PRIMITIVE_ARRAY(Types.BYTE())).key_by(lambda _: 0, Types.LONG()).process(Sizes())
    assert list(sizes.execute_and_collect()) == [(0, HUGE, 1), (HUGE, HUGE, 2)]


def test_a_key_may_have_all_rows(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_source(NumberSequenceSource(1, 2 * ROWS), WatermarkStrategy.no_watermarks(), "numbers")
    counts = numbers.key_by(lambda _: "all", Types.STRING()).process(Counts(), Types.LONG())
    assert list(counts.execute_and_collect()) == [ROWS, 2 * ROWS]
