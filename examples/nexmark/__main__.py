"""One query of Nexmark on events that are made on the way.

    python -m examples.nexmark --query 5 [--events 100000] [--rate 10000] [--splits 4] [--without-spark]

Prints the first results, how many there were, and how long it took.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time

from eventide.datastream import StreamExecutionEnvironment
from eventide.testing import local_environment
from examples.nexmark.generator import Recipe
from examples.nexmark.queries import QUERIES
from examples.nexmark.source import generated

SHOWN = 10


def main() -> None:
    options = read_options()
    query = QUERIES[options.query]
    recipe = Recipe(options.events, options.rate)
    with tempfile.TemporaryDirectory(prefix="nexmark-", ignore_cleanup_errors=True) as checkpoint:
        env = local_environment() if options.without_spark else StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2).set_max_rows_per_batch(options.rows_per_batch)
        env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
        print(f"Query {options.query}: {query.title}")
        started = time.monotonic()
        results = iter(query.program(generated(env, recipe, options.splits)).execute_and_collect())
        shown = list(itertools.islice(results, SHOWN))
        print(*shown, sep="\n")
        count = len(shown) + sum(1 for _ in results)
        took = time.monotonic() - started
    print(f"{count:,} results of {recipe.events:,} events in {took:.1f} s")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.nexmark", description="Run a query of Nexmark.")
    parser.add_argument("--query", type=int, required=True, choices=QUERIES, help="its number")
    parser.add_argument("--events", type=int, default=100_000, help="how many events: persons, auctions and bids")
    parser.add_argument("--rate", type=int, default=10_000, help="events in a second of event time")
    parser.add_argument("--splits", type=int, default=4, help="how many splits each kind of events has")
    parser.add_argument("--rows-per-batch", type=int, default=50_000, help="how many of a kind a micro-batch reads")
    parser.add_argument("--without-spark", action="store_true", help="run in this process, as tests do")
    return parser.parse_args()


if __name__ == "__main__":
    main()
