"""Names of PyFlink's that a module of eventide does not define: found where they are, or refused with a reason.

`hand_out_names` gives a module its ``__getattr__``. It finds names that the module hands out lazily, names that
PyFlink's module re-exports, and names of Flink 1. To any other name it answers with an AttributeError, so that
``hasattr`` is false. An ``import`` statement would swallow this error and its reason; it then looks for a submodule of
that name, and `AbsentNames`, a finder of modules, raises an ImportError with the reason. `says_what_is_absent` does the
same for members of a class. Type checkers see none of this: to them, absent names do not exist.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from inspect import getattr_static
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from eventide._absent._elsewhere import OLDER_NAMES, REEXPORTS, homes_of
from eventide._absent._reasons import MEMBERS, MODULES, NAMES

__all__ = [
    "MEMBERS",
    "MODULES",
    "NAMES",
    "OLDER_NAMES",
    "REEXPORTS",
    "AbsentNames",
    "hand_out_names",
    "homes_of",
    "says_what_is_absent",
]

_C = TypeVar("_C", bound=type)

_ROOT = "eventide."


def sentence(name: str, reason: str) -> str:
    """Say of a name that it is absent, and why."""
    return f"{name} is not in eventide: {reason}. See 'From PyFlink' and 'Parity' in eventide's documentation."


class AbsentNames(MetaPathFinder):
    """Says why a module, or a name in a module, is not here. It is asked last, so it slows down no import."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Find nothing.

        Raises:
            ImportError: PyFlink has a module or a name here, and eventide has neither.
        """
        name = fullname.removeprefix(_ROOT)
        if name != fullname and name in MODULES:
            raise ModuleNotFoundError(sentence(fullname, MODULES[name]))
        if name != fullname and name.rpartition(".")[2] in NAMES:
            raise ImportError(sentence(fullname, NAMES[name.rpartition(".")[2]]))


def hand_out_names(module: str, lazy: Mapping[str, str] | None = None) -> None:
    """Give a module a ``__getattr__`` that finds the names which the module itself does not define.

    A type checker, which would take any name of a module that defines a ``__getattr__``, does not see it.

    Args:
        module: The full name of the module.
        lazy: The modules, by name, of what this one hands out and loads when it is first asked for.
    """
    inside = module.removeprefix(_ROOT)
    older = OLDER_NAMES.get(inside, {})
    homes = {**REEXPORTS.get(inside, {}), **(lazy or {})}

    def __getattr__(name: str) -> object:  # noqa: N807 - the name that tracebacks show
        if name == "__path__":
            return []  # only where there is a path, an import statement asks the finders for a name as a submodule
        if name in older:
            home, successor = older[name]
            warnings.warn(f"{module}.{name} is of Flink 1; use {successor}", DeprecationWarning, stacklevel=2)
        elif name in homes:
            home = homes[name] if homes[name].endswith(f".{name}") else f"{homes[name]}:{name}"
        elif name in NAMES:
            raise AttributeError(sentence(f"{module}.{name}", NAMES[name]))
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = resolve_name(home)
        setattr(sys.modules[module], name, found)  # an import statement asks twice
        return found

    vars(sys.modules[module])["__getattr__"] = __getattr__


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
