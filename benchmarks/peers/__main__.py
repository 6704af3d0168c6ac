"""`./run peers`: measures, prints a table, writes build/peers.json; `--page` puts it into docs/peers.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from benchmarks.figures import machine
from benchmarks.peers import results, topics
from benchmarks.peers.engines import ENGINES, Engine
from benchmarks.peers.events import Events
from benchmarks.peers.page import PAGE, RESULTS, Outcome, show, write
from benchmarks.peers.race import Cell, Race, reason

MANY, FEW = 5_000_000, 200_000
LITTLE = Events(20_000)


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    if options.page:
        write()
        console.print(f"{PAGE} has the figures of {RESULTS}", highlight=False)
        return 0
    engines = [engine for engine in ENGINES if not options.engines or engine.name in options.engines]
    for engine in engines:
        console.print(f"[dim]{engine.name} {engine.version}: {engine.python()}[/]", highlight=False)
    with tempfile.TemporaryDirectory(prefix="eventide-peers-", dir=options.place) as place:
        failed = _race(options, engines, Path(place), console)
    show(Outcome.read(), console)
    console.print(f"\nAlso in {RESULTS}", highlight=False)
    if failed:
        console.print(f"[red]Not measured: {'; '.join(failed)}; see above[/]")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run peers", description="Five programs on eventide and its peers.")
    parser.add_argument("--events", type=int, default=MANY, metavar="N", help=f"how many; {MANY:,} if it is not given")
    parser.add_argument("--quick", action="store_true", help=f"{FEW:,} events: to see that it works, not to quote")
    parser.add_argument("--only", metavar="PROGRAM,…", type=_names, default=[*results.COLUMNS], help="some programs")
    parser.add_argument("--engines", metavar="ENGINE;…", type=lambda text: text.split(";"), help="some engines")
    parser.add_argument("--limit", type=float, default=120, metavar="S", help="stop a program after S seconds; 120")
    parser.add_argument("--place", type=Path, help="a folder for events and results; by default, the system's own")
    parser.add_argument("--page", action="store_true", help=f"measure nothing; put the last figures into {PAGE}")
    return parser


def _names(text: str) -> list[str]:
    return text.split(",")


def _race(options: argparse.Namespace, engines: list[Engine], place: Path, console: Console) -> list[str]:
    """Run all programs on all engines, and store what they needed; return what failed."""
    recipe = Events(FEW if options.quick else options.events)
    tables = recipe.write(place / "all")
    LITTLE.write(place / "little")
    versions = {engine.name: engine.version for engine in engines}
    cells: list[Cell] = []
    failed: list[str] = []
    with ExitStack() as stack:
        broker = None
        if any(engine.reads_kafka for engine in engines):
            broker = stack.enter_context(topics.broker())
            topics.fill(broker, tables, options.only)
        race = Race(recipe, results.expected(tables), place, broker, options.limit)
        for program in options.only:
            for engine in engines:  # one after the other for each program, so that all meet the machine in one mood
                try:
                    cell = race.run(engine, program)
                except (RuntimeError, ValueError) as error:  # the other cells don't depend on this one
                    console.print(str(error), style="red", highlight=False, markup=False)
                    failed.append(f"{engine.name}, {program}")
                    cell = Cell(program, engine.name, note=f"it stopped with an error: {reason(str(error))}")
                cells.append(cell)
                console.print(f"[dim]{program}, {engine.name}: {_said(cell)}[/]", highlight=False)
                Outcome(recipe.count, versions, machine(), cells).store()
    return failed


def _said(cell: Cell) -> str:
    if cell.seconds is None:
        return cell.note
    return f"{cell.seconds:.1f} s, {cell.rows:,} rows are right; start {cell.start_s:.1f} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
