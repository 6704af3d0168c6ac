"""Fate of each name of PyFlink's in eventide: here, here with a difference, or not here."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from eventide._absent import MEMBERS, MODULES, NAMES
from parity.differences import DIFFERENCES

# What PyFlink 2.3.0 has; see record.py.
_RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "pyflink_signatures.json").read_text())
FACADES: dict[str, list[str]] = _RECORDED["names"]
FUNCTIONS: dict[str, str | None] = _RECORDED["functions"]
CLASSES: dict[str, dict[str, str | None]] = _RECORDED["classes"]
IMPORTS: dict[str, dict[str, str | None]] = _RECORDED["imports"]

_NOTHING = object()


class Place(Enum):
    HERE = "here"
    DIFFERS = "here with a difference"
    ABSENT = "not here"


@dataclass(frozen=True)
class Verdict:
    place: Place
    why: str = ""


def all_names() -> Iterator[str]:
    """Every recorded name, by its path below `pyflink`: in facades, imports, functions, classes and their members."""
    yield from (
        f"{module}.{name}" for handed_out in (FACADES, IMPORTS) for module in handed_out for name in handed_out[module]
    )
    yield from FUNCTIONS
    for path, members in CLASSES.items():
        yield path
        yield from (f"{path}.{member}" for member in public(members))


def public(members: dict[str, str | None]) -> list[str]:
    return [member for member in members if not member.startswith("__")]


def verdict(path: str) -> Verdict:
    """Raises LookupError for a name that is neither here nor said to be absent."""
    parts = path.split(".")
    for i in range(1, len(parts)):
        if (module := ".".join(parts[:i])) in MODULES:
            return Verdict(Place.ABSENT, MODULES[module])
    if counterpart(path) is not _NOTHING:
        why = _difference(path)
        return Verdict(Place.DIFFERS, why) if why else Verdict(Place.HERE)
    return Verdict(Place.ABSENT, why_absent(path))


def _difference(path: str) -> str | None:
    """How a name differs: what is said of it, or of the member of a class above that it is inherited from.

    Methods that `eventide.common.accepted` makes say it themselves.
    """
    owner, _, name = path.rpartition(".")
    made: str | None = getattr(counterpart(path), "difference", None)
    if made is not None and path not in DIFFERENCES:
        return made
    if path in DIFFERENCES or owner not in CLASSES:
        return DIFFERENCES.get(path)
    above = counterpart(owner).__mro__[1:]
    inherited = (p for p in DIFFERENCES if p.endswith(f".{name}") and p.rpartition(".")[0] in CLASSES)
    return next((DIFFERENCES[p] for p in inherited if counterpart(p.rpartition(".")[0]) in above), None)


def why_absent(path: str) -> str:
    owner, _, name = path.rpartition(".")
    if name in NAMES and _is_module(owner):
        return NAMES[name]
    cls = counterpart(owner)
    if cls is _NOTHING:
        return why_absent(owner)
    for ancestor in getattr(cls, "__mro__", ()):
        if name in MEMBERS.get(ancestor.__qualname__, {}):
            return MEMBERS[ancestor.__qualname__][name]
    raise LookupError(f"{path} is neither in eventide nor in its table of what is absent, eventide/_absent.py")


def counterpart(path: str) -> Any:
    """Return what eventide has at PyFlink's path; `_NOTHING` where it has nothing there."""
    parts = path.split(".")
    modules = next((i for i in range(len(parts), 0, -1) if _is_module(".".join(parts[:i]))), 0)
    found: Any = importlib.import_module(".".join(["eventide", *parts[:modules]]))
    for part in parts[modules:]:
        found = getattr(found, part, _NOTHING)
    return found


def is_here(path: str) -> bool:
    return counterpart(path) is not _NOTHING


def _is_module(path: str) -> bool:
    """Whether PyFlink has a module at a path, and eventide too."""
    try:
        importlib.import_module(f"eventide.{path}")
    except ImportError:
        return False
    return True
