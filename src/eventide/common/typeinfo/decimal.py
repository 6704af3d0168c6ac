"""Decimal numbers with a fixed number of digits, as databases and Spark have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from eventide.common.typeinfo.base import TypeInformation, convert_each, one_array, types_of
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_DIGITS = 38
"""How many digits a decimal of Spark's, and one of Arrow's of 128 bits, has at most."""


@dataclass(frozen=True)
class DecimalTypeInfo(TypeInformation[Decimal]):
    """A `Decimal` of `precision` digits, `scale` of them behind the point: Spark's ``DecimalType``. Not in PyFlink.

    A value with fewer digits after the point is filled up with zeros, and one that would have to be rounded does not
    fit.

    Raises:
        ProgramError: There are no numbers of `precision` digits.

    >>> DecimalTypeInfo(10, 2).as_declared([Decimal("1.5"), None])
    [Decimal('1.50'), None]
    """

    precision: int
    scale: int

    def __post_init__(self) -> None:
        sizes = (self.precision, self.scale)
        if not all(type(size) is int for size in sizes) or not 0 <= self.scale <= self.precision <= MOST_DIGITS:
            message = f"BIG_DEC: expected 1 to {MOST_DIGITS} digits, 0 to all of them after the point, got {sizes}"
            raise ProgramError(message)
        if self.precision == 0:
            message = "BIG_DEC: expected at least one digit, got none"
            raise ProgramError(message)

    def arrow_type(self) -> pa.DataType:
        """Return Arrow's decimal of 128 bits."""
        import pyarrow as pa

        return pa.decimal128(self.precision, self.scale)

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Return the values as an Arrow array; see `TypeInformation.to_arrow`."""
        if not types_of(values) <= {Decimal}:
            convert_each(values, repr(self), _decimal)
        try:
            return self._encode(values)
        except (ValueError, TypeError, OverflowError):
            convert_each(values, repr(self), lambda value: self._encode([value]))
            raise

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        """Return the values, each with `scale` digits after the point."""
        array = one_array(array)
        try:
            return list(array.cast(self.arrow_type()).to_pylist())
        except (ValueError, TypeError, NotImplementedError) as error:
            message = f"a column of Arrow type {array.type} cannot be read as {self!r}: {error}"
            raise DataError(message) from error

    def keeps(self, values: Sequence[Any]) -> bool:
        """Say whether these values come back as they are; see `TypeInformation.keeps`."""
        exponent = -self.scale
        return types_of(values) <= {Decimal} and all(v is None or v.as_tuple().exponent == exponent for v in values)

    def _encode(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        return pa.array(values, self.arrow_type())

    def __repr__(self) -> str:
        return f"BIG_DEC({self.precision}, {self.scale})"


def _decimal(value: object) -> Decimal:
    if not isinstance(value, Decimal):
        raise TypeError(type(value))
    return value
