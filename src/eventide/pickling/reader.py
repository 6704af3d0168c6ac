"""Reads a pickle so that it changes only the objects that it makes.

An opcode, BUILD, sets attributes of any object. Of a class or a function it would set them for the whole process, and
Python's unpickler has no place to forbid that. So the unpickler gets a stand-in for each class and function. It makes
what the class would make, and has nothing that could be set. A class that is itself a value, and not only what makes
one, must be the real one: where a stand-in is left in the value, and so has more references than before, or is given to
a function or a class of the program, the pickle is read again by Python's slower unpickler. That one's BUILD looks at
what it changes (decision 33).
"""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Iterable
from enum import Enum
from sys import getrefcount
from types import FunctionType, MethodType, MethodWrapperType
from typing import TYPE_CHECKING, Any, ClassVar

from eventide.errors import StateError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_IMMUTABLE = 1 << 8
"""The flag of types whose attributes Python itself keeps from being set (``Py_TPFLAGS_IMMUTABLETYPE``)."""


_CONTAINERS = frozenset({tuple, list, dict, set, frozenset})
_OURS = f"{__name__.partition('.')[0]}."


class Unchanging(type):
    """The type of classes whose attributes no pickle can set."""

    @property
    def __setstate__(cls) -> Any:  # noqa: PLE0302
        """Refuse: BUILD asks a class for this before it sets attributes."""
        raise _changes(cls.__qualname__)


class Form(metaclass=Unchanging):
    """A value that a pickle has described in part; BUILD gives the rest, and :meth:`value` makes the value."""

    __slots__ = ()

    def value(self) -> Any:
        """The value.

        Raises:
            StateError: The pickle says something that is not allowed.
        """
        raise NotImplementedError


class _IsGivenOn(Exception):
    """A pickle gives a stand-in to something that could look at it."""


class _Makes(Unchanging):
    """The type of stand-ins of classes."""

    kind: Any

    def __call__(cls, *args: object, **named: object) -> Any:
        if _has_stand_in(args):
            raise _IsGivenOn
        return cls.kind(*args, **named)


class _GivesMembers(_Makes):
    """The type of stand-ins of enums, which make no objects: they give those that the process has."""

    def __call__(cls, *args: object, **named: object) -> Any:
        return shared(cls.kind(*args, **named))


class _Shared(threading.local):
    """The objects of the process that the current pickle refers to, each with its class and its attributes before."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, type, dict[str, Any]]] = []


_stand_ins: dict[int, Any] = {}
"""Stand-ins of classes and functions, by the id of the original, which each stand-in keeps alive."""

_safe: dict[int, Any] = {}
"""The classes that Python itself keeps from being changed, by their ids."""

_unused: dict[int, int] = {}
"""How many references a stand-in has while no value has it, by its id."""

_shared = _Shared()
_held = threading.RLock()


def shared(value: object) -> Any:
    """Give a pickle an object of the process, such as a member of an enum: it must be the same after the reading."""
    _shared.given.append((value, type(value), dict(getattr(value, "__dict__", {}))))
    return value


def forget(number: int) -> None:
    """Let go of a class that no data refer to any more, by its id."""
    _unused.pop(id(_stand_ins.pop(number, None)), None)


class Reader(pickle.Unpickler):
    """An unpickler whose subclasses say what data may name.

    ``class_for`` gives what there is under a name, and ``by_name`` is the function that pickles call to have that.
    """

    @staticmethod
    def class_for(module: str, name: str) -> Any:
        """Give the class, or the function, of a module and a name.

        Raises:
            StateError: Data may not name it.
        """
        raise NotImplementedError

    @staticmethod
    def by_name(module: str, name: str) -> Any:
        """Stands for the function that pickles call to get the object of a name."""
        raise NotImplementedError

    met: set[Any] | None = None
    """The stand-ins that the pickle has met."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the object of a name, or its stand-in."""
        found = self.class_for(module, name)
        stand_in = _stand_ins.get(id(found))
        if stand_in is None:
            if found is self.by_name:
                return self._another().find_class.__call__  # type: ignore[operator]
            stand_in = None if id(found) in _safe else _stand_in_of(found)
            if stand_in is None:
                return found
        if self.met is None:
            self.met = set()
        self.met.add(stand_in)
        return stand_in

    def _another(self) -> Reader:
        """Return an unpickler whose method a pickle can call; this one's method would keep all stand-ins alive."""
        if self.met is None:
            self.met = set()
        another = type(self)(io.BytesIO())
        another.met = self.met
        return another

    def again(self, error: Exception, data: Buffer) -> Any:
        """Read again a pickle that led to an error: a class of the program may have refused a stand-in.

        Raises:
            Exception: The pickle leads to it all the same.
        """
        if _shared.given:
            _look_after_shared()
        if isinstance(error, pickle.UnpicklingError | EOFError):
            raise StateError(f"the stored data cannot be read: {error!r}") from error
        if self.met is None or isinstance(error, StateError):
            raise error
        return _exactly(type(self), data)


def read(kind: type[Reader], data: Buffer) -> Any:
    """Read a pickle.

    Args:
        kind: Says what it may name.
        data: The pickle, as an object with a buffer.

    Raises:
        StateError: The data are not a pickle, name a forbidden class, or change an object of the process.
        Exception: Whatever the classes of the objects raise.
    """
    reader = kind(io.BytesIO(data))
    try:
        value = reader.load()
    except Exception as error:
        return reader.again(error, data)
    met = reader.met
    if met is None:
        return value
    del reader  # it has the stand-ins, too
    if _shared.given:
        _look_after_shared()
    for stand_in in met:
        if getrefcount(stand_in) > _unused.get(id(stand_in), 0):
            break
    else:
        return value
    del value, met, stand_in
    return _exactly(kind, data)


def _stand_in_of(found: object) -> Any:
    """Return the stand-in of an object that data name, or None if none of its attributes can be set."""
    if isinstance(found, type):
        if found.__flags__ & _IMMUTABLE:
            _safe[id(found)] = found
            return None
        if issubclass(type(found), Unchanging) and not issubclass(found, Form):
            return None
    with _held:
        if id(found) not in _stand_ins:
            _stand_ins[id(found)] = _made(found)
            [count] = [getrefcount(stand_in) for stand_in in {_stand_ins[id(found)]}]
            _unused[id(_stand_ins[id(found)])] = count
        return _stand_ins[id(found)]


def _has_stand_in(arguments: Iterable[Any]) -> bool:
    """Whether there is a stand-in among arguments, or in a container among them, which may contain itself."""
    waiting, seen = [arguments], set[int]()
    while waiting:
        for value in waiting.pop():
            kind = type(value)
            if kind is _Makes or kind is _GivesMembers or kind is MethodWrapperType:
                return True
            if kind in _CONTAINERS and id(value) not in seen:
                seen.add(id(value))
                waiting.append([*value, *value.values()] if kind is dict else value)
    return False


def _calls(function: FunctionType) -> Any:
    """Return what calls a function of the program, whose attributes cannot be set."""

    def call(*args: object) -> Any:
        if _has_stand_in(args):
            raise _IsGivenOn
        return function(*args)

    return call.__call__  # type: ignore[operator]


def _made(found: Any) -> Any:
    if isinstance(found, FunctionType) and not found.__module__.startswith(_OURS):
        return _calls(found)
    if not isinstance(found, type):
        return found.__call__  # of what is defined in C, and so nothing can be set
    names: dict[str, Any] = {"__module__": found.__module__, "__qualname__": found.__qualname__}
    if issubclass(found, Form):
        return Unchanging(found.__name__, (found,), {**names, "__slots__": ()})
    names["kind"] = found
    if issubclass(found, Enum):
        return _GivesMembers(
            found.__name__, (), {**names, "__new__": lambda _, *args: shared(found.__new__(found, *args))}
        )
    new: Any = found.__new__
    if new is object.__new__ and found.__init__ is not object.__init__:
        return _Makes(found.__name__, (), {**names, "__new__": MethodType(new, found)})  # which takes no notice of more

    def make(_: type, *args: object, **named: object) -> Any:
        return new(found, *args, **named)

    return _Makes(found.__name__, (), {**names, "__new__": make})


def _look_after_shared() -> None:
    """Undo the changes that the pickle made to objects of the process.

    Raises:
        StateError: It has changed something.
    """
    given, _shared.given = _shared.given, []
    changed = None
    for value, kind, before in given:
        now = getattr(value, "__dict__", {})
        if type(value) is not kind or now.keys() != before.keys() or any(now[k] is not v for k, v in before.items()):
            if type(value) is not kind:
                object.__setattr__(value, "__class__", kind)
            value.__dict__.clear()
            value.__dict__.update(before)
            changed = kind
    if changed is not None:
        raise _changes(f"an object of {changed.__qualname__}")


def _exactly(kind: type[Reader], data: Buffer) -> Any:
    reader = _Exact(io.BytesIO(data))
    reader.kind = kind
    try:
        return reader.load()
    finally:
        _look_after_shared()


def _is_form(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Form)


class _Exact(pickle._Unpickler):
    """Python's unpickler in Python: has the classes themselves, and looks at each object before its state is set."""

    kind: type[Reader]
    stack: list[Any]
    memo: dict[int, Any]
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.named: dict[int, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        found = self.kind.class_for(module, name)
        if found is self.kind.by_name:
            return self.find_class.__call__  # type: ignore[operator]
        self.named[id(found)] = found
        return _stand_in_of(found) if _is_form(found) else found

    def load_build(self) -> None:
        """Set the state of an object; one that is told in parts is complete then, and takes the place of its form."""
        made = self.stack[-2]
        if issubclass(type(made), type | Enum) or id(made) in self.named or _is_of_numpy(made):
            raise _changes(f"something of {type(made).__qualname__}")
        super().load_build()  # type: ignore[misc]
        if issubclass(type(made), Form):
            value = self.stack[-1] = made.value()
            for place, known in self.memo.items():
                if known is made:
                    self.memo[place] = value

    dispatch[pickle.BUILD[0]] = load_build


def _is_of_numpy(made: object) -> bool:
    """Whether an object is an array or a type of numpy's, which take whatever state they are given."""
    return any(base.__module__ == "numpy" and base.__name__ in {"ndarray", "dtype"} for base in type(made).__mro__)


def _changes(what: str) -> StateError:
    return StateError(
        f"the stored data would set attributes of {what}, which they did not create: somebody else has written into "
        "the checkpoint, and none of that was done"
    )
