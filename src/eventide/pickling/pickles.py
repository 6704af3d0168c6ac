"""Users' data as bytes: plain pickles, in which a class is a name, and only the classes of the program are made.

Pickle itself names classes that a module has under their name. It cannot name a class of a program's main file in a
worker, which has a different main file, nor a class that was made inside a function. Classes that the program brings
(:func:`bring`) are named all the same. So what is stored holds no class, and a reader gets objects of the
class that the program has now.

A pickle may name anything that Python can import, and have it called. Here it may name plain classes, and those of the
program, and no function: state is data, whatever program has written it (decision 33).
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from eventide.errors import StateError
from eventide.pickling.plain_classes import INSTEAD, PLAIN_CLASSES, ClassName, class_name
from eventide.pickling.reader import Reader, forget, read

if TYPE_CHECKING:
    from typing_extensions import Buffer

_T = TypeVar("_T")

_NO_NAME = (pickle.PicklingError, AttributeError, TypeError)
"""The exceptions of pickle for a class or a function without a name."""


@dataclass(frozen=True, slots=True)
class ProgramClasses:
    """The classes of a program.

    Attributes:
        own: those that no module has, of the main file or made inside a function; they travel with the program.
        packages: the top-level names of the modules that its functions and classes are from.
        registered: classes, or functions that make objects, which the program names for itself.
    """

    own: tuple[type, ...] = ()
    packages: frozenset[str] = frozenset()
    registered: frozenset[ClassName] = frozenset()


_LISTED = sys.stdlib_module_names | {__name__.partition(".")[0]}
"""Packages whose classes of data are listed."""

_found: dict[ClassName, Any] = {}
"""Classes that data may refer to, by name: brought by programs to this process, or looked up before."""

_names: dict[int, ClassName] = {}
"""The names of the classes that programs brought."""

_packages: set[str] = set()
_registered: set[ClassName] = set()


def bring(classes: ProgramClasses) -> None:
    """Register the classes of a program, so that data written in this process refers to them by their names.

    If two classes have the same name, the one that was brought last is used.
    """
    for kind in classes.own:
        name = class_name(kind)
        before = _found.get(name)
        if before is not kind:
            _names.pop(id(before), None)
            forget(id(before))
            _found[name] = kind
            _names[id(kind)] = name
    _packages.update(classes.packages)
    _registered.update(classes.registered)


def register(kinds: Iterable[type]) -> None:
    """Let data refer to classes that one part of eventide sends to another."""
    bring(ProgramClasses(registered=frozenset(map(class_name, kinds))))


def class_of_name(module: str, name: str) -> Any:
    """The class that data refer to: that of the program, else that of the module, if it may have objects.

    Pickles call it by its own name, so it has to stay where it is.

    Raises:
        StateError: if there is no such class, or the program does not know it.
    """
    if type(module) is not str or type(name) is not str:
        check_name(module, name)
    found = _found.get((module, name))
    return _admitted(module, name) if found is None else found


def check_name(module: object, name: object) -> None:
    """Nothing, if both are text: pickles call :func:`class_of_name` with any objects, which could seem to equal some.

    Raises:
        StateError: if one is not.
    """
    if type(module) is not str or type(name) is not str:
        raise StateError(
            "the stored data name a class by objects that are not text: somebody else has written into the checkpoint, "
            "none of it was run"
        )


def is_pickle(data: bytes) -> bool:
    """Whether bytes begin as a pickle does, and not as a table of Arrow does.

    >>> is_pickle(dumps(1)), is_pickle(bytes(8))
    (True, False)
    """
    return data[:1] == pickle.PROTO


def dumps(value: object) -> bytes:
    """Pickle data.

    Raises what pickling raises: for a lock or a generator, and where neither a module nor the program has a class by
    its name, such as one that was made while the program ran.
    """
    try:
        return pickle.dumps(value, protocol=5)
    except _NO_NAME:
        with io.BytesIO() as file:
            _ByName(file, protocol=5).dump(value)
            return file.getvalue()


def loads(data: Buffer) -> Any:
    """The inverse of :func:`dumps`.

    Raises:
        StateError: if the data refer to names that the program does not have, or does not know, or are not a pickle.
    """
    return read(_OfProgram, data)


def plain_loads(data: bytes) -> Any:
    """Load plain values only: numbers, text, bytes, and containers of them.

    Raises:
        StateError: if there is an object of any class, or a function, or if the data are not a pickle.
    """
    try:
        return _Plain(io.BytesIO(data)).load()
    except _NotPlain as error:
        module, name = error.args
        raise StateError(
            f"the stored data should be plain values, and have {name} of the module {module}; restore a backup of them"
        ) from None
    except Exception as error:  # of whatever kind: the data may be anything
        raise StateError(f"the stored data cannot be read: {error!r}") from error


def plain_or(data: bytes, otherwise: _T) -> Any | _T:
    """Load plain values, as :func:`plain_loads`; return the other value where it would raise."""
    try:
        return _Plain(io.BytesIO(data)).load()
    except Exception:  # of whatever kind: the data may be anything
        return otherwise


def copied(part: _T) -> _T:
    """A copy of a part of the program in the process that has it, as it would travel. Raises what pickling raises."""
    import cloudpickle

    copy: _T = pickle.loads(cloudpickle.dumps(part))
    return copy


class _ByName(pickle.Pickler):
    """Names the classes of the program, too."""

    def reducer_override(self, obj: object) -> Any:
        """Called for everything but plain values and containers."""
        name = _names.get(id(obj))
        return NotImplemented if name is None else (class_of_name, name)


class _Plain(pickle.Unpickler):
    """Makes nothing but what has a form of its own in pickles."""

    def find_class(self, module: str, name: str) -> Any:
        raise _NotPlain(module, name)


class _NotPlain(Exception):
    """A pickle names what it may not: a module, and a class or a function in it."""


class _OfProgram(Reader):
    """Makes objects of plain classes and of those of the program alone."""

    class_for = staticmethod(class_of_name)
    by_name = staticmethod(class_of_name)


def _admitted(module: str, name: str) -> Any:
    """Return what a module has under a name, if data may refer to it.

    A module may have under any name what is from elsewhere: what counts is where a class is from.
    """
    at, package = (module, name), module.partition(".")[0]
    is_named = at in PLAIN_CLASSES or at in _registered
    is_of_program = package in _packages or package == "__main__"
    if not (is_named or is_of_program or _is_bound(at)):
        raise _gone(at) if find_spec(package) is None else _unknown(at)
    module, name = INSTEAD.get(at, at)
    try:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise _gone(at) from error
    if not is_named:
        if not isinstance(found, type) or issubclass(found, type):
            raise _unknown(at)
        if class_name(found) != at:
            return class_of_name(*class_name(found))
    _found[at] = found
    return found


def _is_bound(at: ClassName) -> bool:
    """Whether a module of the program's packages has a class of another one under a name of its own.

    What only modules are imported for is not known by that, and nothing of Python's standard library or of eventide is.
    """
    if at[0].partition(".")[0] in _LISTED:
        return False
    modules = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] in _packages]
    kinds = (kind for module in modules for kind in [*vars(module).values()] if isinstance(kind, type))
    return any(class_name(kind) == at for kind in kinds)


def _gone(at: ClassName) -> StateError:
    module, name = at
    return StateError(
        f"the stored data have objects of {name} of the module {module}, and the program has nothing of that "
        "name. It must stay in the program, where it is and in use, as long as the checkpoint has objects of "
        "it; bring it back, or start with a new checkpoint location"
    )


def _unknown(at: ClassName) -> StateError:
    module, name = at
    return StateError(
        f"the stored data refer to {name} of {module}, which is not a class that the program is known to use. If the "
        f"program makes such objects, say so: env.get_config().register_type({name.rpartition('.')[2]}). If it does "
        "not, somebody else has written into the checkpoint: none of it was run"
    )
