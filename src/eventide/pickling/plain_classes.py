"""Plain classes: those of Python, its libraries and eventide that any data may contain, and how values are made.

Making an object of a plain class has no other effect. Why that is so of each stands in the table of
``tests/unit/pickling/test_plain_classes.py``.

Values of numpy and Arrow are made with functions that check the pickle; the libraries' own functions trust it. numpy
makes arrays over memory that something else owns, and of types that hold pointers where there are none; Arrow makes
arrays whose offsets lead out of their buffers. Here the types are simple ones, the buffers are the array's own, and
what they hold is looked at (decision 33).
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from zoneinfo import ZoneInfo

from eventide.errors import StateError
from eventide.pickling.reader import Form, shared

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

ClassName: TypeAlias = tuple[str, str]
"""A module, and the qualified name of a class in it."""

_NAMES = {
    "builtins": "bool int float complex str bytes bytearray list tuple dict set frozenset slice range object",
    "array": "array _array_reconstructor",
    "collections": "ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "ipaddress": "IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface IPv6Network",
    "pathlib": "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
    "random": "Random",
    "statistics": "NormalDist",
    "types": "SimpleNamespace",
    "uuid": "SafeUUID UUID",
    "zoneinfo": "ZoneInfo ZoneInfo._unpickle",
    "eventide.pickling.pickles": "class_of_name",
    "eventide.pickling.stand_ins": "_made",
    "eventide.common.time": "Duration Instant Time",
    "eventide.common.types": "Row RowKind _restore",
    "eventide.common.watermark": "Watermark",
    "eventide.common.watermark_generator": "WatermarkGeneratorContext",
    "eventide.common.windows": "CountWindow GlobalWindow TimeWindow",
    "eventide.connectors.kafka._offsets": "KafkaTopicPartition",
    "eventide.connectors.kafka._records": "ConsumerRecord",
    "eventide.api.source": "Counted _Idle",
    "eventide.api.functions.timers": "TimeDomain",
    "eventide.api.windows._evictors": "TimestampedValue",
    "eventide.runtime.joins.windowed": "OnSide",
    "eventide.runtime.window.aggregated_contents": "_Kept",
    "eventide.runtime.window.contents": "Accumulated",
    "pyarrow.lib": (
        "_reconstruct_record_batch _reconstruct_table binary chunked_array decimal128 decimal256 dictionary field "
        "large_list list_ map_ scalar schema struct timestamp type_for_alias"
    ),
    "pandas._libs.tslibs.timedeltas": "_timedelta_unpickle",
}

_FORMER_MODULES = {
    "eventide.api.functions.time_domain": "eventide.api.functions.timers",
    "eventide.api.windows._windows": "eventide.common.windows",
    "eventide.common._pickles": "eventide.pickling.pickles",
    "eventide.common._stand_ins": "eventide.pickling.stand_ins",
    "eventide.common.time_window": "eventide.common.windows",
    "eventide.datastream.connectors.kafka._offsets": "eventide.connectors.kafka._offsets",
    "eventide.datastream.connectors.kafka._records": "eventide.connectors.kafka._records",
    "eventide.datastream.connectors.source": "eventide.api.source",
    "eventide.datastream.time_domain": "eventide.api.functions.timers",
    "eventide.datastream.window._evictors": "eventide.api.windows._evictors",
    "eventide.datastream.window._windows": "eventide.common.windows",
    "eventide.runtime.columnar.contents": "eventide.runtime.window.aggregated_contents",
}
"""The modules that data of older checkpoints name, and where their classes are now."""

_OURS = {
    "builtins getattr": "method_of",
    "numpy dtype": "DtypeForm",
    "numpy ndarray": "ArrayForm",
    "numpy._core.multiarray _reconstruct": "array_form",
    "numpy._core.multiarray scalar": "scalar_of",
    "numpy._core.numeric _frombuffer": "array_of",
    "numpy.core.multiarray _reconstruct": "array_form",
    "numpy.core.multiarray scalar": "scalar_of",
    "numpy.core.numeric _frombuffer": "array_of",
    "pandas._libs.tslibs.nattype _nat_unpickle": "no_time",
    "pandas._libs.tslibs.timestamps _unpickle_timestamp": "timestamp_of",
    "pyarrow.lib _restore_array": "arrow_array",
    "pyarrow.lib py_buffer": "arrow_buffer",
    "re _compile": "pattern",
}

INSTEAD: dict[ClassName, ClassName] = {
    (module, name): ("eventide.pickling.plain_classes", ours)
    for names, ours in _OURS.items()
    for module, name in [names.split()]
} | {(former, name): (module, name) for former, module in _FORMER_MODULES.items() for name in _NAMES[module].split()}
"""Substitutes of stored names: safe functions for those of libraries that would accept any pickled data,
and eventide's classes where they are now."""

PLAIN_CLASSES: frozenset[ClassName] = frozenset(
    {*INSTEAD}
    | {(module, name) for module, names in _NAMES.items() for name in names.split()}
    | {
        ("builtins", name)
        for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    }
)
"""Names of plain classes, and of the functions that make objects of them."""

SHOWN_CLASSES: frozenset[ClassName] = frozenset(
    {(module, name) for module in ("builtins", "datetime", "decimal") for name in _NAMES[module].split()}
    | {("eventide.pickling.pickles", "class_of_name"), ("numpy", "dtype"), ("eventide.common.types", "_restore")}
    | {at for at in PLAIN_CLASSES if at[0] in {"eventide.common.windows", "eventide.common.types"}}
    | {at for at, (module, _) in INSTEAD.items() if module == "eventide.common.windows"}
    | {at for at, (_, ours) in INSTEAD.items() if ours in {"class_of_name", "scalar_of"}}
)
"""Classes whose objects are made to be shown: the objects cannot be changed, or run only eventide's code."""


def class_name(kind: type) -> ClassName:
    """The name under which data refer to a class."""
    return kind.__module__, kind.__qualname__


_CODE = re.compile(r"[biufcSUVmMO][0-9]{1,9}")
_ORDERS = frozenset("<>|=")
_ALIGNED = 0x80
_NO_NUMBER = re.compile(r"[a-zA-Zμ]{1,7}")


class DtypeForm(Form):
    """A type of numpy's as a pickle tells it: a simple one, or a structure of simple ones.

    Args:
        code: The kind and the size, such as ``i8``.
        align: As numpy has it; the state says more.
        copy: As numpy has it.
    """

    __slots__ = ("_code", "_items", "_made", "_state")

    def __init__(self, code: object, align: object = False, copy: object = False) -> None:
        if type(code) is not str or _CODE.fullmatch(code) is None:
            raise _not_simple(f"the type {code!r:.40}")
        self._code = code
        self._state: tuple[Any, ...] = (3, "|", None, None, None, -1, -1, 0)
        self._made: np.dtype[Any] | None = None
        self._items: Callable[[bytes], Iterable[Any]] | None = None

    def __setstate__(self, state: object) -> None:
        """Take the rest of the pickled state."""
        if type(state) is not tuple or len(state) not in {8, 9} or type(state[7]) is not int or state[1] not in _ORDERS:
            raise _not_simple("the state of a type")
        self._state, self._made, self._items = state, None, None

    def value(self) -> np.dtype[Any]:
        if self._made is None:
            try:
                self._made = self._type()
            except (TypeError, ValueError, KeyError) as error:
                raise _not_simple(f"a type that numpy refuses: {error}") from error
        return self._made

    @property
    def items(self) -> Callable[[bytes], Iterable[Any]]:
        """Gives the items of the type that some bytes are."""
        if self._items is None:
            self._items = _items_of(self.value())
        return self._items

    def _type(self) -> np.dtype[Any]:
        import numpy as np

        _, order, base, names, fields, size, _, flags, *more = self._state
        kind, [metadata] = self._code[0], more or [None]
        if names is not None or fields is not None:
            made = _structure(names, fields, size, aligned=bool(flags & _ALIGNED))
        elif base is not None:
            of, shape = base
            made = np.dtype((_simple(of), _shape(shape)))
        elif kind in "mM":
            metadata, (unit, count, *_) = metadata
            unit = unit.decode("ascii") if type(unit) is bytes else unit
            if type(unit) is not str or _NO_NUMBER.fullmatch(unit) is None or type(count) is not int:
                raise _not_simple("a unit of time")
            made = np.dtype(f"{order}{self._code}" + ("" if unit == "generic" else f"[{count}{unit}]"))
        elif kind == "O":
            return np.dtype(object)
        else:
            made = np.dtype(order + self._code)
        return np.dtype(made, metadata=metadata) if type(metadata) is dict and metadata else made


class ArrayForm(Form):
    """An array of numpy's that a pickle tells in parts, as it does where its memory is not one stretch."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state: object = None

    def __setstate__(self, state: object) -> None:
        """Shape, type, order and content."""
        self._state = state

    def value(self) -> np.ndarray[Any, Any]:
        import numpy as np

        if type(self._state) is not tuple or len(self._state) not in {4, 5}:
            raise _not_simple("the state of an array")
        shape, of, is_fortran, content = self._state[-4:]
        if type(content) is not list:
            made = array_of(content, of, shape, "F" if is_fortran else "C")
            return made if made.flags.writeable else made.copy("K")
        if _type_of(of) != np.dtype(object):
            raise _not_simple("a list as the content of an array of no objects")
        objects = np.empty(len(content), object)
        for i, one in enumerate(content):
            objects[i] = one
        return objects.reshape(_shape(shape), order="F" if is_fortran else "C")


def array_form(kind: object, shape: object = None, code: object = None) -> ArrayForm:
    """An array whose state follows; ``numpy._core.multiarray._reconstruct`` for a pickle."""
    if not isinstance(kind, type) or not issubclass(kind, ArrayForm):
        raise _not_simple("an array of another class than ndarray")
    return kind()


def array_of(buffer: Any, of: object, shape: object, order: Any, axes: object = None) -> np.ndarray[Any, Any]:
    """An array with memory of its own; ``numpy._core.numeric._frombuffer`` for a pickle.

    Like the array that was pickled, it cannot be written to if its content is bytes.
    """
    import numpy as np

    made = _type_of(of)
    if type(buffer) not in {bytes, bytearray} or order not in ("C", "F", "K") or made.hasobject:
        raise _not_simple("the content of an array")
    try:
        flat = np.frombuffer(buffer, made) if made.itemsize and buffer else np.zeros(0 if made.itemsize else 1, made)
        if type(buffer) is bytearray:
            flat = flat.copy()
        _check_bools(flat)
        if order == "K" and axes is not None:
            return flat.reshape(_shape(shape)).transpose(_shape(axes))
        return flat.reshape(_shape(shape), order="C" if order == "K" else order)
    except (TypeError, ValueError) as error:
        raise _not_simple(f"an array that numpy refuses: {error}") from error


def scalar_of(of: object, content: object = b"") -> Any:
    """A number, time, text or record of numpy's; ``numpy._core.multiarray.scalar`` for a pickle."""
    if type(content) is not bytes:
        raise _not_simple("a scalar")
    items = of.items if isinstance(of, DtypeForm) else _items_of(_type_of(of))
    try:
        [value] = items(content)
    except ValueError as error:
        raise _not_simple(f"a scalar that numpy refuses: {error}") from error
    return value


def arrow_array(data: object) -> pa.Array:
    """An array of Arrow's whose buffers are long enough, and whose offsets stay in them."""
    from pyarrow import ArrowException, lib

    _check_arrow(data)
    try:
        made = lib._restore_array(data)
        made.validate(full=True)
    except ArrowException as error:
        raise _not_simple(f"an array that Arrow refuses: {error}") from error
    return made


def arrow_buffer(content: Any) -> pa.Buffer:
    """A buffer of Arrow's with bytes of its own."""
    import pyarrow as pa

    if type(content) not in {bytes, bytearray}:
        raise _not_simple("the content of a buffer")
    return pa.py_buffer(bytes(content))


def pattern(text: object, flags: object = 0) -> re.Pattern[Any]:
    """A regular expression, which is not printed, whatever its flags say."""
    if type(text) not in {str, bytes} or type(flags) is not int:
        raise _not_simple("a regular expression")
    return re.compile(text, flags & ~re.DEBUG)


def no_time() -> Any:
    """The ``NaT`` of pandas, of which a process has one."""
    import pandas as pd

    return shared(pd.NaT)


def method_of(kind: object, name: object) -> Any:
    """The method that time zones are pickled with; ``getattr`` for a pickle, which may ask only for this."""
    if type(name) is not str or name != "_unpickle" or getattr(kind, "kind", kind) is not ZoneInfo:
        raise _not_simple(f"a call for {name!r:.40} of something")
    return ZoneInfo._unpickle  # type: ignore[attr-defined]


def timestamp_of(value: object, freq: object, zone: object, resolution: object = 10) -> Any:
    """A pandas time, whose zone is an object: for the name of a zone, pandas would look for a file."""
    from pandas._libs.tslibs import timestamps

    if freq is not None or not (zone is None or isinstance(zone, tzinfo)) or type(value) is not int:
        raise _not_simple("a time of pandas'")
    return timestamps._unpickle_timestamp(value, None, zone, resolution)


def _items_of(made: np.dtype[Any]) -> Callable[[bytes], Iterable[Any]]:
    import numpy as np

    if made.names is not None or not made.itemsize or made.hasobject:
        return lambda content: array_of(bytearray(content), made, (1,), "C")
    return partial(np.frombuffer, dtype=made)


def _structure(names: object, fields: object, size: object, *, aligned: bool) -> np.dtype[Any]:
    import numpy as np

    if type(names) is not tuple or type(fields) is not dict or type(size) is not int:
        raise _not_simple("a structure")
    parts = [fields[name] for name in names]
    if not all(type(part) is tuple and len(part) in {2, 3} and type(part[1]) is int for part in parts):
        raise _not_simple("the fields of a structure")
    form: dict[str, Any] = {
        "names": [*names],
        "formats": [_simple(part[0]) for part in parts],
        "offsets": [part[1] for part in parts],
        "itemsize": size,
    }
    if any(len(part) == 3 for part in parts):
        form["titles"] = [part[2] if len(part) == 3 else None for part in parts]
    return np.dtype(form, align=aligned)  # type: ignore[call-overload,no-any-return]


def _simple(of: object) -> np.dtype[Any]:
    made = _type_of(of)
    if made.hasobject:
        raise _not_simple("a structure with objects in it")
    return made


def _type_of(of: object) -> np.dtype[Any]:
    """A type from its form, or a type as it is: a pickle gets only types that were made here."""
    import numpy as np

    if isinstance(of, DtypeForm):
        return of.value()
    if isinstance(of, np.dtype):
        return of
    raise _not_simple("the type of an array")


def _shape(shape: object) -> tuple[int, ...]:
    if type(shape) is not tuple or not all(type(size) is int and size >= 0 for size in shape):
        raise _not_simple("the shape of an array")
    return shape


def _check_bools(flat: np.ndarray[Any, Any]) -> None:
    """Check that each boolean is 0 or 1: numpy counts the bytes of booleans without looking."""
    import numpy as np

    kind = flat.dtype
    if kind.names is not None:
        for name in kind.names:
            _check_bools(flat[name])
    elif kind == np.bool_ and flat.size and flat.view(np.uint8).max() > 1:
        raise _not_simple("booleans that are neither true nor false")


def _check_arrow(data: object) -> None:
    """Check that an array has the parts that its type says: Arrow ends the process if one is missing."""
    import pyarrow as pa

    if type(data) is not tuple or len(data) != 7:
        raise _not_simple("an array of Arrow's")
    kind, length, nulls, offset, buffers, children, dictionary = data
    numbers_fit = all(type(one) is int for one in (length, nulls, offset)) and min(length, offset) >= 0
    if not (isinstance(kind, pa.DataType) and numbers_fit and type(buffers) is list and type(children) is list):
        raise _not_simple("an array of Arrow's")
    stored = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    varies = pa.types.is_string_view(stored) or pa.types.is_binary_view(stored)
    has_buffers = len(buffers) >= stored.num_buffers if varies else len(buffers) == stored.num_buffers
    has_children = len(children) == (0 if pa.types.is_dictionary(stored) else stored.num_fields)
    are_buffers = all(one is None or isinstance(one, pa.Buffer) for one in buffers)
    if not (has_buffers and has_children and are_buffers) or (dictionary is None) == pa.types.is_dictionary(stored):
        raise _not_simple("an array of Arrow's without some of its parts")
    for child in [*children, *([] if dictionary is None else [dictionary])]:
        _check_arrow(child)


def _not_simple(what: str) -> StateError:
    return StateError(
        f"the stored data have {what}: state holds arrays of numbers, times, texts and structures of them, whose "
        "content is their own. If the program has not written that, somebody else has written into the checkpoint: "
        "none of it was run"
    )
