"""Base classes for user-defined watermark generators, and their outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic

from eventide.common.type_variables import T_contra
from eventide.common.watermark import Watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa

__all__ = [
    "BatchWatermarkOutput",
    "VectorizedWatermarkGenerator",
    "WatermarkGenerator",
    "WatermarkGeneratorContext",
    "WatermarkOutput",
]


class WatermarkOutput(ABC):
    """The output of a `WatermarkGenerator`, for watermarks and idleness. Flink: ``WatermarkOutput``."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark, which also marks the split as active; one that is not above the last is ignored."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Mark the split as idle, so that it does not hold the others back."""

    @abstractmethod
    def mark_active(self) -> None:
        """Mark the split as active again; emitting a watermark does so too."""


class BatchWatermarkOutput(WatermarkOutput):
    """The output of a `VectorizedWatermarkGenerator`: a watermark takes effect after the batch, or within it."""

    @abstractmethod
    def emit_watermarks(self, rows: pa.Array | np.ndarray, timestamps: pa.Array | np.ndarray) -> None:
        """Emit watermarks in the middle of the batch: each after the element of a row.

        Args:
            rows: Indices into the batch, ascending; an Arrow or NumPy array.
            timestamps: The watermark after each of them, in milliseconds; of the same length.
        """


class WatermarkGenerator(ABC, Generic[T_contra]):
    """Makes the watermarks of one split. Subclass it, and give the class to `WatermarkStrategy.for_generator`.

    There is one object for each split of a source, or each subtask of an operator. It is made again in every
    micro-batch, and then gets its learnt state: the attributes that have changed since it was made, which the
    checkpoint keeps, so that they must pickle. Its parameters are always those of the program. If it has the methods
    ``snapshot_state()``, which returns anything that pickles, and ``restore_state(state)``, these define its learnt
    state instead. Flink: ``WatermarkGenerator``, which keeps no state over a restart.

    Attributes:
        is_periodic: Whether it emits in `on_periodic_emit` only. This is enforced for a class that sets it, and lets
            eventide aggregate elements before the shuffle, as it does with built-in watermarks. It need not be set if
            the code of `on_event` does not use the output. Not in Flink.

    >>> class Bounded(WatermarkGenerator):
    ...     is_periodic = True
    ...     def __init__(self):
    ...         self.highest = None
    ...     def on_event(self, event, event_timestamp, output):
    ...         self.highest = event_timestamp if self.highest is None else max(self.highest, event_timestamp)
    ...     def on_periodic_emit(self, output):
    ...         if self.highest is not None:
    ...             output.emit_watermark(Watermark(self.highest - 3_500 - 1))
    """

    is_periodic: bool = False

    @abstractmethod
    def on_event(self, event: T_contra, event_timestamp: int, output: WatermarkOutput) -> None:
        """Process an element. A watermark that is emitted here takes effect right after it.

        Args:
            event: The element.
            event_timestamp: Its event time, in milliseconds since the epoch (UTC).
            output: The output for a watermark.
        """

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit a watermark, if there is one: called at the end of every micro-batch, even without data."""


class VectorizedWatermarkGenerator(WatermarkGenerator[T_contra]):
    """A generator that processes many elements at once. Not in Flink.

    Elements of a declared type come as Arrow batches, without a Python object for each; for others `on_event` is
    called. Both must have the same effect.

    Attributes:
        columns: The names of the fields that it uses; None for all. A class that names them gets only these fields, and
            only they are sent to its tasks after a source; fields that are not used elsewhere are not read. Without it,
            the code of the methods shows whether they use their argument for elements.

    >>> class Bounded(VectorizedWatermarkGenerator):
    ...     is_periodic = True
    ...     columns = ()
    ...     highest = -(2**63)
    ...     def on_batch(self, events, timestamps, output):
    ...         import pyarrow.compute as pc
    ...         self.highest = max(self.highest, pc.max(timestamps).as_py())
    ...     def on_event(self, event, event_timestamp, output):
    ...         self.highest = max(self.highest, event_timestamp)
    ...     def on_periodic_emit(self, output):
    ...         output.emit_watermark(Watermark(self.highest - 3_500 - 1))
    """

    columns: Sequence[str] | None = None

    @abstractmethod
    def on_batch(self, events: pa.RecordBatch | pa.Array, timestamps: pa.Array, output: BatchWatermarkOutput) -> None:
        """Process some elements of the split, in their order; the number of elements in a call is not defined.

        Args:
            events: A ``pyarrow.RecordBatch`` with a column for each field, or each of ``columns``; a ``pyarrow.Array``
                where the elements have no fields.
            timestamps: Their event times, a ``pyarrow.Int64Array`` of milliseconds since the epoch (UTC).
            output: The output for watermarks, after the batch or within it.
        """


class WatermarkGeneratorContext:
    """Context of a generator, which has the time. Flink: ``WatermarkGeneratorSupplier.Context``.

    One object serves all generators of a task, which may keep it.
    """

    def __init__(self, processing_time_ms: int = 0) -> None:
        self._processing_time_ms = processing_time_ms

    def get_current_processing_time(self) -> int:
        """Return the time of the micro-batch, in milliseconds since the epoch (UTC): the same if it is run again."""
        return self._processing_time_ms

    def __reduce__(self) -> tuple[object, ...]:
        return WatermarkGeneratorContext, ()  # the time is that of the process that takes it up again

    def set_current_processing_time(self, time_ms: int) -> None:
        """Move the clock; the runtime does so at every micro-batch."""
        self._processing_time_ms = time_ms
