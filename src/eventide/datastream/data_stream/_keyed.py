"""The keyed stream."""

from __future__ import annotations

from typing import Any

from eventide.datastream.data_stream._stream import DataStream
from eventide.datastream.data_stream._windowed import WindowedStream
from eventide.datastream.window import CountSlidingWindowAssigner, CountTumblingWindowAssigner, WindowAssigner


class KeyedStream(DataStream):
    """A stream dealt out by a key. Flink: ``KeyedStream``."""

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Put the elements of each key into windows."""
        return WindowedStream(self._env, self._transformation, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of ``size`` elements of a key; with a ``slide``, the last ``size`` after every ``slide`` elements.

        They fire as Flink's own: a sliding one after its first ``slide`` elements already.
        """
        if slide:
            return self.window(CountSlidingWindowAssigner.of(size, slide))
        return self.window(CountTumblingWindowAssigner.of(size))
