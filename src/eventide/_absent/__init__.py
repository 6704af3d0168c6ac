"""Names of PyFlink's that a module of eventide does not define: found where they are, or refused with a reason.

`finder_of_names` makes the ``__getattr__`` of a module. It finds names that the module hands out lazily; names that
PyFlink's module hands out because it imports them; and names of Flink 1, with a warning. It refuses any other name: the
error says why eventide lacks it, and what to do instead. A finder of imports, `AbsentModules`, refuses a module
without a counterpart; an attribute that `says_what_is_absent` puts into a class refuses a member. Type checkers see
none of this: to them, absent names do not exist.
"""

from __future__ import annotations

import dis
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from inspect import getattr_static
from types import FrameType, MappingProxyType, ModuleType
from typing import Any, NoReturn, TypeVar

from eventide._absent._elsewhere import OLDER_NAMES, REEXPORTS
from eventide._absent._reasons import MEMBERS, MODULES, NAMES

__all__ = [
    "MEMBERS",
    "MODULES",
    "NAMES",
    "OLDER_NAMES",
    "REEXPORTS",
    "AbsentModules",
    "finder_of_names",
    "says_what_is_absent",
]

_C = TypeVar("_C", bound=type)

_ROOT = "eventide."
_NONE: Mapping[str, Any] = MappingProxyType({})


def sentence(name: str, reason: str) -> str:
    """What is said about a name that is absent."""
    return f"{name} is not in eventide: {reason}. See 'From PyFlink' and 'Parity' in eventide's documentation."


class AbsentModules(MetaPathFinder):
    """Says why a module of PyFlink's is not here. It stands last among the finders, so it slows down no import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Nothing, for modules that PyFlink has not either.

        Raises:
            ModuleNotFoundError: PyFlink has such a module.
        """
        name = fullname.removeprefix(_ROOT)
        if name == fullname or name not in MODULES:
            return None
        raise ModuleNotFoundError(sentence(fullname, MODULES[name]))


def finder_of_names(module: str, lazy: Mapping[str, str] = _NONE) -> Callable[[str], object]:
    """Make the ``__getattr__`` of a module: it finds the names that the module itself does not define.

    An ``import`` statement replaces an AttributeError, and its text, by an ImportError of its own. So the finder raises
    an ImportError with the reason when an ``import`` statement asks for an absent name, and an AttributeError when
    anything else asks, such as ``hasattr``.

    Args:
        module: The full name of the module.
        lazy: The modules, by name, of what this one hands out and loads when it is first asked for.
    """
    inside = module.removeprefix(_ROOT)
    reexports, older = REEXPORTS.get(inside, _NONE), OLDER_NAMES.get(inside, _NONE)

    def __getattr__(name: str) -> object:  # noqa: N807 - the name that tracebacks show
        if name in older:
            return _older(sys._getframe(1), f"{module}.{name}", *older[name])
        home = lazy.get(name) or reexports.get(name)
        if home is not None:
            value = _defined_in(home, name)
            setattr(sys.modules[module], name, value)
            return value
        if name not in NAMES:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        said = sentence(f"{module}.{name}", NAMES[name])
        raise ImportError(said) if _is_import(sys._getframe(1)) else AttributeError(said)

    return __getattr__


def _defined_in(home: str, name: str) -> object:
    """The object that a module defines under a name, or the module itself if the name is its own."""
    module = import_module(home)
    return module if home.endswith(f".{name}") else getattr(module, name)


def _older(asking: FrameType, name: str, home: str, successor: str) -> object:
    """The successor of a name of Flink 1, with a warning at the line of the program that asks for it."""
    if asking.f_globals.get("__name__") != "importlib._bootstrap":  # which looks before the import statement asks
        warnings.warn(f"{name} is of Flink 1; use {successor}", DeprecationWarning, stacklevel=3)
    return _defined_in(*home.rsplit(".", 1))


def _is_import(frame: FrameType) -> bool:
    """Whether what a frame does is to import a name from a module."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def says_what_is_absent(cls: _C) -> _C:
    """Let a class say why it has not all the members that PyFlink's class of this name has."""
    for member, reason in MEMBERS[cls.__qualname__].items():
        if member not in vars(cls):
            setattr(cls, member, _AbsentMember(sentence(f"{cls.__qualname__}.{member}", reason)))
    inherited: Any = cls.__dir__

    def present(self: object) -> list[str]:
        return [name for name in inherited(self) if not isinstance(getattr_static(self, name, None), _AbsentMember)]

    cls.__dir__ = present  # type: ignore[assignment, method-assign]
    return cls


class _AbsentMember:
    """An attribute that is not there, on the class and on its objects: ``hasattr`` is false."""

    def __init__(self, said: str) -> None:
        self._said = said

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(self._said)
