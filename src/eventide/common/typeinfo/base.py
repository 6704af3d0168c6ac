"""Base class of types: each has its Arrow type, and converts values to it and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn

from eventide._absent import says_what_is_absent
from eventide.common.type_variables import T_co
from eventide.errors import DataError, TypeMismatch

if TYPE_CHECKING:
    import pyarrow as pa


@says_what_is_absent
class TypeInformation(ABC, Generic[T_co]):
    """The type of elements, or of a part of them: how they travel as Arrow columns. Made with `Types`.

    Types are values: they compare, hash, pickle, and read well as text. None is a value of every type, and travels as
    null.
    """

    is_pickled: ClassVar[bool] = False
    """Whether elements travel as opaque pickled bytes, because nothing better is known about them."""

    @property
    def has_exponents(self) -> bool:
        """Whether it contains a `BIG_DEC`, whose values differ in their digits; a column of numbers has one scale.

        1.1 and 1.10 are equal and look different. So a sender of these elements as columns has to send the Python
        values beside them, for receivers that take those.
        """
        return False

    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """Return the Arrow type of a column of such values."""

    @abstractmethod
    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Return the values as an Arrow array of `arrow_type`.

        Raises:
            TypeMismatch: A value does not fit the type; the error names the first one and where in the element it is.
        """

    @abstractmethod
    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        """Return the Python values of an array; the inverse of `to_arrow`.

        Raises:
            DataError: The array's type cannot be read as this type.
        """

    def keeps(self, values: Sequence[Any]) -> bool:
        """Say whether these values come back from Arrow unchanged.

        False if that is not certain: a `FLOAT` is rounded, a list becomes a tuple, a dict a row. Whether they fit at
        all is left to `to_arrow`.

        >>> from eventide.common import Types
        >>> Types.TUPLE([Types.LONG()]).keeps([(1,), None]), Types.TUPLE([Types.LONG()]).keeps([[1]])
        (True, False)
        """
        return False

    def as_declared(self, values: list[Any]) -> list[Any]:
        """Return the values as Python values of this type: the given list, if they are already.

        They equal the values that come back from Arrow, except that a `BIG_DEC` keeps its number of digits.

        Raises:
            TypeMismatch: A value does not fit the type.
        """
        array = self.to_arrow(values)
        return values if self.keeps(values) else self.from_arrow(array)

    def converted(self, values: list[Any]) -> list[Any]:
        """Return the values as Python values of this type, without checking those that have the type already.

        Whether those fit, such as whether a number is small enough, is checked when they are sent as columns.

        Raises:
            TypeMismatch: A value cannot be converted to the type.
        """
        return values if self.is_pickled or self.keeps(values) else self.as_declared(values)

    def __str__(self) -> str:
        return repr(self)


def one_array(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a chunked array as one array, and any other as it is."""
    import pyarrow as pa

    if not isinstance(array, pa.ChunkedArray):
        return array
    return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)


def read_as(type_info: TypeInformation, array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return an array in the Arrow type of a type, cast if necessary.

    Raises:
        DataError: It cannot be read as this type.
    """
    array, kind = one_array(array), type_info.arrow_type()
    try:
        return array if array.type == kind else array.cast(kind)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise DataError(f"a column of Arrow type {array.type} cannot be read as {type_info!r}: {error}") from error


def types_of(values: Iterable[Any]) -> set[type]:
    """Return the Python types of all values but None, to check all of them at once."""
    return set(map(type, values)) - {type(None)}


class DoesNotFit(ValueError):
    """Says why a value does not fit, if the value does not show it."""


def convert_each(values: Iterable[Any], expected: str, convert: Callable[[Any], Any]) -> list[Any]:
    """Convert every value but None.

    Raises:
        TypeMismatch: `convert` refused a value with a `ValueError`, a `TypeError` or an `OverflowError`.
    """
    converted = []
    for index, value in enumerate(values):
        try:
            converted.append(None if value is None else convert(value))
        except (ValueError, TypeError, OverflowError) as error:
            why = str(error) if isinstance(error, DoesNotFit) else ""
            raise TypeMismatch(index, value, expected, why=why) from error
    return converted


def refuse(value: object) -> NoReturn:
    """Raise the error with which a conversion of `convert_each` refuses a value."""
    raise TypeError(type(value))


def instance_of(*types: type) -> Callable[[Any], Any]:
    """Return a conversion that leaves objects of some classes unchanged, and refuses others."""
    return lambda value: value if isinstance(value, types) else refuse(value)
