"""`TimestampAssigner` and the other sources of an element's event time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from eventide.common.type_variables import T_contra
from eventide.common.watermark_generator import WatermarkGeneratorContext
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FunctionAssigner",
    "RecordTimestampAssigner",
    "SuppliedAssigner",
    "TimestampAssigner",
    "VectorizedTimestampAssigner",
]


class TimestampAssigner(ABC, Generic[T_contra]):
    """Gives each element its event time. Subclass it, or hand a function to the strategy instead.

    >>> class PaymentTime(TimestampAssigner):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value["paid_at_ms"]
    >>> PaymentTime().extract_timestamp({"paid_at_ms": 1_700_000_000_000}, 0)
    1700000000000
    """

    @abstractmethod
    def extract_timestamp(self, value: T_contra, record_timestamp: int) -> int:
        """Return the event time of an element, in milliseconds since the epoch (UTC).

        Called once for each element, in the order of its split.

        Args:
            value: The element.
            record_timestamp: The timestamp that the element has so far, from its source or an earlier assigner; the
                smallest 64-bit integer when it has none.
        """


class VectorizedTimestampAssigner(TimestampAssigner[T_contra]):
    """Gives a whole Arrow batch of elements their event times at once, where a plain column is not enough.

    Elements whose type is declared and that come as columns, from files or a DataFrame, are handed over without making
    a Python object for each. For elements in any other form `extract_timestamp` is called. Not in PyFlink.

    >>> class Later(VectorizedTimestampAssigner):
    ...     def extract_timestamps(self, batch):
    ...         import pyarrow.compute as pc
    ...         return pc.add(batch.column("sent"), batch.column("took"))
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value["sent"] + value["took"]
    >>> import pyarrow as pa
    >>> Later().extract_timestamps(pa.record_batch({"sent": [1_000], "took": [5]})).to_pylist()
    [1005]
    """

    @abstractmethod
    def extract_timestamps(self, batch: pa.RecordBatch | pa.Array) -> pa.Array:
        """Return the event times of the rows of a ``pyarrow.RecordBatch``; of an array, where elements have no fields.

        Returns:
            A ``pyarrow.Array`` of whole milliseconds since the epoch (UTC), or of timestamps, without nulls.
        """


@dataclass(frozen=True, slots=True)
class FunctionAssigner(TimestampAssigner[T_contra]):
    """A function ``(element, record_timestamp) -> milliseconds`` as a `TimestampAssigner`."""

    function: Callable[[T_contra, int], int]

    def extract_timestamp(self, value: T_contra, record_timestamp: int) -> int:
        return self.function(value, record_timestamp)


class RecordTimestampAssigner(TimestampAssigner[object]):
    """Keeps the timestamp that an element has from its source. Flink: ``RecordTimestampAssigner``.

    >>> RecordTimestampAssigner().extract_timestamp("an order", 1_000)
    1000
    """

    def extract_timestamp(self, value: object, record_timestamp: int) -> int:
        return record_timestamp


@dataclass(frozen=True, slots=True)
class SuppliedAssigner:
    """Timestamps of an assigner that a supplier makes, one for each split. Flink: ``TimestampAssignerSupplier``.

    Args:
        supplier: A function of the context that returns a `TimestampAssigner`, or a function
            ``(element, record_timestamp) -> milliseconds``.
        name: How plans and logs name it.
    """

    supplier: Callable[[WatermarkGeneratorContext], Any]
    name: str

    def create(self, context: WatermarkGeneratorContext) -> TimestampAssigner:
        """Return a new assigner.

        Raises:
            ProgramError: The supplier returned something else.
        """
        made = self.supplier(context)
        if isinstance(made, TimestampAssigner):
            return made
        if callable(made) and not isinstance(made, type):
            return FunctionAssigner(made)
        raise ProgramError(
            f"timestamp assigner: {self.name} returned {made!r}; return a TimestampAssigner or a function "
            "(element, record_timestamp) -> int"
        )
