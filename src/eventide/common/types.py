"""`Row`, a value with fields, and `RowKind`, the kind of change that a row describes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, overload

from eventide._absent import hand_out_names, says_what_is_absent
from eventide.errors import ProgramError

__all__ = ["Row", "RowKind"]


@says_what_is_absent
class RowKind(Enum):
    """Kind of a change of a table that a row describes: an insert, an update (before and after) or a delete."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return ("+I", "-U", "+U", "-D")[self.value]


_INSERT = RowKind.INSERT


class Row:
    """A value with fields, which are found by position and, if they are named, by name.

    Rows with the same named fields are equal in any order of fields. A row can be hashed, but also changed: do not
    change a row that is a key.

    Raises:
        ProgramError: Positional and named fields are mixed, or a field does not exist.

    >>> row = Row(name="Alice", age=11)
    >>> row
    Row(name='Alice', age=11)
    >>> row["name"], row.age, row[1], "age" in row
    ('Alice', 11, 11, True)
    >>> Person = Row("name", "age")
    >>> Person("Bob", 12)
    Row(name='Bob', age=12)
    >>> Row(1, 2)
    <Row(1, 2)>
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: tuple[str, ...] | None
    _values: tuple[Any, ...]
    _row_kind: RowKind

    def __init__(self, *args: object, **kwargs: object) -> None:
        if not kwargs:
            self._fields, self._values = None, args
        elif args:
            raise ProgramError("Row: give either positional or named fields, not both")
        else:
            self._fields, self._values = tuple(kwargs), tuple(kwargs.values())
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: object, **kwargs: object) -> Row:
        """Return a row of another kind than INSERT."""
        row = Row(*args, **kwargs)
        row.set_row_kind(row_kind)
        return row

    @staticmethod
    def of_fields(field_names: Sequence[str] | None, values: Iterable[Any]) -> Row:
        """Return a row of `values` in the order of `field_names`; the quick way to make many. Not in PyFlink.

        >>> Row.of_fields(["id", "class"], [1, "b"])
        Row(id=1, class='b')
        """
        row = Row.__new__(Row)
        row._fields = None if field_names is None else tuple(field_names)
        row._values = tuple(values)
        row._row_kind = _INSERT
        return row

    def get_row_kind(self) -> RowKind:
        """Return the kind, INSERT unless it was set."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Set the kind."""
        self._row_kind = row_kind

    def get_field_names(self) -> list[str] | None:
        """Return the names of the fields, or None if they have none. Not in PyFlink."""
        return None if self._fields is None else list(self._fields)

    def has_field_names(self, names: tuple[str, ...]) -> bool:
        """Say whether the fields have these names in this order, or have none. Not in PyFlink."""
        return self._fields is None or self._fields == names

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Name the fields, in their order."""
        self._fields = tuple(field_names)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """Return the values of some fields; all values if the fields have no names."""
        return list(self._values) if self._fields is None else [self[name] for name in names]

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the fields as a dict; with `recursive`, the rows inside too, in lists and dicts as well.

        Raises:
            TypeError: The fields have no names.

        >>> Row(key=1, value=Row(a=2)).as_dict(True)
        {'key': 1, 'value': {'a': 2}}
        """
        if self._fields is None:
            raise TypeError("a row whose fields have no names cannot become a dict")
        values = [_plain(value) for value in self._values] if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def __call__(self, *args: object) -> Row:
        """Make a row whose field names are the values of this one."""
        names = self._values
        if len(args) > len(names):
            raise ProgramError(
                f"Row: {self!r} has {len(names)} fields; give no more than one value for each, not {len(args)}"
            )
        row = Row.__new__(Row)
        row._fields, row._values, row._row_kind = names, args, self._row_kind
        return row

    def _index(self, name: str) -> int:
        if self._fields is not None:
            try:
                return self._fields.index(name)
            except ValueError:
                pass
        known = "its fields have no names" if self._fields is None else f"there are {', '.join(self._fields)}"
        raise ProgramError(f"Row: there is no field {name!r}; {known}")

    @overload
    def __getitem__(self, item: slice) -> list[Any]: ...

    @overload
    def __getitem__(self, item: int | str) -> Any: ...

    def __getitem__(self, item: int | str | slice) -> Any:
        if isinstance(item, slice):
            return list(self._values[item])
        return self._values[self._index(item) if isinstance(item, str) else item]

    def __setitem__(self, key: int | str | slice, value: Any) -> None:
        values = list(self._values)
        if isinstance(key, slice):
            values[key] = value
        else:
            values[key if isinstance(key, int) else self._index(key)] = value
        self._values = tuple(values)

    def __getattr__(self, item: str) -> Any:
        fields = None if item.startswith("_") else self._fields
        if fields is None:
            raise AttributeError(item)
        if item not in fields:
            raise AttributeError(item)
        _make_property(item)
        return self._values[fields.index(item)]

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self._row_kind is other._row_kind and self._canonical() == other._canonical()

    def __hash__(self) -> int:
        names, values = self._canonical()
        return hash((None if names is None else tuple(names), tuple(values)))

    def _canonical(self) -> tuple[Sequence[str] | None, Sequence[Any]]:
        """Return names and values, sorted by name."""
        if self._fields is None:
            return None, self._values
        order = sorted(range(len(self._fields)), key=self._fields.__getitem__)
        return [self._fields[i] for i in order], [self._values[i] for i in order if i < len(self._values)]

    def __copy__(self) -> Row:
        row = Row.__new__(Row)
        row._fields, row._values, row._row_kind = self._fields, self._values, self._row_kind
        return row

    def __reduce__(self) -> tuple[Any, ...]:
        if self._row_kind is _INSERT:  # by far the most, and pickling a member of an enum takes longer than all else
            return _restore, (self._fields, self._values)
        return _restore, (self._fields, self._values, self._row_kind)

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self._values, strict=False))})"


def rows_of(field_names: tuple[str, ...] | None, rows: Iterable[Iterable[Any]]) -> list[Row]:
    """Return a row for the values of each of `rows`, as `Row.of_fields` does; the quickest way."""
    new, made = Row.__new__, []
    for values in map(tuple, rows):
        row = new(Row)
        row._fields = field_names
        row._values = values
        row._row_kind = _INSERT
        made.append(row)
    return made


def values_of(rows: Sequence[Row], field_names: tuple[str, ...] | None) -> list[tuple[Any, ...]] | None:
    """Return the values of rows that all have these field names in this order and are of kind INSERT, else None."""
    found = [row._values for row in rows if row._row_kind is _INSERT and row._fields == field_names]
    return found if len(found) == len(rows) else None


_properties: set[str] = set()
_MOST_PROPERTIES = 1_000


def _make_property(name: str) -> None:
    """Add a property for a field, so that Python finds the attribute at once, after a row was first asked for it.

    Otherwise Python raises an AttributeError each time, before it calls ``__getattr__``: that takes five times as long
    as all else. A row without such a field still ends there.
    """

    def field(row: Row) -> Any:
        try:
            place = (row._fields or ()).index(name)
        except ValueError:
            raise AttributeError(name) from None
        return row._values[place]

    if len(_properties) < _MOST_PROPERTIES:
        _properties.add(name)
        setattr(Row, name, property(field))


def _restore(fields: tuple[str, ...] | None, values: tuple[Any, ...], row_kind: RowKind = RowKind.INSERT) -> Row:
    row = Row.of_fields(fields, values)
    row.set_row_kind(row_kind)
    return row


def _plain(value: object) -> Any:
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


hand_out_names(__name__)
