"""``eventide doctor``: whether this machine has what jobs need, and whether a small job runs."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from packaging.requirements import Requirement
from rich.table import Table
from rich.text import Text

from eventide import __version__
from eventide.cli.answers import AsJson, answer, started_spark
from eventide.errors import DISTRIBUTION, ProgramError, getting
from eventide.spark.session.java import check_java, java_version

_ANOTHER_PROJECT = "eventide"
"""A distribution on the public index that has modules of this name, too."""
_OF_DEVELOPERS = {"bench", "build", "demo", "dev", "docs", "lint", "matrix", "notebooks", "test"}
_LEAST_FREE_GB = 1
_LEAST_MEMORY_GB = 2
_LOCAL_ADDRESS = "127.0.0.1"
_LIMIT_OF_CONTAINER = Path("/sys/fs/cgroup/memory.max")
_EXPECTED = [20, 25]


def doctor(
    spark: Annotated[bool, typer.Option("--spark", help="Also run a small job on Spark.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check whether this machine can run jobs, and say how to install what is missing.

    Checks Python, Java, libraries and extras with their versions, the temporary folder, the local address that Spark
    listens on, processors and memory. The exit code is 1 if a job could not run. A missing extra is not a problem.

    For example:

        eventide doctor           # versions, and what is missing
        eventide doctor --spark   # also run a job with state
        eventide doctor --json    # for a bug report
    """
    found = findings()
    if spark and all(finding.state is not Health.WRONG for finding in found):
        found.append(tried())
    fine = all(finding.state is not Health.WRONG for finding in found)
    document = {"fine": fine, "findings": [asdict(finding) for finding in found]}
    answer(document, _table(found), as_json=as_json, fine=fine)


class Health(StrEnum):
    """The state of one check."""

    FINE = "fine"
    ABSENT = "absent"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """Finding about one thing that jobs need: its state, a judgement, and a remedy if it is not fine."""

    what: str
    found: str
    state: Health = Health.FINE
    advice: str = ""


def findings() -> list[Check]:
    """All that can be seen without starting Spark. Nothing heavy is imported: versions are those of the packages."""
    return [
        Check("eventide", f"{__version__}, {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}"),
        *another_project(),
        Check("Python", f"{platform.python_version()}, {sys.executable}"),
        java(),
        *libraries(),
        temporary_files(),
        local_address(),
        machine(),
    ]


def another_project() -> Iterator[Check]:
    """The project that has this name on the public index, if it is installed beside eventide."""
    for other in metadata.distributions(name=_ANOTHER_PROJECT):
        found = f"{_ANOTHER_PROJECT} {other.version} is another project, whose modules have the same names"
        advice = f"pip uninstall {_ANOTHER_PROJECT}, and then pip install --force-reinstall --no-deps {DISTRIBUTION}"
        yield Check("another eventide", found, Health.WRONG, advice)


def java() -> Check:
    """The Java that Spark would be started with."""
    try:
        program = check_java()
    except ProgramError as error:
        return Check("Java", "none that Spark can use", Health.WRONG, str(error))
    return Check("Java", f"{java_version(program)}, {program}")


def libraries() -> Iterator[Check]:
    """The libraries that eventide's package asks for, and those of each extra that is for users."""
    try:
        package = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        advice = "so the versions that it needs are not known here; install it, for instance with: pip install -e ."
        yield Check("libraries", "eventide runs from its source and is not installed", Health.ABSENT, advice)
        return
    for requirement in _asked_for(""):
        yield library(requirement)
    for extra in sorted(set(package.metadata.get_all("Provides-Extra", [])) - _OF_DEVELOPERS):
        for requirement in _asked_for(extra):
            yield library(requirement, extra)


def library(requirement: Requirement, extra: str = "") -> Check:
    """One library: whether it is there, in a version that fits."""
    what = f"{requirement.name} ({extra})" if extra else requirement.name
    get = getting(extra) if extra else f"pip install '{requirement.name}{requirement.specifier}'"
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return Check(what, "not installed", Health.ABSENT if extra else Health.WRONG, get)
    if not requirement.specifier.contains(version, prereleases=True):
        return Check(what, f"{version}, and {requirement.specifier} is needed", Health.WRONG, get)
    return Check(what, version)


def temporary_files() -> Check:
    """The folder where Spark keeps what it shuffles, and local jobs their state."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir()
    advice = "let SPARK_LOCAL_DIRS and TMPDIR point to a folder with free space"
    try:
        with tempfile.TemporaryFile(dir=folder):
            free_gb = shutil.disk_usage(folder).free / 1e9
    except OSError as error:
        return Check("temporary files", f"{folder} cannot be written: {error}", Health.WRONG, advice)
    found = f"{folder}, {free_gb:.1f} GB free"
    if free_gb < _LEAST_FREE_GB:
        return Check("temporary files", found, Health.WRONG, advice)
    return Check("temporary files", found)


def local_address() -> Check:
    """The address of this machine on which a local Spark listens."""
    try:
        with socket.create_server((_LOCAL_ADDRESS, 0)):
            return Check("local address", _LOCAL_ADDRESS)
    except OSError as error:
        advice = "a local Spark and its workers talk to each other there; let the firewall or container allow it"
        return Check("local address", f"{_LOCAL_ADDRESS} cannot be listened on: {error}", Health.WRONG, advice)


def machine() -> Check:
    """Processors and memory."""
    cores = os.cpu_count() or 1
    memory_gb = _memory_gb()
    if memory_gb is None:
        return Check("machine", f"{platform.system()}, {cores} processor(s), memory not known")
    found = f"{platform.system()}, {cores} processor(s), {memory_gb:.1f} GB of memory"
    if memory_gb < _LEAST_MEMORY_GB:
        advice = f"Spark and its workers take {_LEAST_MEMORY_GB} GB, even for small jobs"
        return Check("machine", found, Health.WRONG, advice)
    return Check("machine", found)


def tried() -> Check:
    """Sum ten numbers in windows on Spark: that needs a session, Python workers, Arrow, and RocksDB for the state."""
    from eventide.api.windows import TumblingEventTimeWindows
    from eventide.common import Time, Types, WatermarkStrategy
    from eventide.connectors.sources import NumberSequenceSource
    from eventide.datastream import StreamExecutionEnvironment

    started = time.monotonic()
    try:
        started_spark()
        with tempfile.TemporaryDirectory(prefix="eventide-doctor-") as folder:
            env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
            env.get_checkpoint_config().set_checkpoint_storage_dir(folder)
            strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
            sums = (
                env.from_source(NumberSequenceSource(0, 9), strategy, "numbers")
                .key_by(lambda number: number % 2, Types.LONG())
                .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
                .reduce(lambda a, b: a + b)
            )
            found = sorted(sums.execute_and_collect())
    except Exception as error:  # whatever is wrong with Spark here is what was asked for
        return Check("a job on Spark", f"failed: {error}", Health.WRONG, "the log above may say more")
    if found != _EXPECTED:
        return Check("a job on Spark", f"gave {found}, not {_EXPECTED}", Health.WRONG, "please report this as a fault")
    return Check("a job on Spark", f"gave the expected result after {time.monotonic() - started:.0f} s")


_MARKS = {Health.FINE: Text("ok", "green"), Health.ABSENT: Text("-", "dim"), Health.WRONG: Text("missing", "bold red")}


def _table(found: list[Check]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for finding in found:
        said = finding.found if not finding.advice else f"{finding.found}; {finding.advice}"
        table.add_row(_MARKS[finding.state], finding.what, said)
    return table


def _asked_for(extra: str) -> Iterator[Requirement]:
    """Requirements of the package itself, or of an extra; an extra that is made of others is taken apart."""
    for text in metadata.requires(DISTRIBUTION) or ():
        one = Requirement(text)
        of_the_extra = one.marker is not None and "extra" in str(one.marker)
        if of_the_extra != bool(extra) or (one.marker is not None and not one.marker.evaluate({"extra": extra})):
            continue
        if one.name == DISTRIBUTION:
            for part in sorted(one.extras):
                yield from _asked_for(part)
        else:
            yield one


def _memory_gb() -> float | None:
    """All of the memory, or what a container may have of it; None if the system does not say it this way."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    with suppress(OSError, ValueError):  # "max" is no number
        total = min(total, int(_LIMIT_OF_CONTAINER.read_text()))
    return total / 1e9
