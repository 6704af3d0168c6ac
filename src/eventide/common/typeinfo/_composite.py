"""Types with parts: tuples and rows, which travel as Arrow structs; lists, arrays and maps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from eventide.common.type_variables import K, T, T_co, V
from eventide.common.typeinfo.base import DoesNotFit, TypeInformation, convert_each, instance_of, one_array, types_of
from eventide.common.types import Row, RowKind, rows_of, values_of
from eventide.errors import DataError, ProgramError, TypeMismatch

if TYPE_CHECKING:
    import pyarrow as pa

_T = TypeVar("_T")


@dataclass(frozen=True, init=False)
class CompositeTypeInfo(TypeInformation[T_co]):
    """Base class of tuples and rows: fields of different types, and their conversion through columns.

    Attributes:
        types: The types of the fields.
        names: The names of the fields, if they were given any.
    """

    _KIND: ClassVar[str]

    types: tuple[TypeInformation, ...]
    names: tuple[str, ...] | None = None

    def __init__(self, field_types: Iterable[TypeInformation], field_names: Iterable[str] | None = None) -> None:
        types = _checked_fields(self._KIND, field_types)
        names = None if field_names is None else tuple(field_names)
        if names is not None and len(names) != len(types):
            raise ProgramError(f"{self._KIND}_NAMED: {len(names)} names for {len(types)} types")
        if names is not None and len(set(names)) != len(names):
            raise ProgramError(f"{self._KIND}_NAMED: give each field a name of its own, not {', '.join(names)}")
        object.__setattr__(self, "types", types)
        object.__setattr__(self, "names", names)

    @property
    def field_names(self) -> list[str]:
        """The names of the fields; f0, f1, ... if they have none."""
        return list(self._names())

    @property
    def field_types(self) -> list[TypeInformation]:
        """The types of the fields."""
        return list(self.types)

    def get_field_names(self) -> list[str]:
        """Return `field_names`, under PyFlink's name."""
        return self.field_names

    def get_field_types(self) -> list[TypeInformation]:
        """Return `field_types`, under PyFlink's name."""
        return self.field_types

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        columns = zip(self.field_names, self.types, strict=True)
        return pa.struct([pa.field(name, field_type.arrow_type()) for name, field_type in columns])

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Return the values as an Arrow array, by columns, so that the work for one cell is done in C."""
        import pyarrow as pa

        rows, missing = self._exact_rows(values), None
        if rows is None:
            rows, missing = self._converted_rows(values)
        absent = None if missing is None else pa.array(missing, pa.bool_())
        columns = [self._of_field(i, kind.to_arrow, cells) for i, (kind, cells) in enumerate(self._columns(rows))]
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow_type()), mask=absent)

    def from_arrow(self, array: pa.Array | pa.ChunkedArray, places: Collection[int] | None = None) -> list[Any]:
        """Return the Python values of a struct array; fields are found by position, not by name.

        Args:
            array: the array.
            places: those of the fields that are wanted; None is in place of all others. If not given, all are.
        """
        import pyarrow as pa

        array = one_array(array)
        if not pa.types.is_struct(array.type) or array.type.num_fields != len(self.types):
            raise DataError(f"a column of Arrow type {array.type} cannot be read as {self!r}")
        cells = [
            [None] * len(array) if places is not None and place not in places else field_type.from_arrow(column)
            for place, (field_type, column) in enumerate(zip(self.types, array.flatten(), strict=True))
        ]
        values = self._from_fields(zip(*cells, strict=True))
        if not array.null_count:
            return values
        return [value if there else None for there, value in zip(array.is_valid().to_pylist(), values, strict=True)]

    def keeps(self, values: Sequence[Any]) -> bool:
        rows = self._exact_rows([value for value in values if value is not None])
        return rows is not None and all(kind.keeps(cells) for kind, cells in self._columns(rows))

    def as_declared(self, values: list[Any]) -> list[Any]:
        rows, missing = self._exact_rows(values), None
        is_exact = rows is not None
        if rows is None:
            rows, missing = self._converted_rows(values)
        given = list(self._columns(rows))
        columns = [self._of_field(i, kind.as_declared, cells) for i, (kind, cells) in enumerate(given)]
        if is_exact and all(column is cells for column, (_, cells) in zip(columns, given, strict=True)):
            return values
        declared = self._from_fields(zip(*columns, strict=True))
        if missing is None:
            return declared
        return [None if is_missing else value for is_missing, value in zip(missing, declared, strict=True)]

    @property
    def has_exponents(self) -> bool:
        return any(kind.has_exponents for kind in self.types)

    def __repr__(self) -> str:
        parts = [repr(kind) for kind in self.types]
        if self.names is not None:
            parts = [f"{name}: {part}" for name, part in zip(self.names, parts, strict=True)]
        return f"{self._KIND}({', '.join(parts)})"

    def _names(self) -> tuple[str, ...]:
        return _numbered(len(self.types)) if self.names is None else self.names

    def _converted_rows(self, values: Sequence[Any]) -> tuple[Sequence[Sequence[Any]], list[bool] | None]:
        """Return the fields of any values that fit, and a mask of those that are None, or None without any."""
        rows = convert_each(values, repr(self), self._fields_of)
        if not any(row is None for row in rows):
            return rows, None
        nothing = (None,) * len(self.types)
        return [nothing if row is None else row for row in rows], [row is None for row in rows]

    def _of_field(self, i: int, convert: Callable[[Any], _T], cells: Sequence[Any]) -> _T:
        """Convert the cells of a field; the error for a cell that does not fit names the field."""
        try:
            return convert(cells)
        except TypeMismatch as error:
            separator = "." if error.path and error.path[0] != "[" else ""
            path = f"{self.field_names[i]}{separator}{error.path}"
            raise TypeMismatch(error.index, error.value, error.expected, path, error.why) from error

    def _columns(self, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[TypeInformation, list[Any]]]:
        """The cells of each field: field by field, which is much faster than all at once for many rows."""
        for i, kind in enumerate(self.types):
            yield kind, list(map(itemgetter(i), rows))

    def _have_width(self, rows: Sequence[Sequence[Any]]) -> bool:
        return set(map(len, rows)) <= {len(self.types)}

    def _check_width(self, cells: Sequence[Any]) -> Sequence[Any]:
        if len(cells) != len(self.types):
            raise ValueError(len(cells))
        return cells

    @abstractmethod
    def _fields_of(self, value: object) -> Sequence[Any]:
        """Return the fields of a value in their order, or raise if the value does not fit."""

    @abstractmethod
    def _exact_rows(self, values: Sequence[Any]) -> Sequence[Sequence[Any]] | None:
        """Return the fields of values if all have the form in which this type is read back; else None."""

    @abstractmethod
    def _from_fields(self, rows: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Return the Python values that have these fields."""


class TupleTypeInfo(CompositeTypeInfo[tuple[Any, ...]]):
    """A tuple of a fixed length; a list of that length is accepted too, and comes back as a tuple."""

    _KIND = "TUPLE"

    def __init__(self, field_types: Iterable[TypeInformation]) -> None:
        super().__init__(field_types)

    def _fields_of(self, value: object) -> Sequence[Any]:
        if not isinstance(value, (tuple, list)):
            raise TypeError(type(value))
        return self._check_width(value)

    def _exact_rows(self, values: Sequence[Any]) -> Sequence[Sequence[Any]] | None:
        return values if set(map(type, values)) <= {tuple} and self._have_width(values) else None

    def _from_fields(self, rows: Iterable[tuple[Any, ...]]) -> list[Any]:
        return list(rows)


class RowTypeInfo(CompositeTypeInfo[Row]):
    """A `Row`; tuples and lists are accepted too, and dicts if its fields were named.

    Fields that were not named are f0, f1, … A row with names is read by name. If the fields of the type or of the row
    were not named, a row with other names is read by position, as Flink's formats read each row. Only rows of kind
    INSERT can travel: there is no column for the kind. Without a declared type, rows keep their kind.
    """

    _KIND = "ROW"

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field, or -1 if the fields have no names; raise a `ValueError` if it is absent."""
        return -1 if self.names is None else self.names.index(field_name)

    def _fields_of(self, value: object) -> Sequence[Any]:
        if isinstance(value, Row):
            kind = value.get_row_kind()
            if kind is not RowKind.INSERT:
                raise DoesNotFit(
                    f"it is of kind {kind.name}, and a declared row has no column for its kind; do not declare the "
                    "type (rows then keep their kind), or put the kind into a field"
                )
            names = value.get_field_names()
            if names is not None and set(names) != set(self._names()) and (self.names is None or _is_numbered(names)):
                return self._check_width(tuple(value))
            if value.has_field_names(self._names()):
                return self._check_width(tuple(value))
            return self._by_name(value.as_dict())
        if isinstance(value, dict):
            return self._by_name(value)
        if not isinstance(value, (tuple, list)):
            raise TypeError(type(value))
        return self._check_width(value)

    def _by_name(self, fields: dict[str, Any]) -> Sequence[Any]:
        names = self._names()
        if fields.keys() != set(names):
            raise ValueError(list(fields))
        return [fields[name] for name in names]

    def _exact_rows(self, values: Sequence[Any]) -> Sequence[Sequence[Any]] | None:
        rows = values_of(values, self._names()) if set(map(type, values)) <= {Row} else None
        return rows if rows is not None and self._have_width(rows) else None

    def _from_fields(self, rows: Iterable[tuple[Any, ...]]) -> list[Any]:
        return rows_of(self._names(), rows)


class DictTypeInfo(CompositeTypeInfo[dict[str, Any]]):
    """A dict that always has the same texts as keys, in one order: the result of an undeclared function on columns.

    Programs do not declare it: a dict of a declared `ROW_NAMED` becomes a row.
    """

    _KIND = "DICT"

    def _fields_of(self, value: object) -> Sequence[Any]:
        if not isinstance(value, dict) or tuple(value) != self.names:
            raise TypeError(type(value))
        return list(value.values())

    def _exact_rows(self, values: Sequence[Any]) -> Sequence[Sequence[Any]] | None:
        if set(map(type, values)) <= {dict} and all(tuple(value) == self.names for value in values):
            return [list(value.values()) for value in values]
        return None

    def _from_fields(self, rows: Iterable[tuple[Any, ...]]) -> list[Any]:
        return [dict(zip(self._names(), cells, strict=True)) for cells in rows]


@dataclass(frozen=True)
class ListTypeInfo(TypeInformation[list[T]]):
    """A list, or one of Flink's arrays, whose elements have one type.

    Attributes:
        element_type: The type of the elements.
        name: LIST, or PRIMITIVE_ARRAY, BASIC_ARRAY or OBJECT_ARRAY, which are equal in Python; an array accepts tuples
            too.
    """

    element_type: TypeInformation[T]
    name: str = "LIST"

    def __post_init__(self) -> None:
        _check_part(self.name, self.element_type)

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.list_(self.element_type.arrow_type())

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        self._check(values)
        column = _converted(self.element_type.to_arrow, _joined(values), values, "[{}]")
        return pa.ListArray.from_arrays(_offsets(values), column, type=self.arrow_type())

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        array = one_array(array)
        try:
            elements, lengths = array.flatten(), array.value_lengths().to_pylist()
        except AttributeError as error:
            raise DataError(f"a column of Arrow type {array.type} cannot be read as {self!r}") from error
        return _split(self.element_type.from_arrow(elements), lengths)

    @property
    def has_exponents(self) -> bool:
        return self.element_type.has_exponents

    def keeps(self, values: Sequence[Any]) -> bool:
        return types_of(values) <= {list} and self.element_type.keeps(_joined(values))

    def as_declared(self, values: list[Any]) -> list[Any]:
        self._check(values)
        elements = _joined(values)
        declared = _converted(self.element_type.as_declared, elements, values, "[{}]")
        return values if declared is elements and types_of(values) <= {list} else _split(declared, _lengths(values))

    def _check(self, values: Sequence[Any]) -> None:
        accepted = (list,) if self.name == "LIST" else (list, tuple)
        if not types_of(values) <= set(accepted):
            convert_each(values, repr(self), instance_of(*accepted))

    def __repr__(self) -> str:
        return f"{self.name}({self.element_type!r})"


@dataclass(frozen=True, init=False)
class MapTypeInfo(TypeInformation[dict[K, V]]):
    """A dict with keys of one type and values of one type. A key is never None."""

    key_type: TypeInformation[K]
    value_type: TypeInformation[V]

    def __init__(self, key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]) -> None:
        for part in (key_type_info, value_type_info):
            _check_part("MAP", part)
        object.__setattr__(self, "key_type", key_type_info)
        object.__setattr__(self, "value_type", value_type_info)

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.map_(self.key_type.arrow_type(), self.value_type.arrow_type())

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        keys, items = self._parts(values)
        key_column = _converted(self.key_type.to_arrow, keys, values, "key {}")
        item_column = _converted(self.value_type.to_arrow, items, values, "value {}")
        return pa.MapArray.from_arrays(_offsets(values), key_column, item_column).cast(self.arrow_type())

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        import pyarrow as pa

        array = one_array(array)
        if not pa.types.is_map(array.type):
            raise DataError(f"a column of Arrow type {array.type} cannot be read as {self!r}")
        entry = pa.struct([pa.field("key", array.type.key_type, nullable=False), array.type.item_field])
        entries = array.cast(pa.list_(entry))
        keys, items = entries.flatten().flatten()
        pairs = zip(self.key_type.from_arrow(keys), self.value_type.from_arrow(items), strict=True)
        split = _split(list(pairs), entries.value_lengths().to_pylist())
        return [None if value is None else dict(value) for value in split]

    @property
    def has_exponents(self) -> bool:
        return self.key_type.has_exponents or self.value_type.has_exponents

    def keeps(self, values: Sequence[Any]) -> bool:
        return (
            types_of(values) <= {dict}
            and self.key_type.keeps(_joined(values))
            and self.value_type.keeps(_items_of(values))
        )

    def as_declared(self, values: list[Any]) -> list[Any]:
        keys, items = self._parts(values)
        declared_keys = _converted(self.key_type.as_declared, keys, values, "key {}")
        declared_items = _converted(self.value_type.as_declared, items, values, "value {}")
        if declared_keys is keys and declared_items is items and types_of(values) <= {dict}:
            return values
        pairs = list(zip(declared_keys, declared_items, strict=True))
        return [None if value is None else dict(value) for value in _split(pairs, _lengths(values))]

    def _parts(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """All keys and all values; a key is never None."""
        if not types_of(values) <= {dict}:
            convert_each(values, repr(self), instance_of(dict))
        keys = _joined(values)
        if None in keys:
            raise _within(TypeMismatch(keys.index(None), None, repr(self.key_type)), values, "key {}")
        return keys, _items_of(values)

    def __repr__(self) -> str:
        return f"MAP({self.key_type!r}, {self.value_type!r})"


@lru_cache
def _numbered(width: int) -> tuple[str, ...]:
    """Return the names f0, f1, …; always the same object, so that rows are compared quickly."""
    return tuple(f"f{i}" for i in range(width))


def _is_numbered(names: Sequence[str]) -> bool:
    """Whether fields have the default names of unnamed fields."""
    return tuple(names) == _numbered(len(names))


def _checked_fields(what: str, types: Iterable[TypeInformation]) -> tuple[TypeInformation, ...]:
    """Return the types of a composite's fields; raise a `ProgramError` if there are none, or one is not a type."""
    if not isinstance(types, Iterable):
        raise ProgramError(f"{what}: expected a list of the types of its fields, got {types!r}")
    checked = tuple(types)
    if not checked:
        raise ProgramError(f"{what}: expected at least one field")
    for i, field_type in enumerate(checked):
        if not isinstance(field_type, TypeInformation):
            raise ProgramError(f"{what}: expected a TypeInformation for field {i}, got {field_type!r}")
    return checked


def _check_part(what: str, part: TypeInformation) -> None:
    """Raise a `ProgramError` if `part` is not a type."""
    if not isinstance(part, TypeInformation):
        raise ProgramError(f"{what}: expected a TypeInformation such as Types.STRING(), got {part!r}")


def _joined(values: Sequence[Any]) -> list[Any]:
    """Return the items of all lists, or the keys of all dicts, as one list."""
    return list(chain.from_iterable(value for value in values if value is not None))


def _items_of(values: Sequence[Any]) -> list[Any]:
    return list(chain.from_iterable(value.values() for value in values if value is not None))


def _lengths(values: Sequence[Any]) -> list[int | None]:
    return [None if value is None else len(value) for value in values]


def _converted(convert: Callable[[list[Any]], _T], parts: list[Any], values: Sequence[Any], place: str) -> _T:
    """Convert the parts of all `values`; an error names the place of the part that does not fit."""
    try:
        return convert(parts)
    except TypeMismatch as error:
        raise _within(error, values, place) from error


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
