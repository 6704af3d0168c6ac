"""Users' data as bytes: plain pickles, in which a class of the program is a name and the program brings the class.

Pickle itself names classes where it can: those that a module of that name has. It cannot name a class of a program's
main file in a worker, whose main file is another one, nor one that was made inside a function. Those that the program
brings (:func:`bring`) are named all the same. So what is stored holds no class, and who loads it gets objects of the
class that the program has now.
"""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

from eventide.errors import StateError

ClassName: TypeAlias = tuple[str, str]
"""A module, and the qualified name of a class in it."""

_NO_NAME = (pickle.PicklingError, AttributeError, TypeError)
"""What pickle raises where it finds no name for a class or a function."""

_brought: dict[ClassName, type] = {}
_names: dict[int, ClassName] = {}


def class_name(kind: type) -> ClassName:
    """The name under which data refers to a class."""
    return kind.__module__, kind.__qualname__


def bring(classes: Iterable[type]) -> None:
    """Have data refer to these classes by their names in this process, from now on.

    Of two classes of one name, the one that was brought last is meant.
    """
    for kind in classes:
        name = class_name(kind)
        before = _brought.get(name)
        if before is not kind:
            _names.pop(id(before), None)
            _brought[name] = kind
            _names[id(kind)] = name


def class_of_name(module: str, name: str) -> type:
    """The class that data refers to: what the program brought, else what the module has.

    Pickles call it by its own name, so it has to stay where it is.

    Raises:
        StateError: if there is no such class.
    """
    found: Any = _brought.get((module, name))
    if found is None:
        try:
            found = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            raise StateError(
                f"what is stored has objects of {name} of the module {module}, and the program has nothing of that "
                "name. It must stay in the program, where it is and in use, as long as the checkpoint has objects of "
                "it; bring it back, or start with a new checkpoint location"
            ) from error
    kind: type = found
    return kind


def dumps(value: Any) -> bytes:
    """Pickle data.

    A class that neither a module nor the program has by its name, such as one that was made while the program ran, goes
    along by value; so does a function.

    Raises what pickling raises where not even that helps, such as for a lock or a generator.
    """
    try:
        return pickle.dumps(value, protocol=5)
    except _NO_NAME:
        pass
    try:
        return _dumped(value, _ByName)
    except _NO_NAME:
        return _dumped(value, _by_name_or_value())


def loads(data: Any) -> Any:
    """The inverse of :func:`dumps`.

    Raises:
        StateError: if the program has no class of a name that the data refers to.
    """
    try:
        return pickle.loads(data)
    except (ImportError, AttributeError):
        return _FromNames(io.BytesIO(data)).load()


def plain_loads(data: bytes) -> Any:
    """The same of plain values alone: numbers, text, bytes, and containers of them.

    Raises:
        StateError: if there is an object of any class, or a function.
    """
    return _Plain(io.BytesIO(data)).load()


def _dumped(value: Any, pickler: Callable[..., pickle.Pickler]) -> bytes:
    with io.BytesIO() as file:
        pickler(file, protocol=5).dump(value)
        return file.getvalue()


class _ByName(pickle.Pickler):
    """Names the classes of the program, too."""

    def reducer_override(self, obj: Any) -> Any:
        """Called for everything but plain values and containers."""
        name = _names.get(id(obj))
        return NotImplemented if name is None else (class_of_name, name)


@lru_cache(maxsize=1)
def _by_name_or_value() -> Callable[..., pickle.Pickler]:
    """The slowest, which pickles what has no name by value."""
    import cloudpickle

    class ByNameOrValue(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            name = _names.get(id(obj))
            return super().reducer_override(obj) if name is None else (class_of_name, name)

    return ByNameOrValue


class _Plain(pickle.Unpickler):
    """Makes nothing but what has a form of its own in pickles."""

    def find_class(self, module: str, name: str) -> Any:
        raise StateError(f"what is stored should be plain values, and has {name} of the module {module}")


class _FromNames(pickle.Unpickler):
    """Looks for classes in the program too, and says which one is missing."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            return class_of_name(module, name)
