"""`TimestampAssigner` and the other sources of an element's event time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from eventide.common.column_expression import ColumnExpression
from eventide.common.type_variables import T_contra
from eventide.common.typeinfo import TypeInformation
from eventide.common.watermark_generator import WatermarkGeneratorContext
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ExpressionAssigner",
    "FunctionAssigner",
    "RecordTimestampAssigner",
    "SuppliedAssigner",
    "TimestampAssigner",
    "VectorizedTimestampAssigner",
]


class TimestampAssigner(ABC, Generic[T_contra]):
    """Gives each element its event time. Subclass it, or give a function to the strategy instead.

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
                smallest 64-bit integer if it has none.
        """


class VectorizedTimestampAssigner(TimestampAssigner[T_contra]):
    """Gives a whole Arrow batch of elements their event times at once, if a plain column is not enough.

    Elements of a declared type that come as columns, from files or a DataFrame, are passed without a Python object for
    each. For elements in any other form `extract_timestamp` is called. Not in PyFlink.

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
        """Return the event times of the rows of a ``pyarrow.RecordBatch``; of an array, if elements have no fields.

        Returns:
            A ``pyarrow.Array`` of whole milliseconds since the epoch (UTC), or of timestamps, without nulls.
        """


class ExpressionAssigner(VectorizedTimestampAssigner[object]):
    """Takes timestamps from an expression of ``pyarrow.compute``: whole milliseconds, or dates with a time.

    A date with a time but no zone is in UTC; fractions of a millisecond are cut off, towards the past.

    Args:
        expression: The expression.
        element_type: The type of the elements; None while it is not known.

    Raises:
        ProgramError: The expression does not fit the elements, or has results of another type.
    """

    def __init__(self, expression: object, element_type: TypeInformation | None = None) -> None:
        self.expression = expression
        self._milliseconds = None if element_type is None else _in_milliseconds(expression, element_type)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpressionAssigner) and str(other.expression) == str(self.expression)

    def __hash__(self) -> int:
        return hash(str(self.expression))

    def of(self, element_type: TypeInformation) -> ExpressionAssigner:
        """Return the assigner for elements of a type."""
        return ExpressionAssigner(self.expression, element_type)

    def fields(self) -> tuple[str, ...]:
        """The names of the fields that the expression reads."""
        return self._bound().fields()

    def extract_timestamp(self, value: object, record_timestamp: int) -> int:
        """Return the timestamp of one element; None if a field is missing."""
        milliseconds: int = self._bound()(value)
        return milliseconds

    def extract_timestamps(self, batch: pa.RecordBatch | pa.Array) -> pa.Array:
        """Return the timestamps of some rows, in milliseconds."""
        return self._bound().of_rows(batch.to_struct_array())

    def extract_each(self, values: list[Any]) -> list[Any]:
        """Return the timestamps of some elements, in milliseconds; None if a field is missing."""
        return self._bound().of_elements(values)

    def _bound(self) -> ColumnExpression:
        if self._milliseconds is None:
            raise ProgramError(
                f"the element type is unknown, and it is needed for the timestamps from {self.expression}; give the "
                "strategy to a stream whose type is declared"
            )
        return self._milliseconds


def _in_milliseconds(expression: Any, element_type: TypeInformation) -> ColumnExpression:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = ColumnExpression(expression, element_type, "with_timestamp_assigner").arrow_type
    if pa.types.is_timestamp(kind):
        whole = expression if kind.unit in ("s", "ms") else pc.floor_temporal(expression, unit="millisecond")
        whole = whole.cast(pa.timestamp("ms", kind.tz)).cast(pa.int64())
    elif pa.types.is_integer(kind):
        whole = expression.cast(pa.int64())
    else:
        raise ProgramError(
            f"with_timestamp_assigner: {expression} gives {kind}; a timestamp is a whole number of milliseconds since "
            "the epoch, or a date with a time: cast the expression to pyarrow.int64() or pyarrow.timestamp('ms')"
        )
    return ColumnExpression(whole, element_type, "with_timestamp_assigner")


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
        name: Its name in plans and logs.
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
