"""./run soak: run the job for a while, beside what feeds it and what looks at it."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.figures import machine
from eventide import __version__
from eventide.testing import KafkaBroker
from soak import alerts, heap, page
from soak.feed import Feed
from soak.findings import SPEED, findings, settled_minute
from soak.samples import SCRAPES, Sampler, by_minute

LOG = "log"
_END_S = 60
_MISSED = 2
"""Minutes that may be lost, at the beginning and at the end."""


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=130)
    if options.page:
        page.write()
        console.print(f"{page.PAGE} and {page.PICTURE} show {page.RESULTS}", highlight=False)
        return 0
    place = Path(tempfile.mkdtemp(prefix="eventide-soak-", dir=options.place))
    hours = options.minutes * options.speed / 60
    console.print(f"soaking for {options.minutes:g} minutes, {hours:g} simulated hours, in {place}", highlight=False)
    began = datetime.datetime.now(datetime.UTC)
    code = soak(place, options.minutes, options.speed)
    if code != 0:
        console.print(f"the job ended with code {code}; it said, in {place / LOG}:", style="red", highlight=False)
        console.print((place / LOG).read_text()[-4_000:], markup=False, highlight=False)
        return code
    table = by_minute(place)
    table[SPEED] = options.speed
    if len(table) < options.minutes - _MISSED:
        console.print(f"only {len(table)} minutes were looked at, in {place}", style="red", highlight=False)
        return 1
    page.RESULTS.parent.mkdir(exist_ok=True)
    table.to_csv(page.RESULTS, float_format="%.6g")
    page.ABOUT.write_text(json.dumps(about(arguments, began), indent=2) + "\n")
    fired = alerts.fired(alerts.read(place / SCRAPES))
    if not options.keep:
        shutil.rmtree(place)
    grown = _show(table, console)
    _show_alerts(fired, console)
    return 1 if options.check and (grown or fired) else 0


def _show_alerts(fired: dict[str, list[str]] | None, console: Console) -> None:
    if fired is None:
        console.print("promtool, of Prometheus, is not installed: no alert rule was evaluated", style="yellow")
    elif fired:
        texts = (f"{alert} (first after {times[0]})" for alert, times in fired.items())
        console.print(f"alert rules that fired: {'; '.join(texts)}", style="red", highlight=False)
    else:
        console.print(f"none of the {len(alerts.rules())} alert rules fired")


def _show(table: pd.DataFrame, console: Console) -> list[str]:
    """Print what was found; return what has grown more than it may."""
    grown: list[str] = []
    for group, found in findings(table).items():
        shown = Table(title=group, title_justify="left", box=None, pad_edge=False)
        shown.add_column("", min_width=44)
        minutes = settled_minute(len(table)), table.index.max()
        for heading in (*(f"minute {minute}" for minute in minutes), "a simulated hour", "may grow by", "an hour by"):
            shown.add_column(heading, justify="right", min_width=14)
        for one in found:
            bounds = (one.measure.most, one.measure.most_an_hour)
            texts = ("" if bound is None else page.shown(bound, one.measure.unit) for bound in bounds)
            shown.add_row(*page.cells(one), *texts, style="red" if one.grown else None)
            grown += [f"{group}: {one.measure.name}"] if one.grown else []
        console.print(shown, "", highlight=False)
    if grown:
        console.print(f"grown more than it may: {'; '.join(grown)}", style="red", highlight=False)
    return grown


def about(arguments: list[str], began: datetime.datetime) -> dict[str, object]:
    """Describe the run: its time, its machine and its code."""
    known = machine()
    versions = {name: known[name] for name in ("python", "pyspark", "pyarrow")} | {"eventide": __version__}
    return {
        "command": " ".join(["./run soak", *arguments]),
        "began": began.strftime("%d %B %Y at %H:%M UTC").lstrip("0"),
        "cores": known["cores"],
        "cpu": known["cpu"],
        "system": platform.platform(),
        "versions": versions,
    }


def soak(place: Path, minutes: float, speed: int) -> int:
    """Run it; return the exit code of the job. Its event time ends about now."""
    begins_ms = round((time.time() - minutes * 60 * speed) * 1_000)
    with KafkaBroker() as broker, Feed(broker, place / "files", place / "folders", begins_ms, speed) as feed:
        job = _start(broker.bootstrap_servers, place, speed)
        try:
            with Sampler(job.pid, place, feed.event_ms):
                until = time.monotonic() + minutes * 60
                while job.poll() is None and feed.error is None and time.monotonic() < until:
                    time.sleep(1)
                job.communicate(timeout=_END_S)
        finally:
            job.kill()
            job.wait()
        if feed.error is not None:
            raise feed.error
    return job.returncode


def _start(servers: str, place: Path, speed: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {"JAVA_TOOL_OPTIONS": heap.options(place)}
    with (place / LOG).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "soak.life", servers, str(place), str(speed)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run soak", description="Run one job for long, and see what of it grows.")
    parser.add_argument("--minutes", type=float, default=60, help="for how long; an hour by default")
    parser.add_argument("--speed", type=int, default=24, help="hours of event time in an hour; 24 by default")
    parser.add_argument("--place", type=Path, help="a folder for checkpoint and data; by default, the system's own")
    parser.add_argument(
        "--check", action="store_true", help="fail if something grows more than it may, or an alert rule fires"
    )
    parser.add_argument("--page", action="store_true", help=f"run nothing; put the last run into {page.PAGE}")
    parser.add_argument("--keep", action="store_true", help="leave checkpoint and data there")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
