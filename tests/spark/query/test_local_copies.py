"""State is read from copies on the executor's disk, and is right whatever becomes of them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import NumberSequenceSource
from eventide.datastream.state import ValueStateDescriptor

pytestmark = pytest.mark.spark

_KEYS = 20_000
_BATCHES = 4


class Counts(KeyedProcessFunction):
    """Counts the elements of each key; it damages the copies in one micro-batch, and deletes them in another."""

    def __init__(self, found: Path) -> None:
        self._found = found

    def open(self, runtime_context: Any) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        self._count.update((self._count.value() or 0) + 1)
        if value % _KEYS == 0:
            copies = [*Path(os.environ["SPARK_LOCAL_DIRS"].partition(",")[0], "eventide-state").glob("*")]
            (self._found / str(value // _KEYS)).write_text(str(len(copies)))
            for copy in copies:
                with suppress(FileNotFoundError):  # another job has just deleted it
                    content = copy.read_bytes()
                    if value // _KEYS == 1:
                        copy.write_bytes(content[:-100] + bytes(100))
                    elif value // _KEYS == 2:
                        copy.unlink()
        if self._count.value() == _BATCHES:
            yield value % _KEYS


def test_state_is_right_whatever_becomes_of_its_copies(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    found = tmp_path / "found"
    found.mkdir()
    env.set_max_rows_per_batch(_KEYS)
    numbers = env.from_source(
        NumberSequenceSource(0, _BATCHES * _KEYS - 1), WatermarkStrategy.no_watermarks(), "numbers"
    )
    counted = numbers.key_by(lambda n: n % _KEYS, Types.LONG()).process(Counts(found), Types.LONG())
    assert sorted(counted.execute_and_collect()) == [*range(_KEYS)]
    copies = [int((found / str(batch)).read_text()) for batch in range(1, _BATCHES)]
    assert all(copies), copies
