"""The stored state of a program with state of every kind, by each version of eventide, and how to make it anew.

PYTHONPATH=src:tests python -m support.stored_versions

writes ``tests/versions/data/VERSION.tar.xz`` of the version that runs: a savepoint, a checkpoint of a job on Spark, and
the results up to both. It is done once for each version that stores something otherwise, and the archive is never
changed again.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from eventide import __version__
from eventide.common import Types
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.local.host import begun_from, take_savepoint
from eventide.local.runner import LocalRunner
from eventide.plan.job import JobPlan
from eventide.savepoint import Savepoint
from eventide.savepoint.fitting import check_fit
from eventide.testing import local_environment
from support.saved_on_spark import BATCHES, RULES
from support.saved_program import streams
from support.twin import plan_of

DATA = Path(__file__).parents[1] / "versions" / "data"
PLACE = Path("/tmp/eventide-stored-checkpoint")
"""Where the checkpoint lies while a job uses it: Spark writes whole paths into it, so it is put there again."""

CUT = 2
"""After how many micro-batches it is stored."""


def archives() -> list[Path]:
    """The archives, one for each version."""
    return sorted(DATA.glob("*.tar.xz"))


def extracted(archive: Path, folder: Path) -> Path:
    """The folder into which an archive was extracted."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def expected() -> Counter[str]:
    """The results of the job that is never stopped."""
    return Counter(_all_of(local_environment(), len(BATCHES)).execute_and_collect())


def known(folder: Path, what: str) -> Counter[str]:
    """The results that were there when a savepoint, or a checkpoint, was made."""
    return Counter(json.loads((folder / f"{what}.json").read_text()))


def by_savepoint(folder: Path) -> Counter[str]:
    """The results of a job in this process that begins with the savepoint."""
    plan = _plan(len(BATCHES))
    savepoint = Savepoint(str(folder / "savepoint"))
    check_fit(savepoint, plan.identity(), plan.operators, allow_non_restored=False)
    return _results(LocalRunner(plan, clock=lambda: 0, checkpoint=begun_from(savepoint, plan)))


def by_checkpoint(folder: Path) -> Counter[str]:
    """The results of a job on Spark that goes on with the checkpoint."""
    shutil.rmtree(PLACE, ignore_errors=True)
    shutil.copytree(folder / "checkpoint", PLACE)
    _run_on_spark(folder / "later", len(BATCHES))
    return _lines(folder / "later")


def store(folder: Path) -> None:
    """Write a savepoint and a checkpoint, and the results up to both."""
    plan = _plan(CUT)
    runner = LocalRunner(plan, clock=lambda: 0)
    found = _results(runner)
    take_savepoint(plan, runner.checkpoint, str(folder / "savepoint"))
    (folder / "savepoint.json").write_text(json.dumps(found))
    shutil.rmtree(PLACE, ignore_errors=True)
    _run_on_spark(folder / "out", CUT)
    shutil.copytree(PLACE, folder / "checkpoint")
    (folder / "checkpoint.json").write_text(json.dumps(_lines(folder / "out")))


def _all_of(env: StreamExecutionEnvironment, until: int) -> DataStream:
    """All results of the program in one stream, after some micro-batches or with the end."""
    found = streams(env, BATCHES[:until], RULES[:until], bounded=until == len(BATCHES))
    first, *others = found.values()
    return first.union(*others)


def _plan(until: int) -> JobPlan:
    return plan_of(_all_of(local_environment(), until))


def _results(runner: LocalRunner) -> Counter[str]:
    batches = [batch.elements for batch in runner.batches()]
    return Counter(text for elements in batches for text, _ in chain(*elements.values()))


def _run_on_spark(output: Path, until: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(PLACE))
    results = _all_of(env, until).map(lambda text: text, Types.STRING())
    results.sink_to(FormatSink("text", {"path": str(output)}))
    env.execute()


def _lines(output: Path) -> Counter[str]:
    texts: Iterable[str] = (file.read_text() for file in output.glob("*.txt"))
    return Counter(line for text in texts for line in text.splitlines())


def main() -> None:
    """Make the archive of this version."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        store(folder)
        DATA.mkdir(exist_ok=True)
        with tarfile.open(DATA / f"{__version__}.tar.xz", "w:xz") as tar:
            for name in ("savepoint", "savepoint.json", "checkpoint", "checkpoint.json"):
                tar.add(folder / name, arcname=name)


if __name__ == "__main__":
    main()
