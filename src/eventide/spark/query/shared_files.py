"""Small files below a job's checkpoint that its tasks and its planners leave for each other.

``AlignmentFolder`` tells planners how far sources have come that wait for each other, and ``ReachedFolder`` the tasks
of sources where operators stand.

``Runs`` tells which run of the job planned a micro-batch, because timeouts start again in the first one that a run has
planned. A run that takes what is there has no name, because it ends with its data. Between two such runs a split counts
as silent. Otherwise its timeout would start again with each run, and the split would never be idle. A micro-batch that
was planned and not finished is repeated by the next run, and must give what it gave. So the planner of that micro-batch
counts, and not the run that repeats it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from eventide.common.accepted import level_of_the_program
from eventide.errors import ProgramError, StateError
from eventide.runtime.sources.reached import Reached
from eventide.storage import Folder

if TYPE_CHECKING:
    from eventide.runtime.sources.alignment import Facts

T = TypeVar("T")

_KEPT = 3
_LOOKS_AFTER = 100
"""The number of micro-batches between two searches for files of attempts that died while they wrote."""


class _LastFiles:
    """A small file for each micro-batch, below the job's checkpoint, of which the last few are kept.

    A task of the query writes it before its micro-batch is over, and each source is planned with the latest when that
    has been committed. A micro-batch that is run again writes the same once more, perhaps while a first attempt, which
    was thought dead, does so too: each writes a file of its own out of sight, and the last one that is done counts.
    Tasks and planners have to reach the checkpoint, as they do for state, and nothing else.
    """

    def __init__(self, location: str, advice: str) -> None:
        self._folder = Folder(location, advice)

    def write(self, number: int, content: object) -> None:
        """Keep what the task of a micro-batch says, as JSON values."""
        self._folder.write(_name(number), json.dumps(content).encode())
        oldest = _name(max(0, number - _KEPT))
        for name in self._folder.names():
            if name <= oldest:
                self._folder.delete(name)
        if number % _LOOKS_AFTER == 0:
            for name in self._folder.unfinished():
                if name <= oldest:
                    self._folder.delete_unfinished(name)

    def latest(self) -> Any:
        """Return what was written last; None before that.

        Raises:
            StateError: if the file is damaged.
        """
        names = self._folder.names()
        return self._folder.read(names[-1], json.loads) if names else None


class AlignmentFolder:
    """Files that say how far sources have come that wait for each other."""

    def __init__(self, location: str) -> None:
        self._files = _LastFiles(location, "delete it: the file before it counts until the next micro-batch has ended")

    def write(self, content: Mapping[str, Any]) -> None:
        """Keep what the task of a micro-batch says."""
        self._files.write(content["number"], content["sources"])

    def latest(self) -> Facts:
        """Return the facts that were written last; before that, there are none.

        Raises:
            StateError: if the file is damaged.
        """
        facts: Facts = self._files.latest() or {}
        return facts


class ReachedFolder:
    """Files that say where operators stand after a micro-batch, by the number that it has in Spark.

    Where a process cannot reach the folder, or finds no file of the micro-batch before, or a damaged one, elements
    travel whole, as if operators had told nothing. A process that could not reach it does not try again, because a
    store may take seconds to refuse.
    """

    _unreachable: ClassVar[set[str]] = set()

    def __init__(self, location: str) -> None:
        self._location = location

    def write(self, reached: Reached) -> None:
        """Keep where operators stand."""
        content = {"audience": reached.audience, "watermarks": dict(reached.watermarks)}
        self._with_files(lambda files: files.write(reached.batch, [reached.batch, content]))

    def latest(self) -> Reached | None:
        """Return where operators stood after the last micro-batch that told it; None if that is not known."""
        found = self._with_files(_LastFiles.latest)
        return None if found is None else Reached.told(found[0], [found[1]])

    def _with_files(self, use: Callable[[_LastFiles], T]) -> T | None:
        if self._location in self._unreachable:
            return None
        try:
            return use(_LastFiles(self._location, "delete it: the job continues without it"))
        except (StateError, ProgramError, OSError) as error:
            if not isinstance(error, StateError):
                self._unreachable.add(self._location)
            warnings.warn(f"elements that might be late are sent on one by one: {error}", stacklevel=3)
            return None


def _name(number: int) -> str:
    return f"{number:020}"


_FOLDER = "eventide-runs"
_FILE = "runs"


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs that have planned the micro-batches of the present run; picklable.

    ``repeated_ms`` is the time by the clock of the micro-batch that an ``earlier`` run planned and did not finish,
    if there is one. A run is None if it has no name, or if it was one of an older version.

    >>> runs = Runs("second", "first", repeated_ms=1_000)
    >>> runs.planner_of(1_000), runs.planner_of(1_200)
    ('first', 'second')
    """

    present: str | None
    earlier: str | None = None
    repeated_ms: int | None = None

    def planner_of(self, clock_ms: int) -> str | None:
        """Return the run that planned the micro-batch of a time by the clock, in milliseconds; None without a name."""
        return self.earlier if clock_ms == self.repeated_ms else self.present


def begun(location: str, run: str | None, *, keeps: bool = True) -> Runs | None:
    """Write down that a run begins, and return which runs have planned its micro-batches.

    Args:
        location: the job's checkpoint.
        run: a name for the run; None if its timeouts go on from those of the run before.
        keeps: whether it is written down: not before it is known that the program fits the checkpoint.

    Returns:
        None, with a warning, if the checkpoint cannot be opened, read or written, or has an unknown form: runs are not
        told apart.
    """
    try:
        return _begun(location, run, keeps=keeps)
    except (ProgramError, StateError, OSError, ValueError) as error:
        warnings.warn(
            f"the time between two runs of the job counts as silence of its sources: {error}",
            stacklevel=level_of_the_program(),
        )
        return None


def _begun(location: str, run: str | None, *, keeps: bool) -> Runs:
    from eventide.spark.checkpoint.files import CheckpointFiles  # this module is loaded with each stateful processor

    files, folder = CheckpointFiles(location), Folder(f"{location.rstrip('/')}/{_FOLDER}", "delete it")
    planned = max(files.planned(), default=-1)
    known: list[tuple[str | None, int]] = folder.read(_FILE, json.loads) if _FILE in folder.names() else []
    planners = [(name, after) for name, after in known if after < planned][-1:]
    if keeps:
        folder.write(_FILE, json.dumps([*planners, (run, planned)]).encode())
    if planned <= max(files.committed(), default=-1):
        return Runs(run)
    return Runs(run, planners[0][0] if planners else None, files.plan_of(planned).at_ms)
