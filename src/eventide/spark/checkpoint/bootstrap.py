"""State from a DataFrame, made where its rows are dealt out to: by key, in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.keys import hashes_of, subtasks_of_hashes
from eventide.runtime.pickles import classes_of, dumps_program, loads_program
from eventide.savepoint import StateWriter
from eventide.savepoint.bootstrapping import Bootstrap
from eventide.savepoint.rows import TASKS, Small, elements_of
from eventide.spark.session.python_files import ship

_DEALT = pa.schema([("subtask", pa.int32()), ("place", pa.int64()), ("elements", pa.binary())])
_BATCHES_OF_TASK = 1 << 32


def bootstrap_on_spark(
    data_frame: DataFrame, bootstrap: Bootstrap, writer: StateWriter, place: str, parallelism: int | None
) -> list[Small]:
    """Write the state that a function makes of the rows of a DataFrame, and return what is small of it.

    Args:
        data_frame: the rows, which become elements.
        bootstrap: the function, and how keys are found.
        writer: writes the savepoint.
        place: the folder of its files, which no other has.
        parallelism: how many tasks share the work; by default as many as Spark's shuffles have.

    Raises:
        ProgramError: if the function cannot be sent to the workers.
    """
    ship(data_frame.sparkSession)
    count = parallelism or int(data_frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    what = f"the function that makes the state of {bootstrap.operator!r}"
    payload = dumps_program(bootstrap, what, classes=classes_of([(bootstrap, what)]))
    dealt = data_frame.mapInArrow(_dealing(payload, writer.max_parallelism, count), _sql(_DEALT))
    together = dealt.repartition(count, "subtask").sortWithinPartitions("subtask", "place")
    rows = together.mapInArrow(_writing(payload, writer, place, count), _sql(TASKS)).collect()
    return [(row.operator, row.subtask, row.name, bytes(row.content)) for row in rows]


def _sql(schema: pa.Schema) -> str:
    names = {pa.int32(): "INT", pa.int64(): "BIGINT", pa.string(): "STRING", pa.binary(): "BINARY"}
    return ", ".join(f"{field.name} {names[field.type]}" for field in schema)


def _dealing(payload: bytes, max_parallelism: int, count: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function that deals the rows of a task out by key, in their order."""

    def deal(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bootstrap: Bootstrap = loads_program(payload).part
        context = TaskContext.get()
        first = (0 if context is None else context.partitionId()) * _BATCHES_OF_TASK
        for number, batch in enumerate(batches):
            keyed = bootstrap.with_keys(elements_of(batch))
            if keyed:
                subtasks = subtasks_of_hashes(hashes_of([key for _, key in keyed]), max_parallelism, count)
                of_each = [(s, [keyed[i] for i in np.flatnonzero(subtasks == s)]) for s in np.unique(subtasks).tolist()]
                yield pa.RecordBatch.from_pylist(
                    [{"subtask": s, "place": first + number, "elements": dumps(own)} for s, own in of_each], _DEALT
                )

    return deal


def _writing(payload: bytes, writer: StateWriter, place: str, count: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function that makes and writes the state of a task's subtasks: all of each of them, in its order."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = chain.from_iterable(
            zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in batches
        )
        for subtask, parts in groupby(rows, itemgetter(0)):
            bootstrap: Bootstrap = loads_program(payload).part
            keyed = chain.from_iterable(loads(content) for _, _, content in parts)
            values = bootstrap.run(keyed, writer.max_parallelism, subtask, count)
            small = writer.write(f"{place}/{subtask}", subtask, values)
            if not small:
                continue
            columns = [list(column) for column in zip(*small, strict=True)]
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, field.type) for column, field in zip(columns, TASKS, strict=True)], schema=TASKS
            )

    return write
