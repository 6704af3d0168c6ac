"""`./run peers`: measures, prints a table, writes build/peers.json; `--page` puts it into docs/peers.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from benchmarks.figures import machine
from benchmarks.peers import race, results, topics
from benchmarks.peers.engines import ENGINES, Engine
from benchmarks.peers.events import Events
from benchmarks.peers.page import PAGE, RESULTS, Outcome, show, write
from eventide.testing import KafkaBroker

MANY, FEW = 1_000_000, 200_000
LITTLE = Events(20_000)
NEEDS_KAFKA = "Quix Streams"


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
        recipe = Events(FEW if options.quick else options.events)
        cells, failed = _race(recipe, engines, options.only, Path(place), console)
    show(Outcome.read(), console)
    console.print(f"\nAlso in {RESULTS}", highlight=False)
    return 1 if failed or not cells else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run peers", description="Five programs on eventide and its peers.")
    parser.add_argument("--events", type=int, default=MANY, metavar="N", help=f"how many; {MANY:,} if it is not given")
    parser.add_argument("--quick", action="store_true", help=f"{FEW:,} events: to see that it works, not to quote")
    parser.add_argument("--only", metavar="PROGRAM,…", type=_names, default=[*results.COLUMNS], help="some programs")
    parser.add_argument("--engines", metavar="ENGINE;…", type=lambda text: text.split(";"), help="some engines")
    parser.add_argument("--place", type=Path, help="a folder for events and results; by default, the system's own")
    parser.add_argument("--page", action="store_true", help=f"measure nothing; put the last figures into {PAGE}")
    return parser


def _names(text: str) -> list[str]:
    return text.split(",")


def _race(
    recipe: Events, engines: list[Engine], programs: list[str], place: Path, console: Console
) -> tuple[list[race.Cell], list[str]]:
    """Run all programs on all engines; return what they needed, and which of them failed."""
    tables = recipe.write(place / "data" / "all")
    LITTLE.write(place / "data" / "little")
    wanted = results.expected(tables)
    cells: list[race.Cell] = []
    failed: list[str] = []
    with ExitStack() as stack:
        broker: KafkaBroker | None = None
        if any(engine.name == NEEDS_KAFKA for engine in engines):
            broker = stack.enter_context(topics.broker())
            topics.fill(broker, tables, programs)
        for program in programs:
            for engine in engines:  # one after the other for each program, so that all meet the machine in one mood

                def compare(folder: Path, program: str = program, engine: Engine = engine) -> int:
                    found = (
                        topics.read(broker, program)
                        if broker and engine.name == NEEDS_KAFKA
                        else results.written(program, folder)
                    )
                    return results.check(program, found, wanted[program], recipe)

                out = place / f"{program}-{engine.name.replace(', ', '-')}"
                try:
                    cell = race.run(
                        engine, program, place / "data", out, broker.bootstrap_servers if broker else "", compare
                    )
                except (RuntimeError, ValueError) as error:  # the other cells don't depend on this one
                    console.print(f"[red]{engine.name}, {program}: {error}[/]", highlight=False, markup=True)
                    failed.append(f"{engine.name}, {program}")
                    continue
                cells.append(cell)
                console.print(f"[dim]{cell}[/]", highlight=False)
                versions = {engine.name: engine.version for engine in engines}
                Outcome(recipe.count, versions, machine(), cells).store()
    return cells, failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
