"""The output of a generator: its watermarks become reports, each at its point of the micro-batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from eventide.common.ms import MIN_MS
from eventide.common.watermark import Watermark
from eventide.common.watermark_generator import BatchWatermarkOutput
from eventide.errors import DataError
from eventide.runtime.exchange.frames import END_OF_BATCH, START_OF_BATCH, WatermarkReport


class Emitter(BatchWatermarkOutput):
    """The output of the generator of one channel, for one micro-batch.

    ``point`` is where the channel stands, ``points`` where each row of a batch does. If it ``is_periodic``, nothing may
    be said before the end of the micro-batch; if it ``is_muted``, what is said is not heard. A watermark that does not
    rise is ignored, but for this: that of a split says that the split is active, and that of an operator does not (as
    in Flink's output multiplexer, and in its ``TimestampsAndWatermarksOperator``). The source, or the clock, may have
    made the channel idle since the last micro-batch: so it is said in each, once, that the channel is active.
    """

    def __init__(self, channel: str, *, is_split: bool, watermark: int = MIN_MS, idle: bool = False) -> None:
        self._channel = channel
        self._is_split = is_split
        self.watermark = watermark
        self.idle = idle
        self.is_periodic = False
        self.is_muted = False
        self.point = START_OF_BATCH
        self.points: Any = None
        self.spoke = False
        self._may_be_idle = True
        self._reports: list[WatermarkReport] = []

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark at the current point."""
        if not isinstance(watermark, Watermark):
            raise DataError(f"emit_watermark takes a Watermark, such as Watermark(timestamp - 1), not {watermark!r}")
        if not self._may_speak():
            return
        rises = watermark.timestamp > self.watermark
        if rises:
            self.watermark = watermark.timestamp
        if rises or (self._is_split and self._may_be_idle):
            self._say(self.watermark)

    def emit_watermarks(self, rows: object, timestamps: object) -> None:
        """Emit watermarks after some rows of the current batch."""
        indices, times = np.asarray(rows, np.int64), np.asarray(timestamps, np.int64)
        ascending = len(indices) == 0 or (indices[0] >= 0 and bool((np.diff(indices) >= 0).all()))
        if len(indices) != len(times) or not ascending:
            raise DataError(
                "emit_watermarks takes the numbers of rows in ascending order, and a timestamp for each; it got "
                f"{len(indices)} rows and {len(times)} timestamps"
            )
        behind_all = self.point
        for row, time_ms in zip(indices.tolist(), times.tolist(), strict=True):
            if time_ms > self.watermark or self._may_be_idle:
                self.point = int(self.points[row])
                self.emit_watermark(Watermark(time_ms))
        self.point = behind_all

    def _may_speak(self) -> bool:
        if self.is_periodic and self.point < END_OF_BATCH:
            raise DataError(
                "the generator says that it is_periodic, but it emitted a watermark in on_event or on_batch; leave "
                "is_periodic out, or call emit_watermark in on_periodic_emit only"
            )
        return not self.is_muted

    def mark_idle(self) -> None:
        """Say at the current point that the channel is idle."""
        if self._may_speak() and not self.idle:
            self.idle = self._may_be_idle = True
            self._reports.append(WatermarkReport(self._channel, self.point, idle=True, spoke=self.spoke))

    def mark_active(self) -> None:
        """Say at the current point that the channel counts again."""
        if self._may_speak() and self._may_be_idle:
            self._say(None)

    def hear(self) -> None:
        """Take note that the channel has elements."""
        self.spoke = True

    def end_batch(self) -> None:
        """Report at the end of the micro-batch whether there were elements."""
        self._reports.append(WatermarkReport(self._channel, END_OF_BATCH, spoke=self.spoke))

    def reports(self) -> list[WatermarkReport]:
        """All that was said, in the order of points."""
        return self._reports

    def _say(self, watermark: int | None) -> None:
        woken = False if self._may_be_idle else None
        self.idle = self._may_be_idle = False
        self._reports.append(WatermarkReport(self._channel, self.point, watermark, woken, self.spoke))
