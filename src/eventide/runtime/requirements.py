"""Requirements for pip, so that executors have what the functions of a program import."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from eventide.errors import ProgramError

OF_SPARK = ("pyspark", "py4j")
"""Packages that executors have in any case: those of their own Spark."""

_OURS = "eventide"
_ANOTHER_FILE = re.compile(r"((?:-r|-c|--requirement|--constraint)[ =]\s*)(?!\S*://)(\S.*)")


def asked_of_pip(requirements: Path, folder: Path, *, for_this_process: bool) -> list[str]:
    """The arguments of pip: the requirements of a file, and those of eventide in the versions of this process.

    eventide itself comes along as it is here, whatever a package index has under its name. So a line for it stands for
    what its extras need.

    Args:
        requirements: the file.
        folder: where another one may be written, without such lines.
        for_this_process: whether this process imports them, which has most of what eventide needs.

    Raises:
        ProgramError: if eventide has no such extra.
    """
    lines = requirements.read_text(encoding="utf-8-sig").splitlines()
    ours = {line: one for line in lines if (one := _of_eventide(line)) is not None}
    if ours:
        others = [_from_anywhere(line, requirements.parent) for line in lines if line not in ours]
        requirements = folder / requirements.name
        requirements.write_text("\n".join(others), encoding="utf-8")
    extras = {extra for one in ours.values() for extra in one.extras}
    needed = [one for one in _needed(extras) if not (for_this_process and _version_here(one) is not None)]
    return ["--requirement", str(requirements), *map(_as_here, needed)]


def _of_eventide(line: str) -> Requirement | None:
    """Return the requirement of eventide in a line; None if it is about something else.

    >>> _of_eventide("eventide[kafka]  # the source"), _of_eventide("-r eventide.txt"), _of_eventide("eventide-more")
    (<Requirement('eventide[kafka]')>, None, None)
    """
    try:
        found = Requirement(line.partition(" #")[0].strip())
    except InvalidRequirement:
        return None
    return found if canonicalize_name(found.name) == _OURS else None


def _from_anywhere(line: str, folder: Path) -> str:
    """A line that names another file, which pip looks for beside the one that it reads.

    >>> _from_anywhere("-r more.txt", Path("/program")), _from_anywhere("numpy", Path("/program"))
    ('-r /program/more.txt', 'numpy')
    """
    found = _ANOTHER_FILE.fullmatch(line.strip())
    return line if found is None else f"{found[1]}{folder.absolute() / found[2]}"


def _needed(extras: Iterable[str]) -> list[Requirement]:
    """Return the requirements of eventide with some extras, of which one may stand for others."""
    known, wanted = metadata.metadata(_OURS).get_all("Provides-Extra") or [], {*extras}
    if unknown := wanted.difference(known):
        raise ProgramError(f"eventide has no extra {min(unknown)!r}; it has {', '.join(sorted(known))}")
    asked = [Requirement(text) for text in metadata.requires(_OURS) or ()]
    needed = [one for one in asked if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in wanted)]
    more = wanted.union(*(one.extras for one in needed if one.name == _OURS))
    if more != wanted:
        return _needed(more)
    return [one for one in needed if one.name not in (*OF_SPARK, _OURS)]


def _as_here(needed: Requirement) -> str:
    """The version that this process has, or any that will do."""
    version = _version_here(needed)
    versions = str(needed.specifier) if version is None else f"=={version}"
    extras = f"[{','.join(sorted(needed.extras))}]" if needed.extras else ""
    return f"{needed.name}{extras}{versions}"


def _version_here(needed: Requirement) -> str | None:
    try:
        return metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return None
