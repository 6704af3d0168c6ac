"""Jars from the Maven repository: fetched once, by the Ivy that PySpark brings along, and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

from eventide.errors import ProgramError
from eventide.spark.java import check_java

Module: TypeAlias = tuple[str, str, str]
"""An organisation, a name and a version."""

_REPOSITORY = "DEFAULT_ARTIFACT_REPOSITORY"  # Spark's own name for the repository to ask instead of Ivy's default
_PATIENCE_S = 600


def fetched(name: str, *modules: Module) -> Path:
    """A folder with the jars of some modules, and of all that they need; fetched by the first who asks.

    It is in the user's cache, ``$XDG_CACHE_HOME`` or ``~/.cache``, and appears there when it is complete, so that
    several processes may ask at once.

    Args:
        name: the name of the folder, which says what is in it, with its version.
        modules: what is to be fetched.

    Raises:
        ProgramError: if something cannot be fetched, with what Ivy said of it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eventide"
    kept = cache / name
    if kept.is_dir():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=cache) as folder:
        jars = _fetch(name, modules, Path(folder))
        try:
            jars.rename(kept)
        except OSError:
            if not kept.is_dir():  # else another process was there first
                raise
    return kept


def _fetch(name: str, modules: Sequence[Module], folder: Path) -> Path:
    """Let Ivy resolve the modules, with nothing of its own outside of this folder."""
    jars = folder / "jars"
    (folder / "ivy.xml").write_text(_module_file(modules), encoding="utf-8")
    command = [check_java(), "-jar", str(_ivy()), "-warn", "-cache", str(folder / "cache")]
    repository = os.environ.get(_REPOSITORY)
    if repository:
        (folder / "ivysettings.xml").write_text(_settings_file(repository), encoding="utf-8")
        command += ["-settings", str(folder / "ivysettings.xml")]
    command += ["-ivy", str(folder / "ivy.xml"), "-types", "jar", "bundle"]
    command += ["-retrieve", f"{jars}/[artifact]-[revision].[ext]"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        is_there, said = ended.returncode == 0 and jars.is_dir(), ended.stdout + ended.stderr
    except subprocess.TimeoutExpired:
        is_there, said = False, f"no end within {_PATIENCE_S} seconds"
    if not is_there:
        raise ProgramError(
            f"the jars of {name} could not be fetched from the Maven repository; they are needed once. Behind a proxy, "
            f"say so in JAVA_TOOL_OPTIONS; name another repository in {_REPOSITORY}, as for Spark; or put them into "
            f"a folder {name!r} below eventide's in the user's cache. Ivy said:\n{said.strip()[-2000:]}"
        )
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return jars


def _ivy() -> Path:
    """The Ivy among PySpark's jars, found without loading PySpark.

    Raises:
        ProgramError: if there is none.
    """
    spec = find_spec("pyspark")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise ProgramError(
        "jars are fetched by the Ivy that comes with PySpark, and there is none in its folder jars; install the whole "
        "package pyspark"
    )


def _module_file(modules: Sequence[Module]) -> str:
    needs = "".join(f'<dependency org="{org}" name="{name}" rev="{rev}" conf="default"/>' for org, name, rev in modules)
    return (
        '<ivy-module version="2.0"><info organisation="eventide" module="fetched"/>'
        f"<dependencies>{needs}</dependencies></ivy-module>"
    )


def _settings_file(repository: str) -> str:
    return (
        '<ivysettings><settings defaultResolver="repository"/><resolvers>'
        f'<ibiblio name="repository" m2compatible="true" root={quoteattr(repository)}/>'
        "</resolvers></ivysettings>"
    )
