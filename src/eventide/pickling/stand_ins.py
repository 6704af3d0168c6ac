"""Users' data where their program is not: objects of missing classes are read, shown, and written as they were.

A stand-in only keeps what it was made of, so no code of the program runs, whatever a pickle says.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from eventide.errors import StateError
from eventide.pickling.pickles import check_name, class_of_name, dumps
from eventide.pickling.plain_classes import SHOWN_CLASSES
from eventide.pickling.reader import Reader, Unchanging, read

if TYPE_CHECKING:
    from typing_extensions import Buffer


class StandIn(metaclass=Unchanging):
    """An object of a class that is not here: the arguments that made it, and the state that it was given then.

    It equals nothing but itself, and can do nothing but show what it has, and become bytes again.
    """

    def __new__(cls, *args: object, **named: object) -> StandIn:
        """Keep what the object was made of."""
        made = super().__new__(cls)
        made.__dict__.update(_args=args, _named=named, _state=None, _items=[], _entries=[])
        return made

    def __setstate__(self, state: object) -> None:
        """Keep the state."""
        self.__dict__["_state"] = state

    def append(self, item: object) -> None:
        """Keep an item, as a list does."""
        self.__dict__["_items"].append(item)

    def extend(self, items: Iterable[object]) -> None:
        """Keep several items."""
        self.__dict__["_items"].extend(items)

    def __setitem__(self, key: object, value: object) -> None:
        """Keep an entry, as a dict does."""
        self.__dict__["_entries"].append((key, value))

    def __repr__(self) -> str:
        """The name of the class, and what is known."""
        name = type(self).__name__
        return f"{name if name.isidentifier() else repr(name)}({', '.join(self._shown())})"

    def _shown(self) -> Iterator[str]:
        kept = self.__dict__
        yield from map(repr, kept["_args"])
        yield from (f"{name}={value!r}" for name, value in kept["_named"].items())
        state = kept["_state"]
        for part in (
            state if isinstance(state, tuple) and len(state) == 2 else (state,)
        ):  # the second are those of slots
            if isinstance(part, dict):
                yield from (f"{name}={value!r}" for name, value in part.items())
            elif part is not None:
                yield repr(part)
        yield from map(repr, kept["_items"])
        yield from (f"{key!r}: {value!r}" for key, value in kept["_entries"])

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the pickled form that the object was read from."""
        kept = self.__dict__
        made = type(self), kept["_args"], kept["_named"]
        return _made, made, kept["_state"], iter(kept["_items"]), iter(kept["_entries"])


def _made(kind: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """An object as pickle makes it: without ``__init__``, where what makes it is a class."""
    return kind.__new__(kind, *args, **named) if isinstance(kind, type) else kind(*args, **named)


def loads_anyway(data: Buffer) -> Any:
    """Unpickle data, with a :class:`StandIn` for each object of a class that no program has brought here."""
    return read(_Anyway, data)


def shown_loads(data: bytes) -> Any:
    """Unpickle data that are only to be shown: but for plain values, windows and rows, no object is made.

    Each other one is shown by a :class:`StandIn`, also one of a plain class, as of a path or an array.

    Raises:
        StateError: if there is something that a stand-in cannot stand for, such as a class that goes along by value.

    >>> from urllib.parse import urlsplit
    >>> from eventide.common.windows import TimeWindow
    >>> shown_loads(pickle.dumps([urlsplit("sc://here/a"), TimeWindow(0, 10)]))
    [SplitResult('sc', 'here', '/a', '', ''), TimeWindow(start=0, end=10)]
    """
    try:
        return read(_Shown, data)
    except StateError:
        raise
    except Exception as error:  # whatever bytes that are no pickle of ours, or made to look like one, lead to
        raise StateError(f"the stored data cannot be shown without the program: {error}") from error


def dumps_anyway(value: object) -> bytes:
    """Pickle data that may have stand-ins in it: a program that has their classes loads objects of these."""
    with io.BytesIO() as file:
        try:
            _OfStandIns(file, protocol=5).dump(value)
        except (pickle.PicklingError, AttributeError, TypeError):
            return dumps(value)
        return file.getvalue()


@lru_cache(maxsize=1024)
def _stand_in(module: str, name: str) -> type:
    return Unchanging(name.rpartition(".")[2], (StandIn,), {"__module__": module, "__qualname__": name})


def _class_or_stand_in(module: str, name: str) -> Any:
    check_name(module, name)
    try:
        return class_of_name(module, name)
    except Exception:  # whatever an import may raise, and that there is no such class
        return _stand_in(module, name)


def _shown_or_stand_in(module: str, name: str) -> Any:
    check_name(module, name)
    return class_of_name(module, name) if (module, name) in SHOWN_CLASSES else _stand_in(module, name)


class _Anyway(Reader):
    class_for = staticmethod(_class_or_stand_in)
    by_name = staticmethod(class_of_name)


class _Shown(Reader):
    class_for = staticmethod(_shown_or_stand_in)
    by_name = staticmethod(class_of_name)


class _OfStandIns(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, type) and issubclass(obj, StandIn) and obj is not StandIn:
            return class_of_name, (obj.__module__, obj.__qualname__)
        return NotImplemented
