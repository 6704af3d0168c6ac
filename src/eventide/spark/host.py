"""The stateful processor: hands the frames of a micro-batch to a stage's task, and its frames to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from eventide.runtime.frames import Frame
from eventide.runtime.stage import StageTask
from eventide.spark.frame_rows import FRAME_ROW, frame_of
from eventide.spark.programs import opened_stage
from eventide.spark.state_store import MapStateBackend
from eventide.spark.worker import settled


class StageProcessor(StatefulProcessor):
    """Runs one stage; its grouping key is the id of the subtask.

    Frames for other stages pass through as they are. The meaning of everything is in the runtime: this class only
    brings frames, state and the time of the micro-batch together.
    """

    def __init__(self, payload: bytes, number: int, ids: tuple[int, ...]) -> None:
        self._payload = payload
        self._number = number
        self._ids = ids
        self._map_state: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before the rows of a micro-batch."""
        self._map_state = handle.getMapState(f"stage {self._number}", *MapStateBackend.SCHEMAS)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803 - Spark passes it by this name
    ) -> Iterator[Row]:
        """Called by Spark once per subtask and micro-batch, with all rows for it."""
        return settled(self._run(self._ids.index(key[0]), rows))

    def _run(self, subtask: int, rows: Iterator[Row]) -> Iterator[Row]:
        mine: list[Frame] = []
        clock_ms = 0
        for row in rows:
            if row.stage == self._number:
                mine.append(frame_of(row))
                clock_ms = row.clock
            else:
                yield FRAME_ROW(row.stage, row.subtask, row.frame)
        if mine:
            task = StageTask(opened_stage(self._payload, subtask), subtask, MapStateBackend(self._map_state), clock_ms)
            for frame in task.run(mine):
                yield FRAME_ROW(frame.stage, self._ids[frame.subtask], frame.to_bytes())

    def close(self) -> None:
        """Called by Spark at the end of a task; functions stay open for the next micro-batch."""
