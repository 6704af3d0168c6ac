"""From a key to its hash, key group and subtask: the same in every process, on every machine, after every restart.

First for keys that are Python objects; then, with equal results, for columns of them.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import uuid
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import CompositeTypeInfo, RowTypeInfo, TypeInformation
from eventide.common.types import Row
from eventide.errors import DataError
from eventide.runtime.elements import hashing
from eventide.runtime.elements.hashing import Hashes

_NUMBERS = (bool, int, float, decimal.Decimal, fractions.Fraction, complex)
_TIMES = (datetime.date, datetime.time, datetime.timedelta)
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - a naive moment is one of its own
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FEW_KEYS = 8
_ADVICE = "let the key selector return text, a number, bytes, a date or time, or a tuple of such values"


class NoKey(DataError):
    """An element has no key: its selector raised, or gave what cannot be one, or is not of the declared type.

    The sender of elements says of which operator they are. ``of`` is the element, where it is known.
    """

    def __init__(self, error: Exception, **of: object) -> None:
        super().__init__(error)
        self.error = error
        self.of = of


def stable_hash(key: object) -> int:
    """Hash a key to 64 bits so that equal keys have equal hashes in every process, whichever way they travel.

    Python's own ``hash`` of text differs from process to process, and two pickles of equal keys may differ. Numbers
    that are equal hash equally whatever their type, as they do in a dict; a tuple hashes as columns of its fields do.

    Raises:
        DataError: for a type whose hash cannot be known to be stable, such as an object with an identity only, for a
            dataclass whose ``__eq__`` is not that of its fields, and for NaN and NaT, which do not equal themselves.

    >>> stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    True
    >>> stable_hash(("a", 1)) == stable_hash(("a", 2))
    False
    """
    if isinstance(key, str):
        return hashing.of_text(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, _NUMBERS):
        if key != key:  # noqa: PLR0124 - NaN, of whatever type
            raise _unequal_to_itself(key)
        return hashing.scrambled(hash(key) + hashing.NUMBER)
    if isinstance(key, enum.Enum):
        name = stable_hash(key.value) if key.name is None else hashing.of_text(key.name.encode())
        return hashing.of_fields([name], hashing.NAME)  # flags that are not among the members may have no name
    if key is None:
        return hashing.NULL
    if isinstance(key, bytes):
        return hashing.of_text(key)
    if isinstance(key, tuple):
        return hashing.of_fields(map(stable_hash, key))
    if isinstance(key, Row):
        names = key.get_field_names()
        return hashing.of_fields(map(stable_hash, key if names is None else [key[name] for name in sorted(names)]))
    if isinstance(key, frozenset):
        return hashing.of_fields(sorted(map(stable_hash, key)), hashing.SET)
    if isinstance(key, _TIMES):
        return _of_time(key)
    if isinstance(key, np.datetime64 | np.timedelta64):
        return _of_numpy_time(key)
    if isinstance(key, uuid.UUID):
        return hashing.of_text(key.bytes)
    if dataclasses.is_dataclass(key) and not isinstance(key, type) and type(key).__eq__ is not object.__eq__:
        names = _compared_fields(type(key))
        return hashing.of_fields([stable_hash(getattr(key, name)) for name in names], hashing.RECORD)
    if type(key).__module__ == "numpy" and hasattr(key, "item"):
        return stable_hash(key.item())
    raise DataError(
        f"the key {key!r} is a {type(key).__name__}, which has no hash that is the same in every process; {_ADVICE}"
    )


def hashes_of(keys: Sequence[Any]) -> Hashes:
    """The hash of each of many keys: :func:`stable_hash`, and much quicker where they are of one simple type.

    Raises:
        DataError: as :func:`stable_hash`.

    >>> hashes_of(["a", "b"]).tolist() == [stable_hash("a"), stable_hash("b")]
    True
    """
    if len(keys) > _FEW_KEYS:
        kinds = set(map(type, keys))
        if kinds in ({str}, {bytes}):
            try:
                return hashing.of_texts(pa.array(keys, pa.large_string() if kinds == {str} else pa.large_binary()))
            except UnicodeEncodeError:
                pass  # half of a surrogate pair: Arrow cannot hold it
        elif kinds <= {int, bool}:
            return hashing.of_plain(np.fromiter(map(hash, keys), np.int64, len(keys)), hashing.NUMBER)
        elif kinds == {float}:
            numbers = np.array(keys)
            if np.isnan(numbers).any():
                raise _unequal_to_itself(float("nan"))
            return hashing.of_floats(numbers)
        elif kinds == {tuple} and len(set(map(len, keys))) == 1 and keys[0]:
            fields = (list(map(itemgetter(i), keys)) for i in range(len(keys[0])))
            return hashing.of_field_columns([hashes_of(field) for field in fields])
    return np.fromiter(map(stable_hash, keys), np.uint64, len(keys))


def unhashable(key: object) -> DataError:
    """Return the error for a key that Python cannot hash, such as a list."""
    return DataError(f"the key {key!r} is a {type(key).__name__} that cannot be hashed; {_ADVICE}")


def _unequal_to_itself(key: object) -> DataError:
    return DataError(f"the key {key!r} is not equal to itself, so no two elements could share it; {_ADVICE}")


@lru_cache
def _compared_fields(kind: type) -> list[str]:
    """The fields that objects of a dataclass are compared by.

    Raises:
        DataError: if the class compares in another way, so that it cannot be known which fields make keys equal.
    """
    names = [field.name for field in dataclasses.fields(kind) if field.compare]
    generated = dataclasses.make_dataclass(kind.__name__, names).__eq__.__code__
    code = getattr(kind.__eq__, "__code__", None)
    if code is None or (code.co_code, code.co_names) != (generated.co_code, generated.co_names):
        raise DataError(
            f"the key class {kind.__qualname__} is a dataclass whose __eq__ does not compare its fields, so that keys "
            "with different fields may be equal; leave __eq__ to the dataclass (fields with compare=False do not "
            "count), or let the key selector return the fields that count, as a tuple"
        )
    return names


def _of_time(key: Any) -> int:
    """Equal moments in different time zones have equal hashes."""
    if key != key:  # noqa: PLR0124 - NaT of pandas, which is a moment in time to Python
        raise _unequal_to_itself(key)
    if isinstance(key, datetime.datetime):
        moment = key.replace(fold=0)  # which of two equal readings of a clock it is does not make it another key
        since = _EPOCH if moment.utcoffset() is None else _EPOCH_UTC
        return hashing.scrambled((moment - since) // _MICROSECOND + hashing.MOMENT)
    if isinstance(key, datetime.date):
        return hashing.scrambled(key.toordinal() - _EPOCH.toordinal() + hashing.DATE)
    if isinstance(key, datetime.timedelta):
        return hashing.scrambled(key // _MICROSECOND + hashing.STRETCH)
    since_midnight = datetime.timedelta(
        hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond
    )
    return hashing.scrambled(
        (since_midnight - (key.utcoffset() or datetime.timedelta(0))) // _MICROSECOND + hashing.TIME
    )


def _of_numpy_time(key: np.datetime64 | np.timedelta64) -> int:
    """Equal moments, and equal stretches of time, in different units have equal hashes: that of Python's own."""
    if np.isnat(key):
        raise _unequal_to_itself(key)
    is_moment, unit = isinstance(key, np.datetime64), np.datetime_data(key.dtype)[0]
    if not is_moment and unit in ("Y", "M"):  # of no fixed length, so never equal to days
        return hashing.scrambled(int(key.astype("timedelta64[M]").astype(np.int64)) + hashing.STRETCH)
    micros = key.astype("datetime64[us]" if is_moment else "timedelta64[us]").astype(np.int64)
    return hashing.scrambled(int(micros) + (hashing.MOMENT if is_moment else hashing.STRETCH))


def key_group(key: object, max_parallelism: int) -> int:
    """The key group of a key: the unit in which keys are assigned to subtasks (Flink's term)."""
    return group_of(stable_hash(key), max_parallelism)


def group_of(key_hash: int, max_parallelism: int) -> int:
    """The key group of the keys with a hash.

    It follows from the upper half of the hash; the lower half says where in its subtask a key is stored.
    """
    return (key_hash >> 32) % max_parallelism


def subtask_of(group: int, max_parallelism: int, parallelism: int) -> int:
    """The subtask that owns a key group; each subtask owns a contiguous range, as in Flink.

    >>> [subtask_of(group, 8, 3) for group in range(8)]
    [0, 0, 0, 1, 1, 1, 2, 2]
    """
    return group * parallelism // max_parallelism


def groups_of(subtask: int, max_parallelism: int, parallelism: int) -> range:
    """The key groups that a subtask owns: those that :func:`subtask_of` gives it.

    >>> [groups_of(subtask, 8, 3) for subtask in range(3)]
    [range(0, 3), range(3, 6), range(6, 8)]
    """
    first, end = (-(-at * max_parallelism // parallelism) for at in (subtask, subtask + 1))
    return range(first, end)


def groups_of_hashes(hashes: Hashes, max_parallelism: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The key group of each of many keys, given their hashes: :func:`group_of`."""
    return ((hashes >> np.uint64(32)) % np.uint64(max_parallelism)).astype(np.int64)


def subtasks_of_hashes(hashes: Hashes, max_parallelism: int, parallelism: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The subtask of each of many keys, given their hashes: :func:`subtask_of`."""
    return groups_of_hashes(hashes, max_parallelism) * parallelism // max_parallelism


_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def key_column(array: Any) -> pa.Array:
    """A column as part of a key: of floating-point numbers that are equal, and of all NaN, there is one form.

    >>> key_column(pa.array([0.0, -0.0])).equals(pa.array([0.0, 0.0]))
    True
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_floating(array.type):
        array = pc.if_else(
            pc.is_nan(array), pa.scalar(float("nan"), array.type), pc.add(array, pa.scalar(0, array.type))
        )
    return array


def has_nan(array: pa.Array) -> bool:
    """Whether a column of a key has a NaN, which does not equal itself."""
    return pa.types.is_floating(array.type) and bool(pc.any(pc.is_nan(array)).as_py())


def numbers_of_columns(columns: Sequence[pa.Array]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The key in each row, which consists of one column or of several, as a number, in the order of their first rows.

    >>> numbers_of_columns([pa.array(["b", "a", "b", "a"]), pa.array([1, 1, 1, 0])]).tolist()
    [0, 1, 0, 2]
    """
    numbers = np.zeros(len(columns[0]), np.int64)
    for position, column in enumerate(columns):
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = encoded.indices.to_numpy().astype(np.int64)
        if position:
            together = pc.dictionary_encode(pa.array(numbers * len(encoded.dictionary) + codes))
            codes = together.indices.to_numpy().astype(np.int64)
        numbers = codes
    return numbers


def are_comparable(kinds: Iterable[pa.DataType]) -> bool:
    """Whether Arrow can tell values of some types apart.

    >>> are_comparable([pa.string(), pa.int64()]), are_comparable([pa.list_(pa.int64())])
    (True, False)
    """
    try:
        numbers_of_columns([pa.nulls(0, kind) for kind in kinds])
    except pa.ArrowNotImplementedError:
        return False
    return True


def first_rows(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The first row of each key, of the numbers that :func:`numbers_of_columns` gives.

    >>> first_rows(np.array([0, 1, 0, 2])).tolist()
    [0, 1, 3]
    """
    first = np.empty(int(numbers.max(initial=-1)) + 1, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return first


def hashes_of_columns(columns: Sequence[Any]) -> Hashes:
    """The hash of the key in each row, which consists of one column or of several.

    A key of one column has the hash of its value, one of several that of the tuple of their values; a null counts as
    None, and all NaN are equal.

    >>> from eventide.runtime.elements.keys import stable_hash
    >>> rows = [pa.array(["a", None]), pa.array([1, 2])]
    >>> hashes_of_columns(rows).tolist() == [stable_hash(("a", 1.0)), stable_hash((None, 2))]
    True
    """
    fields = [_of_column(key_column(column)) for column in columns]
    return fields[0] if len(fields) == 1 else hashing.of_field_columns(fields)


def hashes_of_parts(parts: Sequence[Any], kind: TypeInformation | None) -> Hashes:
    """The hash of each key of a type, given by its parts: that of the key in Python.

    Without a type, a key of one part is the value itself, and one of several is a tuple.

    >>> from eventide.common import Types
    >>> kind = Types.ROW_NAMED(["to", "at"], [Types.STRING(), Types.LONG()])
    >>> hashes_of_parts([pa.array(["a"]), pa.array([1])], kind).tolist() == [stable_hash(Row(to="a", at=1))]
    True
    >>> hashes_of_parts([pa.array(["a"])], Types.TUPLE([Types.STRING()])).tolist() == [stable_hash(("a",))]
    True
    """
    if not isinstance(kind, CompositeTypeInfo):
        return hashes_of_columns(parts)
    if isinstance(kind, RowTypeInfo) and kind.names is not None:
        parts = [parts[kind.names.index(name)] for name in sorted(kind.names)]
    return hashing.of_field_columns([_of_column(key_column(part)) for part in parts])


def owners(
    parts: Sequence[Any], max_parallelism: int, subtasks: int, kind: TypeInformation | None = None
) -> np.ndarray[Any, Any] | None:
    """The subtask of the key in each row; None if one subtask has them all."""
    if subtasks == 1 or not parts:
        return None
    return subtasks_of_hashes(hashes_of_parts(parts, kind), max_parallelism, subtasks)


def _of_column(array: pa.Array) -> Hashes:
    kind = array.type
    if _is_text(kind) or pa.types.is_decimal(kind):
        distinct = pc.dictionary_encode(array)  # each is hashed once
        codes = distinct.indices.fill_null(0).to_numpy(zero_copy_only=False)
        values = distinct.dictionary
        hashes = hashing.of_texts(values) if _is_text(kind) else hashes_of(values.to_pylist())
        hashes = hashes[codes] if len(hashes) else np.zeros(len(array), np.uint64)
    else:
        hashes = _of_plain_column(array)
    if array.null_count:
        hashes = np.where(array.is_null().to_numpy(zero_copy_only=False), np.uint64(hashing.NULL), hashes)
    return hashes


def _is_text(kind: pa.DataType) -> bool:
    of_a_kind = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_one(kind) for is_one in of_a_kind)


def _of_plain_column(array: pa.Array) -> Hashes:
    """The hashes of numbers, dates and times; the hash of a null has no meaning."""
    kind = array.type
    if pa.types.is_floating(kind):
        return hashing.of_floats(array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_integer(kind):
        return hashing.of_integers(array.fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(kind):
        return hashing.of_integers(array.cast(pa.int8()).fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_date(kind):
        days = array.cast(pa.date32()).view(pa.int32()).cast(pa.int64())
        return hashing.of_plain(days.fill_null(0).to_numpy(zero_copy_only=False), hashing.DATE)
    for is_one, number in (
        (pa.types.is_time, hashing.TIME),
        (pa.types.is_timestamp, hashing.MOMENT),
        (pa.types.is_duration, hashing.STRETCH),
    ):
        if is_one(kind):
            return hashing.of_plain(_microseconds(array), number)
    return hashes_of(array.to_pylist())


def _microseconds(array: pa.Array) -> np.ndarray[Any, Any]:
    """Times in the unit of Python's."""
    narrow = pa.types.is_time32(array.type)
    numbers = array.view(pa.int32()).cast(pa.int64()) if narrow else array.view(pa.int64())
    found: np.ndarray[Any, Any] = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return found // 1_000 if array.type.unit == "ns" else found * _MICROSECONDS[array.type.unit]
