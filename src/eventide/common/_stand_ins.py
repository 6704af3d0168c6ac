"""Pickles of somebody else's data, shown without making any of it: classes that are not known have a stand-in.

No code of the program runs, whatever the pickle says: a stand-in only remembers what it was called with.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import io
import pickle
import uuid
from functools import lru_cache
from typing import Any

from eventide.common.time_window import TimeWindow
from eventide.common.types import Row, RowKind
from eventide.errors import StateError

_KNOWN = {
    (kind.__module__, kind.__qualname__): kind
    for kind in (
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
        *(decimal.Decimal, uuid.UUID, collections.OrderedDict, collections.deque, set, frozenset, bytearray, complex),
        *(Row, RowKind, TimeWindow),
    )
}
"""Classes that do nothing but hold values."""

_KNOWN_FUNCTIONS = {(made.__module__, made.__qualname__): made for made in (Row().__reduce__()[0],)}


class StandIn:
    """Stands for an object of a class that is not here: it shows the class's name and what the object has."""

    def __new__(cls, *args: Any, **named: Any) -> StandIn:
        """What the pickle makes it of."""
        made = super().__new__(cls)
        made.__dict__["parts"] = [*map(repr, args), *(f"{name}={value!r}" for name, value in named.items())]
        return made

    def __init__(self, *args: Any, **named: Any) -> None: ...

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)  # the second are those of slots
        for part in parts:
            if isinstance(part, dict):
                self.__dict__["parts"] += [f"{name}={value!r}" for name, value in part.items()]
            elif part is not None:
                self.__dict__["parts"].append(repr(part))

    def append(self, value: Any) -> None:
        """Called for each element of a kind of list."""
        self.__dict__["parts"].append(repr(value))

    def extend(self, values: Any) -> None:
        """Called for the elements of a kind of list."""
        self.__dict__["parts"].extend(map(repr, values))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__dict__["parts"].append(f"{key!r}: {value!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.__dict__['parts'])})"


def shown_loads(data: bytes) -> Any:
    """Read a pickle with stand-ins for all but plain values.

    Raises:
        StateError: if it has something that a stand-in cannot stand for, such as a class that goes along by value.

    >>> import fractions
    >>> shown_loads(pickle.dumps({"a": fractions.Fraction(1, 3), "b": TimeWindow(0, 10)}))
    {'a': Fraction(1, 3), 'b': TimeWindow(start=0, end=10)}
    """
    try:
        return _Shown(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, TypeError, AttributeError) as error:
        raise StateError(f"what is stored cannot be shown without the program: {error}") from error


class _Shown(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("eventide.common._pickles", "class_of_name"):
            return _class
        if (module, name) == ("copyreg", "_reconstructor"):
            return _reconstructed
        if (module, name) in _KNOWN_FUNCTIONS:
            return _KNOWN_FUNCTIONS[module, name]
        return _class(module, name)


def _class(module: str, name: str) -> type:
    """The class of a name, or a stand-in for it."""
    return _KNOWN.get((module, name)) or _stand_in(name)


@lru_cache(maxsize=256)
def _stand_in(name: str) -> type:
    return type(name.rpartition(".")[2], (StandIn,), {})


def _reconstructed(kind: type, base: type, state: Any) -> Any:
    """An object of a class that pickles in the old way."""
    return kind() if state is None else kind(state)
