"""The keyed stream."""

from __future__ import annotations

from typing import Any

from eventide.common.time import Duration, Time
from eventide.datastream.data_stream._stream import DataStream
from eventide.datastream.data_stream._windowed import WindowedStream, time_windows
from eventide.datastream.window import (
    CountEvictor,
    CountTrigger,
    CountTumblingWindowAssigner,
    GlobalWindows,
    WindowAssigner,
)
from eventide.datastream.window._triggers import check_count


class KeyedStream(DataStream):
    """A stream dealt out by a key. Flink: ``KeyedStream``."""

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Put the elements of each key into windows."""
        return WindowedStream(self._env, self._transformation, window_assigner)

    def time_window(self, size: Duration | Time | int, slide: Duration | Time | int | None = None) -> WindowedStream:
        """Windows of ``size``, one every ``slide`` if there is one, of the environment's time characteristic.

        Flink's older name: ``window`` says which kind of time is meant.
        """
        return self.window(time_windows(self._env.get_stream_time_characteristic(), size, slide))

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of ``size`` elements of a key; with a ``slide``, the last ``size`` after every ``slide`` elements.

        They fire as Flink's own: a sliding one after its first ``slide`` elements already. (PyFlink's wait until they
        are full, as ``window(CountSlidingWindowAssigner.of(size, slide))`` does here too.)
        """
        if not slide:
            return self.window(CountTumblingWindowAssigner.of(size))
        check_count(size, "count window size")
        check_count(slide, "count window slide")
        windows = self.window(GlobalWindows.create())
        return windows.trigger(CountTrigger.of(slide)).evictor(CountEvictor.of(size))
