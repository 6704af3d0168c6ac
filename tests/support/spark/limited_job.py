"""A job whose Python workers have little memory: by Spark's limit, or in a control group of the kernel's.

python limited_job.py element CHECKPOINT GROUP        one element needs more than the group GROUP may have
python limited_job.py micro-batch CHECKPOINT [ROWS]   all rows of a micro-batch are too many, ROWS at once are not

It prints a line of JSON: the sum of the results, the error, and how often the job was started again.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eventide.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from eventide.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import NumberSequenceSource
from eventide.errors import EventideError

NUMBERS, LARGE = 40, 23
ROWS, ROW_BYTES, LIMIT = 400, 1 << 20, "1500m"
RESTARTS = 4


class InGroup(KeyedProcessFunction):
    """Moves its process into a control group; one element then needs 2 GB."""

    def __init__(self, group: str) -> None:
        self._group = Path(group)

    def open(self, runtime_context: Any) -> None:
        (self._group / "cgroup.procs").write_text(str(os.getpid()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        yield value + (0 if value != LARGE else len(bytearray(2 << 30)))


class Lengths(KeyedProcessFunction):
    """The lengths of elements."""

    def process_element(self, value: bytes, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        yield len(value)


def large(number: int) -> bytes:
    """An element of a megabyte."""
    return bytes([number % 256]) * ROW_BYTES


def program(kind: str, env: StreamExecutionEnvironment, argument: str | None) -> DataStream:
    """The results of the job."""
    if kind == "element":
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(RESTARTS, 0))
        numbers = env.from_source(NumberSequenceSource(1, NUMBERS), WatermarkStrategy.no_watermarks(), "numbers")
        return (
            numbers.key_by(lambda n: n % 2, Types.LONG()).process(InGroup(argument or ""), Types.LONG()).name("needs")
        )
    if argument is not None:
        env.set_max_rows_per_batch(int(argument))
    numbers = env.from_source(NumberSequenceSource(1, ROWS), WatermarkStrategy.no_watermarks(), "numbers")
    elements = numbers.map(large, Types.PRIMITIVE_ARRAY(Types.BYTE()))
    return elements.key_by(lambda _: "all", Types.STRING()).process(Lengths(), Types.LONG()).uid("lengths")


def main(kind: str, checkpoint: str, argument: str | None = None) -> None:
    """Run the job to its end."""
    settings = {} if kind == "element" else {"spark.executor.pyspark.memory": LIMIT}
    config = Configuration.from_dict({"spark.master": "local[2]"} | settings)
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    found: dict[int, int] = {}
    results = program(kind, env, argument)
    results.sink_to(lambda rows, batch: found.__setitem__(batch, sum(row[0] for row in rows.collect())))
    client = env.execute_async("with little memory")
    error = None
    try:
        client.get_job_execution_result().result()
    except EventideError as failed:
        error = f"{type(failed).__name__}: {failed}"
    print(json.dumps({"sum": sum(found.values()), "error": error, "restarts": len(client.get_restarts())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
