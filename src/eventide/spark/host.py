"""The stateful processor: hands the frames of a micro-batch to a stage's task, and its frames to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from eventide.runtime.frames import Frame
from eventide.runtime.stage import StageTask
from eventide.spark.frame_rows import frame_batches
from eventide.spark.programs import opened_stage
from eventide.spark.state_store import MapStateBackend


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
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803 - Spark passes it by this name
    ) -> Iterator[pd.DataFrame]:
        """Called by Spark once per subtask and micro-batch, with all rows for it."""
        mine: list[Frame] = []
        clock_ms = 0
        for chunk in rows:
            others = chunk[chunk["stage"] != self._number]
            if len(others):
                yield others[["stage", "subtask", "frame"]]
            own = chunk[chunk["stage"] == self._number]
            for subtask, frame, clock_ms in zip(own["subtask"], own["frame"], own["clock"], strict=True):  # noqa: B007
                mine.append(Frame.from_bytes(self._number, int(subtask), bytes(frame)))
        if mine:
            subtask = self._ids.index(int(key[0]))
            task = StageTask(
                opened_stage(self._payload, subtask), subtask, MapStateBackend(self._map_state), int(clock_ms)
            )
            for batch in frame_batches(task.run(mine), self._ids):
                yield batch.to_pandas()

    def close(self) -> None:
        """Called by Spark at the end of a task; functions stay open for the next micro-batch."""
