"""Parts of a program as bytes, for the way to the workers, and the classes that every worker gets beside them.

Within one process, they are copied in the same way, from bytes that were made once.
"""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from weakref import WeakValueDictionary

import cloudpickle

from eventide.common._pickles import ClassName, bring, class_name
from eventide.errors import ProgramError


@dataclass(frozen=True, slots=True)
class Program:
    """A part of a program, with those classes of the whole program that no module has.

    An element may meet any part of the program, and its class is named, not sent along: so each part brings them all.
    ``start`` names the start of the program that it is sent for: a worker may have served the one before.
    """

    part: Any
    classes: tuple[type, ...]
    start: str


def classes_of(parts: Iterable[tuple[Any, str]]) -> tuple[type, ...]:
    """The classes that travel with parts of a program, each given with what a message may call it.

    They are those of the main file, and those made inside functions, that anything in the parts refers to. Where two
    have one name, nobody could tell which of them a name means, so neither is among them.

    Raises:
        ProgramError: as :func:`dumps_program`.
    """
    return _by_name(_pickled(value, what, _Pickler).by_value for value, what in parts)


def _by_name(kinds_of_parts: Iterable[Iterable[type]]) -> tuple[type, ...]:
    named: dict[ClassName, list[type]] = defaultdict(list)
    for kind in chain.from_iterable(kinds_of_parts):
        kinds = named[class_name(kind)]
        if not any(kind is known or _is_made_into(kind, known) for known in kinds):
            kinds.append(kind)
    return tuple(kinds[0] for kinds in named.values() if len(kinds) == 1)


def _is_made_into(before: type, kind: type) -> bool:
    """Whether a class is what ``dataclass(slots=True)`` found and made another one of, which still refers to it."""
    fields = vars(kind).get("__dataclass_fields__")
    return fields is not None and fields is vars(before).get("__dataclass_fields__")


def dumps_program(value: Any, what: str, classes: tuple[type, ...] = (), start: str = "") -> bytes:
    """Pickle a part of the user's program, functions and classes by value.

    Raises:
        ProgramError: if it holds something that cannot travel, such as an open file, a lock or a SparkSession.
    """
    return _pickled(Program(value, classes, start), what, _Pickler).content


def loads_program(payload: bytes) -> Program:
    """The inverse of :func:`dumps_program`; the classes are known in this process from then on."""
    program: Program = pickle.loads(payload)
    bring(program.classes)
    return program


class Copies:
    """Parts of a program in the process that they were made in, any number of times.

    What can travel can be copied, and nothing else. Classes are not copied: those of the main file, and those made
    inside functions, are what they were.

    Args:
        parts: each with what a message may call it.

    Raises:
        ProgramError: as :func:`dumps_program`.
    """

    def __init__(self, parts: Sequence[tuple[Any, str]]) -> None:
        self._parts = parts  # keeps their classes alive
        self._pickled = [_pickled(value, what, _CopyPickler) for value, what in parts]
        self.classes = _by_name(pickled.by_value for pickled in self._pickled)

    def copy(self, number: int) -> Any:
        """Another copy of the part of a number, as it was when all this was made."""
        return pickle.loads(self._pickled[number].content)


_kept: WeakValueDictionary[int, type] = WeakValueDictionary()
"""The classes that copies refer to."""


@dataclass(frozen=True, slots=True)
class _Pickled:
    content: bytes
    by_value: list[type]


def _pickled(value: Any, what: str, kind: type[_Pickler]) -> _Pickled:
    with io.BytesIO() as file:
        pickler = kind(file)
        try:
            pickler.dump(value)
        except Exception as error:
            raise ProgramError(
                f"{what} cannot be sent to the workers: {error!r}. A function must not hold open files, locks, "
                "connections or a SparkSession; create those in its open() method"
            ) from error
        return _Pickled(file.getvalue(), pickler.by_value)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Takes note of the classes that it pickles by value."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.by_value: list[type] = []

    def reducer_override(self, obj: Any) -> Any:
        reduced = super().reducer_override(obj)
        if isinstance(obj, type) and reduced is not NotImplemented and obj.__module__ != "builtins":
            self.by_value.append(obj)
        return reduced


class _CopyPickler(_Pickler):
    """Refers to those classes instead: pickle would set all attributes of the class anew with every copy.

    What they refer to is pickled for nothing but to find the classes in it.
    """

    def reducer_override(self, obj: Any) -> Any:
        reduced = super().reducer_override(obj)
        if not self.by_value or self.by_value[-1] is not obj:
            return reduced
        _kept[id(obj)] = obj
        state = reduced[2] if len(reduced) > 2 else None
        return _kept_class, (id(obj),), state, None, None, _left_as_it_is


def _kept_class(number: int) -> type:
    return _kept[number]


def _left_as_it_is(kind: type, state: Any) -> type:
    return kind
