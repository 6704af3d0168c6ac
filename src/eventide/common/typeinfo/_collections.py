"""Types with any number of equal parts: lists, arrays and maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from eventide.common.type_variables import K, T, V
from eventide.common.typeinfo.base import TypeInformation, convert_each, one_array, types_of
from eventide.errors import DataError, ProgramError, TypeMismatch

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ListTypeInfo(TypeInformation[list[T]]):
    """A list, or one of Flink's arrays, whose elements have one type.

    Attributes:
        element_type: The type of the elements.
        name: LIST, or PRIMITIVE_ARRAY, BASIC_ARRAY or OBJECT_ARRAY, which are the same to Python; an array takes
            tuples too.
    """

    element_type: TypeInformation[T]
    name: str = "LIST"

    def __post_init__(self) -> None:
        _check_part(self.name, self.element_type)

    def arrow_type(self) -> pa.DataType:
        """Return an Arrow list."""
        import pyarrow as pa

        return pa.list_(self.element_type.arrow_type())

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Return the lists as an Arrow array; see `TypeInformation.to_arrow`."""
        import pyarrow as pa

        self._check(values)
        elements = _joined(values)
        try:
            column = self.element_type.to_arrow(elements)
        except TypeMismatch as error:
            raise _within(error, values, "[{}]") from error
        return pa.ListArray.from_arrays(_offsets(values), column, type=self.arrow_type())

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        """Return Python lists."""
        array = one_array(array)
        try:
            elements, lengths = array.flatten(), array.value_lengths().to_pylist()
        except AttributeError as error:
            message = f"a column of Arrow type {array.type} cannot be read as {self!r}"
            raise DataError(message) from error
        return _split(self.element_type.from_arrow(elements), lengths)

    @property
    def has_exponents(self) -> bool:
        """Whether a BIG_DEC is in it; see `TypeInformation.has_exponents`."""
        return self.element_type.has_exponents

    def keeps(self, values: Sequence[Any]) -> bool:
        """Say whether these lists come back as they are; see `TypeInformation.keeps`."""
        return types_of(values) <= {list} and self.element_type.keeps(_joined(values))

    def as_declared(self, values: list[Any]) -> list[Any]:
        """Return the lists with elements of their type; see `TypeInformation.as_declared`."""
        self._check(values)
        elements = _joined(values)
        try:
            declared = self.element_type.as_declared(elements)
        except TypeMismatch as error:
            raise _within(error, values, "[{}]") from error
        return values if declared is elements and types_of(values) <= {list} else _split(declared, _lengths(values))

    def _check(self, values: Sequence[Any]) -> None:
        accepted = (list,) if self.name == "LIST" else (list, tuple)
        if not types_of(values) <= set(accepted):
            convert_each(values, repr(self), lambda value: _instance(value, accepted))

    def __repr__(self) -> str:
        return f"{self.name}({self.element_type!r})"


@dataclass(frozen=True, init=False)
class MapTypeInfo(TypeInformation[dict[K, V]]):
    """A dict whose keys have one type, and whose values have one. A key is never None."""

    key_type: TypeInformation[K]
    value_type: TypeInformation[V]

    def __init__(self, key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]) -> None:
        for part in (key_type_info, value_type_info):
            _check_part("MAP", part)
        object.__setattr__(self, "key_type", key_type_info)
        object.__setattr__(self, "value_type", value_type_info)

    def arrow_type(self) -> pa.DataType:
        """Return an Arrow map."""
        import pyarrow as pa

        return pa.map_(self.key_type.arrow_type(), self.value_type.arrow_type())

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Return the dicts as an Arrow array; see `TypeInformation.to_arrow`."""
        import pyarrow as pa

        keys, items = self._parts(values)
        try:
            key_column = self.key_type.to_arrow(keys)
        except TypeMismatch as error:
            raise _within(error, values, "key {}") from error
        try:
            item_column = self.value_type.to_arrow(items)
        except TypeMismatch as error:
            raise _within(error, values, "value {}") from error
        return pa.MapArray.from_arrays(_offsets(values), key_column, item_column).cast(self.arrow_type())

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        """Return Python dicts."""
        import pyarrow as pa

        array = one_array(array)
        if not pa.types.is_map(array.type):
            message = f"a column of Arrow type {array.type} cannot be read as {self!r}"
            raise DataError(message)
        entry = pa.struct([pa.field("key", array.type.key_type, nullable=False), array.type.item_field])
        entries = array.cast(pa.list_(entry))
        keys, items = entries.flatten().flatten()
        pairs = zip(self.key_type.from_arrow(keys), self.value_type.from_arrow(items), strict=True)
        split = _split(list(pairs), entries.value_lengths().to_pylist())
        return [None if value is None else dict(value) for value in split]

    @property
    def has_exponents(self) -> bool:
        """Whether a BIG_DEC is in it; see `TypeInformation.has_exponents`."""
        return self.key_type.has_exponents or self.value_type.has_exponents

    def keeps(self, values: Sequence[Any]) -> bool:
        """Say whether these dicts come back as they are; see `TypeInformation.keeps`."""
        return (
            types_of(values) <= {dict}
            and self.key_type.keeps(_joined(values))
            and self.value_type.keeps(_items_of(values))
        )

    def as_declared(self, values: list[Any]) -> list[Any]:
        """Return the dicts with keys and values of their types; see `TypeInformation.as_declared`."""
        keys, items = self._parts(values)
        declared_keys = _declared(self.key_type, keys, values, "key {}")
        declared_items = _declared(self.value_type, items, values, "value {}")
        if declared_keys is keys and declared_items is items and types_of(values) <= {dict}:
            return values
        pairs = list(zip(declared_keys, declared_items, strict=True))
        return [None if value is None else dict(value) for value in _split(pairs, _lengths(values))]

    def _parts(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """All keys and all values, none of the keys None."""
        if not types_of(values) <= {dict}:
            convert_each(values, repr(self), lambda value: _instance(value, (dict,)))
        keys = _joined(values)
        if None in keys:
            raise _within(TypeMismatch(keys.index(None), None, repr(self.key_type)), values, "key {}")
        return keys, _items_of(values)

    def __repr__(self) -> str:
        return f"MAP({self.key_type!r}, {self.value_type!r})"


def _check_part(what: str, part: TypeInformation) -> None:
    """Raise a `ProgramError` where `part` is not a type."""
    if not isinstance(part, TypeInformation):
        message = f"{what}: expected a TypeInformation such as Types.STRING(), got {part!r}"
        raise ProgramError(message)


def _joined(values: Sequence[Any]) -> list[Any]:
    """Return the items of all lists, or the keys of all dicts, as one list."""
    return list(chain.from_iterable(value for value in values if value is not None))


def _items_of(values: Sequence[Any]) -> list[Any]:
    return list(chain.from_iterable(value.values() for value in values if value is not None))


def _lengths(values: Sequence[Any]) -> list[int | None]:
    return [None if value is None else len(value) for value in values]


def _declared(kind: TypeInformation, parts: list[Any], values: Sequence[Any], place: str) -> list[Any]:
    try:
        return kind.as_declared(parts)
    except TypeMismatch as error:
        raise _within(error, values, place) from error


def _instance(value: Any, types: tuple[type, ...]) -> Any:
    if not isinstance(value, types):
        raise TypeError(type(value))
    return value


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Return where each value's elements start, null for None, and where the last one's end."""
    import pyarrow as pa

    ends = accumulate((0 if value is None else len(value) for value in values), initial=0)
    *starts, end = ends
    return pa.array([None if v is None else s for v, s in zip(values, starts, strict=True)] + [end], pa.int32())


def _split(elements: list[Any], lengths: list[int | None]) -> list[Any]:
    """Cut a list into lists of the given lengths; None stays None."""
    ends = list(accumulate((length or 0 for length in lengths), initial=0))
    return [
        None if length is None else elements[start : start + length]
        for length, start in zip(lengths, ends[:-1], strict=True)
    ]


def _within(error: TypeMismatch, values: Sequence[Any], place: str) -> TypeMismatch:
    """Return an error about the n-th of all elements as one about an element of one of `values`."""
    position = error.index
    for index, value in enumerate(values):
        size = 0 if value is None else len(value)
        if position < size:
            path = place.format(position) + (f".{error.path}" if error.path else "")
            return TypeMismatch(index, error.value, error.expected, path, error.why)
        position -= size
    return error
