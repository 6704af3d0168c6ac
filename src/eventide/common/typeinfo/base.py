"""Base class of types: each has its Arrow type, and converts values and columns to it, and values back."""

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
        """Whether the type contains a `BIG_DEC`, whose values differ in their digits; a column has one scale.

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


def brought_to(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast an array to an Arrow type, unless that loses part of a value.

    The fields of a struct are found by their names, or by their places if it has none of the names.

    Raises:
        pa.ArrowInvalid: A value does not fit, or a struct does not have the fields.
        pa.ArrowNotImplementedError: There is no cast between the two types.
    """
    import pyarrow as pa

    if array.type == kind:
        return array
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        fields = [brought_to(part, field.type) for part, field in zip(_parts_of(array, kind), kind, strict=True)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind) and (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        values = brought_to(array.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(_offsets_of(array), values, type=kind, mask=array.is_null())
    if pa.types.is_map(kind) and pa.types.is_map(array.type):
        entries = array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))
        keys, items = entries.flatten().flatten()
        parts = brought_to(keys, kind.key_type), brought_to(items, kind.item_type)
        return pa.MapArray.from_arrays(_offsets_of(entries), *parts, type=kind, mask=array.is_null())
    cast = array.cast(kind)
    if (lost := _lost(array, cast)) is not None:
        raise pa.ArrowInvalid(f"{lost!r} does not fit")
    return cast


def _parts_of(array: pa.StructArray, kind: pa.StructType) -> list[pa.Array]:
    """The fields of an array of structs, in the order of a type."""
    import pyarrow as pa

    names, found = [field.name for field in kind], [field.name for field in array.type]
    parts: list[pa.Array] = array.flatten()
    columns = dict(zip(found, parts, strict=True))
    if len(columns) == len(found) and columns.keys() >= {*names}:
        return [columns[name] for name in names]
    if len(names) == len(found) and columns.keys().isdisjoint(names):
        return parts
    raise pa.ArrowInvalid(f"it has the fields {found}, not {names}")


def _offsets_of(lists: pa.Array) -> pa.Array:
    """The start of each list among the values of all lists; a list that is None counts as empty."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def _lost(before: pa.Array, after: pa.Array) -> object:
    """A value that a cast silently changed; None if there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    number = pa.types.is_integer(before.type) or pa.types.is_floating(before.type)
    if pa.types.is_float32(after.type) and pa.types.is_floating(before.type):
        kept = pc.equal(pc.is_inf(after), pc.is_inf(before))
    elif (pa.types.is_boolean(after.type) and number) or (
        pa.types.is_date(after.type) and pa.types.is_timestamp(before.type)
    ):
        kept = pc.equal(after.cast(before.type), before)
    elif pa.types.is_time(after.type) and pa.types.is_timestamp(before.type):
        kept = pc.equal(pc.floor_temporal(before, unit="day"), pa.scalar(0, pa.int64()).cast(before.type))
    else:
        return None
    place = pc.index(kept, False).as_py()
    return None if place < 0 else before[place].as_py()
