"""The stateful processor: what Spark holds of a stage of operators.

Spark also makes it in a process of its own beside the driver, at each start of a query, only to ask which state it has.
So what runs the stage is imported where there are rows or a timer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

from eventide.spark.query.shared_files import Runs

if TYPE_CHECKING:
    from eventide.spark.query.subtask_run import SubtaskRun


class StageProcessor(StatefulProcessor):
    """Runs one stage; its grouping key is the id of the subtask.

    Args:
        payload: the stage, as part of a program.
        targets: the operators in it; frames for others pass through.
        ids: those of subtasks, by their number.
        has_timers: whether a Spark timer has it run without data too.
        savepoint: the location and digest of the savepoint that the job began with: a subtask without state takes its
            share of it.
        runs: which run planned a micro-batch; None if that is not known.
    """

    # As objects: Spark would have the JVM parse them as text, four times in every task.
    STATE = (StructType().add("name", StringType()), StructType().add("content", BinaryType()))

    def __init__(
        self,
        payload: bytes,
        targets: frozenset[int],
        ids: tuple[int, ...],
        has_timers: bool,
        savepoint: tuple[str, str] | None = None,
        runs: Runs | None = None,
    ) -> None:
        self._payload = payload
        self._targets = targets
        self._ids = ids
        self._has_timers = has_timers
        self._savepoint = savepoint
        self._runs = runs
        self._handle: object = None
        self._map_state: object = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before the rows of a micro-batch."""
        self._handle = handle
        self._map_state = handle.getMapState("state", *self.STATE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: object,
        rows: Iterator[Row],
        timerValues: object,  # noqa: N803 - Spark passes it by this name
    ) -> Iterator[Row]:
        """Called by Spark once per subtask and micro-batch, with all rows for it."""
        return self._run_of(key).on_rows(rows)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: object,
        timerValues: Any,  # noqa: N803 - Spark passes it by this name
        expiredTimerInfo: object,  # noqa: N803 - Spark passes it by this name
    ) -> Iterator[Row]:
        """Called by Spark, after all rows, for a subtask whose time has come and that had no rows."""
        return self._run_of(key).on_timer(timerValues.getCurrentProcessingTimeInMs())

    def close(self) -> None:
        """Called by Spark at the end of a task; functions stay open for the next micro-batch."""

    def _run_of(self, key: Any) -> SubtaskRun:
        from eventide.spark.query.subtask_run import SubtaskRun

        return SubtaskRun(
            self._ids.index(key[0]),
            self._payload,
            self._targets,
            self._ids,
            self._has_timers,
            self._savepoint,
            self._runs,
            self._handle,
            self._map_state,
        )
