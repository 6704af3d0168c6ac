"""Faults that tests have injected, with their seeds, counts and times: `python -m tests.faults`.

Most tests of docs/faults.md add a line to build/faults.jsonl when they have passed; `./run nightly` begins
with an empty file. `--page` puts the table into docs/faults.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path("build/faults.jsonl")
PAGE = Path("docs/faults.md")


@dataclass(frozen=True)
class Injected:
    """The faults of a test that has passed.

    Attributes:
        test: its id.
        seed: the seed of their moments.
        faults: how many there were, by kind.
        seconds: how long it took.
        commit: the commit that was tested, with a plus sign if files had changed since.
        date: the day.
    """

    test: str
    seed: int
    faults: dict[str, int]
    seconds: float
    commit: str
    date: str


def add(injected: Injected) -> None:
    """Add a line."""
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as lines:
        lines.write(json.dumps(asdict(injected)) + "\n")


def table(found: list[Injected]) -> str:
    """The table of the page: the last results of each test, those of all its parameters together, and their sum."""
    last = {one.test: one for one in found}
    by_test: dict[str, list[Injected]] = {}
    for test, one in last.items():
        by_test.setdefault(test.partition("[")[0], []).append(one)
    lines = [["test", "faults", "seed", "seconds", "commit", "on"], ["---", "---", "---:", "---:", "---", "---"]]
    total: Counter[str] = Counter()
    for test, results in by_test.items():
        faults = sum((Counter(one.faults) for one in results), Counter[str]())
        total.update(faults)
        name, title = test.partition("::")[0].removeprefix("tests/"), test.rpartition("::")[2].removeprefix("test_")
        last_one, seconds = results[-1], sum(one.seconds for one in results)
        row = [f"`{name}`: {title.replace('_', ' ')}", counted(faults), last_one.seed, f"{seconds:,.0f}"]
        row += [f"`{last_one.commit}`", last_one.date]
        lines.append([str(cell) for cell in row])
    lines.append(["all", counted(total), "", f"{sum(one.seconds for one in last.values()):,.0f}", "", ""])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def counted(faults: dict[str, int]) -> str:
    """Counts of faults in words.

    >>> counted({"killed": 12, "suspended": 1})
    '12 killed, 1 suspended'
    """
    return ", ".join(f"{count:,} {kind}" for kind, count in faults.items())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="The faults that tests have injected.")
    parser.add_argument("--page", action="store_true", help=f"put the table into {PAGE}")
    options = parser.parse_args(arguments)
    found = [Injected(**json.loads(line)) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    print(table(found))
    if options.page:
        from benchmarks.page import put  # which the tests need not have

        PAGE.write_text(put(PAGE.read_text(), {"faults": table(found)})[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
