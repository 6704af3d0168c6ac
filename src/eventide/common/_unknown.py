"""Users' data where their program is not: objects of classes that are missing are read, and written as they were."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from eventide.common._pickles import class_of_name, dumps


class Unknown:
    """An object of a class that is not here: what it was made of, and the state that it was given then.

    It equals nothing but itself, and can do nothing but become bytes again.
    """

    def __new__(cls, *args: Any, **named: Any) -> Unknown:
        """Keep what the object was made of."""
        made = super().__new__(cls)
        made.__dict__.update(_args=args, _named=named, _state=None, _items=[], _entries=[])
        return made

    def __setstate__(self, state: Any) -> None:
        """Keep the state."""
        self.__dict__["_state"] = state

    def append(self, item: Any) -> None:
        """Keep an item, as a list does."""
        self.__dict__["_items"].append(item)

    def extend(self, items: Iterable[Any]) -> None:
        """Keep several items."""
        self.__dict__["_items"].extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Keep an entry, as a dict does."""
        self.__dict__["_entries"].append((key, value))

    def __repr__(self) -> str:
        """The name of the class, and what is known."""
        kept = self.__dict__
        known = [
            *map(repr, kept["_args"]),
            *(repr(kept[name]) for name in ("_state", "_items", "_entries") if kept[name]),
        ]
        return f"{type(self).__qualname__}({', '.join(known)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """What the object was read from."""
        kept = self.__dict__
        made = type(self), kept["_args"], kept["_named"]
        return _made, made, kept["_state"], iter(kept["_items"]), iter(kept["_entries"])


def _made(kind: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """An object as pickle makes it: without ``__init__``, where what makes it is a class."""
    return kind.__new__(kind, *args, **named) if isinstance(kind, type) else kind(*args, **named)


def loads_anyway(data: Any) -> Any:
    """Unpickle data, with an :class:`Unknown` for each object of a class that no program has brought here."""
    return _WithUnknown(io.BytesIO(data)).load()


def dumps_anyway(value: Any) -> bytes:
    """Pickle data that may have stand-ins in it: who has their classes loads objects of these."""
    with io.BytesIO() as file:
        try:
            _OfUnknown(file, protocol=5).dump(value)
        except (pickle.PicklingError, AttributeError, TypeError):
            return dumps(value)
        return file.getvalue()


@lru_cache(maxsize=1024)
def _stand_in(module: str, name: str) -> type:
    return type(name, (Unknown,), {"__module__": module, "__qualname__": name})


def _class_or_stand_in(module: str, name: str) -> Any:
    try:
        return class_of_name(module, name)
    except Exception:  # whatever an import may raise, and that there is no such class
        return _stand_in(module, name)


class _WithUnknown(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (class_of_name.__module__, class_of_name.__name__):
            return _class_or_stand_in
        return _class_or_stand_in(module, name)


class _OfUnknown(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and issubclass(obj, Unknown) and obj is not Unknown:
            return class_of_name, (obj.__module__, obj.__qualname__)
        return NotImplemented
