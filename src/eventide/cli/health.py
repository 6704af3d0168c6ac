"""Health of a machine for jobs: one finding for each thing they need, and what to do where it is missing."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from eventide import __version__
from eventide.errors import ProgramError
from eventide.spark.java import check_java, java_version

_PACKAGE = "eventide"
_OF_DEVELOPERS = {"bench", "dev", "docs", "lint", "test"}
_LEAST_FREE_GB = 1
_LEAST_MEMORY_GB = 2
_LOCAL_ADDRESS = "127.0.0.1"
_LIMIT_OF_CONTAINER = Path("/sys/fs/cgroup/memory.max")


class State(StrEnum):
    """How something is."""

    FINE = "fine"
    ABSENT = "absent"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding about one thing that jobs need: what was found, how that is, and what to do if it is not fine."""

    what: str
    found: str
    state: State = State.FINE
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the finding as JSON values."""
        return {"what": self.what, "found": self.found, "state": str(self.state), "advice": self.advice}


def findings() -> list[Finding]:
    """All that can be seen without starting Spark. Nothing heavy is imported: versions are those of the packages."""
    return [
        Finding("eventide", f"{__version__}, {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}"),
        Finding("Python", f"{platform.python_version()}, {sys.executable}"),
        java(),
        *libraries(),
        temporary_files(),
        local_address(),
        machine(),
    ]


def java() -> Finding:
    """The Java that Spark would be started with."""
    try:
        program = check_java()
    except ProgramError as error:
        return Finding("Java", "none that Spark can use", State.WRONG, str(error))
    return Finding("Java", f"{java_version(program)}, {program}")


def libraries() -> Iterator[Finding]:
    """The libraries that eventide's package asks for, and those of each extra that is for users."""
    try:
        package = metadata.distribution(_PACKAGE)
    except metadata.PackageNotFoundError:
        advice = "so the versions that it needs are not known here; install it, for instance with: pip install -e ."
        yield Finding("libraries", "eventide runs from its source and is not installed", State.ABSENT, advice)
        return
    for requirement in _asked_for(""):
        yield library(requirement)
    for extra in sorted(set(package.metadata.get_all("Provides-Extra", [])) - _OF_DEVELOPERS):
        for requirement in _asked_for(extra):
            yield library(requirement, extra)


def library(requirement: Requirement, extra: str = "") -> Finding:
    """One library: whether it is there, in a version that fits."""
    what = f"{requirement.name} ({extra})" if extra else requirement.name
    get = f"pip install '{_PACKAGE}[{extra}]'" if extra else f"pip install '{requirement.name}{requirement.specifier}'"
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return Finding(what, "not installed", State.ABSENT if extra else State.WRONG, get)
    if not requirement.specifier.contains(version, prereleases=True):
        return Finding(what, f"{version}, and {requirement.specifier} is needed", State.WRONG, get)
    return Finding(what, version)


def _asked_for(extra: str) -> Iterator[Requirement]:
    """Requirements of the package itself, or of an extra; an extra that is made of others is taken apart."""
    for text in metadata.requires(_PACKAGE) or ():
        one = Requirement(text)
        of_the_extra = one.marker is not None and "extra" in str(one.marker)
        if of_the_extra != bool(extra) or (one.marker is not None and not one.marker.evaluate({"extra": extra})):
            continue
        if one.name == _PACKAGE:
            for part in sorted(one.extras):
                yield from _asked_for(part)
        else:
            yield one


def temporary_files() -> Finding:
    """The folder where Spark keeps what it shuffles, and local jobs their state."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir()
    advice = "let SPARK_LOCAL_DIRS and TMPDIR lead to a folder with room"
    try:
        with tempfile.TemporaryFile(dir=folder):
            free_gb = shutil.disk_usage(folder).free / 1e9
    except OSError as error:
        return Finding("temporary files", f"{folder} cannot be written: {error}", State.WRONG, advice)
    found = f"{folder}, {free_gb:.1f} GB free"
    if free_gb < _LEAST_FREE_GB:
        return Finding("temporary files", found, State.WRONG, advice)
    return Finding("temporary files", found)


def local_address() -> Finding:
    """The address of this machine on which a local Spark listens."""
    try:
        with socket.create_server((_LOCAL_ADDRESS, 0)):
            return Finding("local address", _LOCAL_ADDRESS)
    except OSError as error:
        advice = "a local Spark and its workers talk to each other there; let the firewall or container allow it"
        return Finding("local address", f"{_LOCAL_ADDRESS} cannot be listened on: {error}", State.WRONG, advice)


def machine() -> Finding:
    """Processors and memory."""
    cores = os.cpu_count() or 1
    memory_gb = _memory_gb()
    if memory_gb is None:
        return Finding("machine", f"{platform.system()}, {cores} processor(s), memory not known")
    found = f"{platform.system()}, {cores} processor(s), {memory_gb:.1f} GB of memory"
    if memory_gb < _LEAST_MEMORY_GB:
        advice = f"Spark and its workers take {_LEAST_MEMORY_GB} GB, even for small jobs"
        return Finding("machine", found, State.WRONG, advice)
    return Finding("machine", found)


def _memory_gb() -> float | None:
    """All of the memory, or what a container may have of it; None where the system does not say it this way."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    with suppress(OSError, ValueError):  # "max" is no number
        total = min(total, int(_LIMIT_OF_CONTAINER.read_text()))
    return total / 1e9
