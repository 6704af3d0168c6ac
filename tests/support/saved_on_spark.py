"""The program with state of every kind as jobs on Spark, which stop and begin with the savepoint of the one before.

python saved_on_spark.py SAVEPOINT FOLDER

begins with a savepoint and runs to the end, as a later program, with three subtasks; its output is FOLDER/out2.

python saved_on_spark.py FOLDER --until N

goes on with the checkpoint FOLDER/one up to micro-batch N, of which the last is the end; its output is FOLDER/out1.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

from eventide.common import Row, Types
from eventide.common.execution_config import MAX_PARALLELISM
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.testing import local_environment
from support import saved_program

KEYS = "uvwxyz"
BATCHES = [
    [("ab"[(i + j) % 2], Row(key=KEYS[(7 * i + 5 * j) % 6], amount=1 + (3 * i + j) % 9, at=8 * i + (5 * j) % 13 - 6))
     for j in range(6)]
    for i in range(4)
]  # fmt: skip
RULES = [[(KEYS[i], i)] for i in range(4)]
NARROW = Types.ROW_NAMED(["key", "amount", "at"], [Types.STRING(), Types.SHORT(), Types.INT()])
TELLING = ("tumbling", "two", "process", "ruled", "listed", "joined")
"""Cases that run on Spark: the twin does the rest."""


def job(checkpoint: Path, parallelism: int) -> StreamExecutionEnvironment:
    """An environment of a job that ends with what is there."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    return env


def program(env: StreamExecutionEnvironment, until: int, output: Path, rows_type: Any, **more: Any) -> None:
    """The first micro-batches of the program, or all with the end."""
    rows = [[(split, saved_program.of_type(row, rows_type)) for split, row in batch] for batch in BATCHES[:until]]
    bounded = until == len(BATCHES)
    streams = saved_program.streams(env, rows, RULES[:until], bounded=bounded, rows_type=rows_type, **more)
    first, *others = (streams[name] for name in (*TELLING, "another") if name in streams)
    results = first.union(*others).map(lambda text: text, Types.STRING())
    results.sink_to(FormatSink("text", {"path": str(output)}))


def goes_on(saved: Path, folder: Path, until: int = len(BATCHES), max_parallelism: int = MAX_PARALLELISM) -> None:
    """Go on as a later program, with more subtasks and wider types; a checkpoint counts before the savepoint."""
    env = job(folder / "other", 3).set_max_parallelism(max_parallelism).from_savepoint(str(saved))
    program(env, until, folder / "out2", saved_program.WIDE, has_another=True)
    env.execute()


def runs(folder: Path, until: int = len(BATCHES)) -> None:
    """Run the program up to a micro-batch, with the checkpoint of the run before, if there was one."""
    env = job(folder / "one", 2)
    program(env, until, folder / "out1", NARROW)
    env.execute()


def expected(together: int = 1) -> Counter[str]:
    """The results of a job that is never stopped, in this process; its first micro-batches may come ``together``."""
    batches, rules = ([[*chain(*steps[:together])], *steps[together:]] for steps in (BATCHES, RULES))
    streams = saved_program.streams(local_environment(), batches, rules, bounded=True)
    first, *others = (streams[name] for name in TELLING)
    return Counter(first.union(*others).execute_and_collect())


def lines(*outputs: Path) -> Counter[str]:
    """The lines in files, but for those that only a later program has."""
    found = Counter(
        line for output in outputs for file in output.glob("*.txt") for line in file.read_text().splitlines()
    )
    return Counter({line: times for line, times in found.items() if not line.startswith("another")})


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("places", nargs="+", type=Path)
    parser.add_argument("--until", type=int, default=len(BATCHES))
    options = parser.parse_args()
    (goes_on if len(options.places) > 1 else runs)(*options.places, until=options.until)
