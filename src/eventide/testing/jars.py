"""Jars from the Maven repository: fetched once, by the Ivy that PySpark brings along, and kept in the user's cache."""

from __future__ import annotations

import os
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from eventide.errors import ProgramError
from eventide.spark.session.java import check_java

_REPOSITORY = "DEFAULT_ARTIFACT_REPOSITORY"  # Spark's own name for the repository to ask instead of Ivy's default
_PATIENCE_S = 600


def fetched(name: str, *modules: tuple[str, str, str]) -> Path:
    """A folder with the jars of some modules and of all that they need, fetched by the first call for it.

    It is in the user's cache, ``$XDG_CACHE_HOME`` or ``~/.cache``, and appears there when it is complete, so that
    several processes may ask at once.

    Args:
        name: the name of the folder, which says what is in it, with its version.
        modules: organisation, name and version of each module.

    Raises:
        ProgramError: if something cannot be fetched, with what Ivy said of it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eventide"
    kept = cache / name
    if kept.is_dir():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=cache) as folder:
        for module in modules:
            _fetch(name, module, Path(folder))
        try:
            Path(folder, "jars").rename(kept)
        except OSError:
            if not kept.is_dir():  # else another process was there first
                raise
    return kept


def _fetch(name: str, module: tuple[str, str, str], folder: Path) -> None:
    """Let Ivy resolve a module, with nothing of its own outside of this folder."""
    command = [check_java(), "-jar", _ivy(), "-warn", "-cache", str(folder / "cache")]
    if repository := os.environ.get(_REPOSITORY):
        settings = folder / "ivysettings.xml"
        settings.write_text(
            '<ivysettings><settings defaultResolver="it"/><resolvers>'
            f'<ibiblio name="it" m2compatible="true" root={quoteattr(repository)}/></resolvers></ivysettings>',
            encoding="utf-8",
        )
        command += ["-settings", str(settings)]
    command += ["-dependency", *module, "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{folder}/jars/[artifact]-[revision].[ext]"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        is_there, said = ended.returncode == 0 and (folder / "jars").is_dir(), ended.stdout + ended.stderr
    except subprocess.TimeoutExpired:
        is_there, said = False, f"no end within {_PATIENCE_S} seconds"
    if not is_there:
        raise ProgramError(
            f"the jars of {name} could not be fetched from the Maven repository; they are needed once. "
            f"If there is a proxy, name it in JAVA_TOOL_OPTIONS; name another repository in {_REPOSITORY}, as for "
            f"Spark; or put them into a folder {name!r} below eventide's in the user's cache. "
            f"Ivy said:\n{said.strip()[-2000:]}"
        )


def _ivy() -> str:
    """The Ivy among PySpark's jars, found without loading PySpark."""
    spec = find_spec("pyspark")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not found:
        raise ProgramError(
            "jars are fetched by the Ivy that comes with PySpark, and there is none in its folder jars; install the "
            "whole package pyspark"
        )
    return str(found[0])
