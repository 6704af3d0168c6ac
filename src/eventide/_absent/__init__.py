"""Names that PyFlink has and eventide has not: who asks for one is told why, what to do instead, and where to read.

A module without a counterpart is refused by a finder of imports, `AbsentModules`; a name in a module by its
``__getattr__``, with `no_such_name`; a member of a class by an attribute that `says_what_is_absent` puts there. All of
them look the reason up in one table. Type checkers see nothing of this: to them, the names do not exist.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from inspect import getattr_static
from types import FrameType, ModuleType
from typing import Any, NoReturn, TypeVar

from eventide._absent._reasons import MEMBERS, MODULES, NAMES

__all__ = ["MEMBERS", "MODULES", "NAMES", "AbsentModules", "no_such_name", "says_what_is_absent"]

_C = TypeVar("_C", bound=type)

_ROOT = "eventide."


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


def no_such_name(module: str, name: str) -> ImportError | AttributeError:
    """What the ``__getattr__`` of a module raises for a name that it has not.

    An ``import`` statement would replace an AttributeError, and what it says, by an ImportError of its own; so it is
    given one that says why. To all others, such as ``hasattr``, the name just is not there.
    """
    if name not in NAMES:
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    said = sentence(f"{module}.{name}", NAMES[name])
    return ImportError(said) if _is_import(sys._getframe(2)) else AttributeError(said)


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
