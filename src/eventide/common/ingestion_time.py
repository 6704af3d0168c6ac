"""Ingestion time: an element has the time at which it came in, and watermarks follow by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventide.common.watermark import Watermark
from eventide.common.watermark_generator import (
    BatchWatermarkOutput,
    VectorizedWatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
)
from eventide.common.watermark_strategy import VectorizedTimestampAssigner, WatermarkSpec, WatermarkStrategy

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["IngestionTime", "ingestion_time"]


class IngestionTime(VectorizedWatermarkGenerator[object], VectorizedTimestampAssigner[object]):
    """Gives elements the time of their micro-batch. What comes later has a later time, or the same."""

    is_periodic = True

    def __init__(self, context: WatermarkGeneratorContext) -> None:
        self._context = context

    def extract_timestamp(self, value: object, record_timestamp: int) -> int:
        return self._context.get_current_processing_time()

    def extract_timestamps(self, batch: pa.RecordBatch | pa.Array) -> pa.Array:
        import pyarrow as pa

        return pa.repeat(pa.scalar(self._context.get_current_processing_time(), pa.int64()), len(batch))

    def on_event(self, event: object, event_timestamp: int, output: WatermarkOutput) -> None:
        """Do nothing: the clock decides."""

    def on_batch(self, events: pa.RecordBatch | pa.Array, timestamps: pa.Array, output: BatchWatermarkOutput) -> None:
        """Do nothing: the clock decides."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit the millisecond before the micro-batch."""
        output.emit_watermark(Watermark(self._context.get_current_processing_time() - 1))


def ingestion_time() -> WatermarkSpec[object]:
    """Return the strategy of ingestion time, for which the time is that of micro-batches.

    A micro-batch that is run again after a failure has the time that it had.

    >>> print(ingestion_time().describe())
    watermarks of IngestionTime, timestamps from IngestionTime
    """
    strategy = WatermarkStrategy.for_generator(IngestionTime)
    # Each generator is an assigner too, whose clock is that of its task, and takes the place of this one.
    return strategy.with_timestamp_assigner(IngestionTime(WatermarkGeneratorContext()))
