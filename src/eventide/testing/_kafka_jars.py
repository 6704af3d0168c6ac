"""The jars of a Kafka broker: fetched once, by the Ivy that PySpark brings along, and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from eventide.errors import ProgramError
from eventide.spark.java import check_java

VERSION = "4.1.0"
# A broker whose log nobody writes says nothing of why it does not start.
_MODULES = (("org.apache.kafka", "kafka_2.13", VERSION), ("org.slf4j", "slf4j-simple", "1.7.36"))
_REPOSITORY = "DEFAULT_ARTIFACT_REPOSITORY"  # Spark's own name for the repository to ask instead of Ivy's default
_PATIENCE_S = 600


def kafka_jars() -> Path:
    """The folder of jars, fetched by the first who asks: half a minute, 43 MB.

    It is in the user's cache, ``$XDG_CACHE_HOME`` or ``~/.cache``, and appears there when it is complete, so that
    several processes may ask at once.

    Raises:
        ProgramError: if they cannot be fetched, with what Ivy said of it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eventide"
    kept = cache / f"kafka-{VERSION}"
    if kept.is_dir():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{kept.name}.", dir=cache) as folder:
        jars = _fetch(Path(folder))
        try:
            jars.rename(kept)
        except OSError:
            if not kept.is_dir():  # else another process was there first
                raise
    return kept


def _fetch(folder: Path) -> Path:
    """Let Ivy resolve the modules, with nothing of its own outside of this folder."""
    jars = folder / "jars"
    (folder / "ivy.xml").write_text(_module_file(), encoding="utf-8")
    command = [check_java(), "-jar", str(_ivy()), "-warn", "-cache", str(folder / "cache")]
    repository = os.environ.get(_REPOSITORY)
    if repository:
        (folder / "ivysettings.xml").write_text(_settings_file(repository), encoding="utf-8")
        command += ["-settings", str(folder / "ivysettings.xml")]
    command += ["-ivy", str(folder / "ivy.xml"), "-types", "jar", "bundle"]
    command += ["-retrieve", f"{jars}/[artifact]-[revision].[ext]"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        fetched, said = ended.returncode == 0 and jars.is_dir(), ended.stdout + ended.stderr
    except subprocess.TimeoutExpired:
        fetched, said = False, f"no end within {_PATIENCE_S} seconds"
    if not fetched:
        raise ProgramError(
            f"the jars of Kafka {VERSION} could not be fetched from the Maven repository: they are needed once, to "
            f"start a broker. Behind a proxy, say so in JAVA_TOOL_OPTIONS; name another repository in {_REPOSITORY}, "
            f"as for Spark; or give KafkaBroker(jars=...) a folder that has them. Ivy said:\n{said.strip()[-2000:]}"
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
        "the jars of Kafka are fetched by the Ivy that comes with PySpark, and there is none in its folder jars; "
        "install the whole package pyspark, or give KafkaBroker(jars=...) a folder that has them"
    )


def _module_file() -> str:
    needs = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" conf="default"/>' for org, name, rev in _MODULES
    )
    return (
        '<ivy-module version="2.0"><info organisation="eventide" module="kafka-broker"/>'
        f"<dependencies>{needs}</dependencies></ivy-module>"
    )


def _settings_file(repository: str) -> str:
    return (
        '<ivysettings><settings defaultResolver="repository"/><resolvers>'
        f'<ibiblio name="repository" m2compatible="true" root={quoteattr(repository)}/>'
        "</resolvers></ivysettings>"
    )
