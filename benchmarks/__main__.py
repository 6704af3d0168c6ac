"""`./run bench`: measures, prints a table, writes build/benchmark.json."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import against, page
from benchmarks.bench import Bench
from benchmarks.connector import connector
from benchmarks.figures import RESULTS, Line, Part, show, store
from benchmarks.parts import (
    advise,
    alignment,
    chained,
    elements,
    fine,
    first_result,
    functions,
    growth,
    joins,
    kafka,
    kafka_latency,
    limit,
    many,
    memory,
    nexmark,
    remembering,
    small,
    state,
    subtasks,
    throughput,
    watermarks,
)
from benchmarks.queries import SIDES, TUMBLING, Job
from benchmarks.sizes import FULL, QUICK

# In this order: the memory of a worker is that of one that has not done much else.
PARTS: dict[str, Callable[[Bench], Sequence[Line]]] = {
    "memory": memory.memory,
    "first-result": first_result.first_result,
    "tumbling-1000": throughput.tumbling_few_keys,
    "tumbling-100000": throughput.tumbling_many_keys,
    "sliding": throughput.sliding,
    "sliding-fine": fine.sliding_fine,
    "sessions": throughput.sessions,
    "keys": throughput.keys,
    "limit": limit.limit,
    "reduce": elements.python_reduce,
    "elements": elements.element_path,
    "functions-by-itself": functions.quiet_keys_by_itself,
    "functions": functions.quiet_keys,
    "two-inputs": functions.two_inputs,
    "joins": joins.joins,
    "kafka": kafka.tumbling_of_topics,
    "kafka-sink": kafka.rows_into_topics,
    "kafka-latency": kafka_latency.latency_of_topics,
    "alignment": alignment.alignment,
    "generators": watermarks.generators,
    "splits": watermarks.splits,
    "many-splits": many.many_splits,
    "many-files": many.many_files,
    "why": remembering.why,
    "nexmark": nexmark.nexmark,
    "chained": chained.chained,
    "almost-empty": small.almost_empty,
    "side-by-side": small.side_by_side,
    "subtasks": subtasks.subtasks,
    "growth": growth.growth,
    "state-calls": state.state_calls,
    "advise": advise.advise,
}


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=130)
    if options.page:
        return _write_page(console)
    unknown = [name for name in options.only if name not in PARTS]
    if unknown:
        console.print(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
        return 2
    if options.against is not None:
        sides = _arguments_of_a_side(options)
        return against.compare(options.against, sides, options.pairs, console, options.at_least)
    sizes = QUICK if options.quick else FULL
    parts: list[Part] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="eventide-bench-", dir=options.place, ignore_cleanup_errors=True) as place:
        wanted = [name for name in PARTS if not options.only or name in options.only]
        jars = _connector(console) if any(name.startswith("kafka") for name in wanted) else []
        bench = Bench(Path(place), sizes, console, jars)
        _warm(bench)
        for name in wanted:
            measure = PARTS[name]
            title = (measure.__doc__ or name).removesuffix(".")
            console.print(f"[bold]{name}[/]: {title}", highlight=False)
            started = time.perf_counter()
            try:
                parts.append(Part(name, title, tuple(measure(bench))))
            except Exception:  # the other parts have taken long, and don't depend on this one
                console.print_exception()
                failed.append(name)
            bench.say(f"  took {time.perf_counter() - started:.0f} s")
            store(parts, sizes)
    show(parts, console)
    console.print(f"\nAlso in {RESULTS}", highlight=False)
    if failed:
        console.print(f"[red]Not measured: {', '.join(failed)}; see above[/]")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run bench", description="Measure eventide beside Spark; asserts nothing.")
    parser.add_argument("--quick", action="store_true", help="little data: to see that it works, not to quote")
    parser.add_argument(
        "--only",
        metavar="PART,…",
        type=lambda text: text.split(","),
        default=[],
        help="some parts alone: " + ", ".join(PARTS),
    )
    parser.add_argument("--place", type=Path, help="a folder for data and checkpoints; by default, the system's own")
    parser.add_argument(
        "--against",
        metavar="COMMIT",
        help="run each part on today's code and on this commit's in turn, and print how many times as quick today's is",
    )
    parser.add_argument("--pairs", type=int, default=3, help="how often each side of --against runs; by default 3")
    parser.add_argument(
        "--at-least",
        type=float,
        default=0.0,
        metavar="RATIO",
        help="with --against: fail if the speed of today's code, relative to that of the commit, is below this ratio",
    )
    parser.add_argument("--page", action="store_true", help=f"measure nothing; put the last figures into {page.PAGE}")
    return parser


def _arguments_of_a_side(options: argparse.Namespace) -> list[str]:
    only = [f"--only={','.join(options.only)}"] if options.only else []
    quick = ["--quick"] if options.quick else []
    place = [f"--place={options.place}"] if options.place else []
    return [*only, *quick, *place]


def _connector(console: Console) -> list[Path]:
    version, jars = connector()
    console.print(f"[dim]Spark's own connector for Kafka is that of Spark {version}[/]", highlight=False)
    return jars


def _warm(bench: Bench) -> None:
    """Run everything once on little data: the first queries of a JVM are slow, on both sides."""
    data = bench.warming_data()
    job = Job(bench.files(data), TUMBLING)
    for side, start in SIDES.items():
        run = bench.run(f"warming up, {side}", lambda place, start=start: start(bench.spark, job, place))
        bench.clear(run)


def _write_page(console: Console) -> int:
    missing = page.write()
    console.print(f"{page.PAGE} has the figures of {RESULTS}", highlight=False)
    if missing:
        console.print(f"which has nothing of {', '.join(missing)}: their old figures stay", highlight=False)
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main(sys.argv[1:]))
