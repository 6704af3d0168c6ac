"""The engines of the field: the program file of each, the environment it runs in, and what it cannot say."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
_PYTHONS = ((3, 11), (3, 12))
"""For which all of the engines are built."""


@dataclass(frozen=True)
class Engine:
    """One column of the table.

    Attributes:
        name: the engine, as its users call it.
        file: its programs.
        requirements: the list of what its environment has; eventide runs in the environment of `./run`.
        package: the distribution whose version counts.
        variables: of its processes.
        reads_kafka: whether it reads and writes topics, not files.
        cannot: why it does not say some of the programs.
    """

    name: str
    file: str
    requirements: str | None
    package: str
    variables: Mapping[str, str] = field(default_factory=dict)
    reads_kafka: bool = False
    cannot: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The version that is measured."""
        if self.requirements is None:
            from importlib.metadata import version

            return version(self.package)
        lines = _requirements(self.requirements).read_text().splitlines()
        return next(line.partition("==")[2] for line in lines if line.startswith(f"{self.package}=="))

    def python(self) -> Path:
        """The interpreter of its environment, which the first call makes: some minutes.

        Raises:
            CalledProcessError: if pip cannot install what it needs.
        """
        if self.requirements is None:
            return Path(sys.executable)
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eventide"
        wanted = _requirements(self.requirements)
        digest = hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]
        place = cache / f"peers-{self.requirements}-{digest}"
        python = place / "bin" / "python"
        if not (place / "complete").exists():
            subprocess.run([_base_python(), "-m", "venv", "--clear", place], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--requirement", wanted], check=True)
            (place / "complete").touch()
        return python


def _requirements(name: str) -> Path:
    return HERE / "requirements" / f"{name}.txt"


def _base_python() -> str:
    """A Python that all engines are built for: this one, or another on the PATH.

    Raises:
        FileNotFoundError: if there is none.
    """
    if sys.version_info[:2] in _PYTHONS:
        return sys.executable
    for major, minor in _PYTHONS:
        if found := shutil.which(f"python{major}.{minor}"):
            return found
    raise FileNotFoundError("the engines need Python 3.11 or 3.12, and neither is on the PATH")


_NO_TIMERS = "it has no event-time timers"

ENGINES = (
    Engine("eventide", "of_eventide.py", None, "eventide-spark"),
    Engine("PySpark", "of_pyspark.py", "pyspark", "pyspark"),
    Engine("PyFlink, processes", "of_pyflink.py", "pyflink", "apache-flink", {"PYFLINK_MODE": "process"}),
    Engine("PyFlink, threads", "of_pyflink.py", "pyflink", "apache-flink", {"PYFLINK_MODE": "thread"}),
    Engine(
        "Bytewax",
        "of_bytewax.py",
        "bytewax",
        "bytewax",
        cannot={
            "process": f"{_NO_TIMERS}: `notify_at` of its stateful logic takes a time of the clock",
            "join": "it joins only in windows; its interval join is a separate module with a commercial licence",
        },
    ),
    Engine(
        "Quix Streams",
        "of_quix.py",
        "quix",
        "quixstreams",
        reads_kafka=True,
        cannot={"process": f"{_NO_TIMERS}: a stateful function is called only with elements"},
    ),
    Engine(
        "Pathway",
        "of_pathway.py",
        "pathway",
        "pathway",
        {"PATHWAY_THREADS": "2"},
        cannot={"process": f"{_NO_TIMERS}: its stateful reducers are called only with rows"},
    ),
)
