"""Values of watermark strategies that were changed while a job runs: small files below its checkpoint.

A change waits in a file of its own, which anybody may write, until no micro-batch is begun. The run that begins then
writes it to the values in force, before it plans anything: so a micro-batch that is repeated has the values that it
had, in another run too. A change counts until the program declares another value than it did when the change was made.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from eventide.errors import ProgramError, StateError
from eventide.plan.job import NO_STRATEGIES, Strategies
from eventide.plan.strategies import checked_values
from eventide.spark.checkpoint.files import CheckpointFiles
from eventide.storage import Folder

_LOG = logging.getLogger("eventide")
_LOOK_S, _PAUSE_S = 2.0, 60.0
_FOLDER = "eventide-watermarks"
_FILE = "strategies"
_WAITING = "waiting-"

_Changed: TypeAlias = dict[str, dict[str, list[int | None]]]
"""By the name of a strategy and of a value of it: the value that the program declared, and the one in its place."""


@dataclass(frozen=True, slots=True)
class StrategiesStanding:
    """Watermark strategies of a job.

    Attributes:
        declared: the values that the program declares.
        changed: those that are in force in the place of declared ones.
        waiting: changes that wait until no micro-batch is begun, in their order.
    """

    declared: Strategies
    changed: Strategies
    waiting: tuple[Strategies, ...] = ()


STANDING = (StrategiesStanding,)


def values_in_force(location: str, declared: Strategies, *, takes: bool, keeps: bool = True) -> Strategies:
    """Return the values that are in force in the place of declared ones, for a run that has planned nothing yet.

    Args:
        location: the job's checkpoint.
        declared: the values that its program declares.
        takes: whether changes that wait are taken, if no micro-batch is begun.
        keeps: whether that is written down: not before it is known that the program fits the checkpoint.

    Raises:
        StateError, StorageError: if a file is damaged, or cannot be written.
    """
    try:
        folder = _folder(location)
    except ProgramError:  # a store that Arrow does not reach; nothing can have been changed there
        return NO_STRATEGIES
    names = folder.names()
    if not declared and not names:
        return NO_STRATEGIES
    before = folder.read(_FILE, json.loads) if _FILE in names else {"declared": {}, "changed": {}}
    changed = _of_program(before["changed"], declared)
    waiting = [name for name in names if name.startswith(_WAITING)]
    if takes and waiting and not _is_begun(location):
        for name in waiting:
            _take(changed, folder.read(name, json.loads), declared)
    else:
        waiting = []
    now = {"declared": declared, "changed": changed}
    if not keeps:
        return _values(changed)
    if now != before:
        folder.write(_FILE, json.dumps(now).encode())
    for name in waiting:  # in their order: one that is taken twice is followed by those that came after it
        folder.delete(name)
    return _values(changed)


def ask_for(location: str, name: str, max_out_of_orderness: object, idle_timeout: object, max_drift: object) -> str:
    """Ask for other values of a strategy; return the name under which the change waits.

    Args: those of `eventide.plan.strategies.checked_values`.

    Raises:
        ProgramError: if the strategy is unknown, or cannot have the value.
        StateError: if no job has started on the checkpoint.
    """
    values = checked_values(name, strategies_at(location).declared, max_out_of_orderness, idle_timeout, max_drift)
    last = max((int(one.removeprefix(_WAITING).partition("-")[0]) for one in waiting_changes(location)), default=0)
    waits = f"{_WAITING}{max(time.time_ns(), last + 1):020}-{uuid.uuid4().hex}"  # clocks differ, or are set back
    _folder(location).write(waits, json.dumps({name: values}).encode())
    return waits


def waiting_changes(location: str) -> list[str]:
    """The names of the changes that wait."""
    return [name for name in _folder(location).names() if name.startswith(_WAITING)]


def strategies_at(location: str) -> StrategiesStanding:
    """The strategies of the job of a checkpoint.

    Raises:
        StateError: if no job with strategies has started on it.
    """
    folder = _folder(location)
    names = folder.names()
    if _FILE not in names:
        raise StateError(
            f"no job with watermark strategies has started on the checkpoint {location}, so there are none to change; "
            "give the directory that set_checkpoint_storage_dir(...) names"
        )
    stored = folder.read(_FILE, json.loads)
    waiting = tuple(folder.read(name, json.loads) for name in names if name.startswith(_WAITING))
    return StrategiesStanding(stored["declared"], _values(stored["changed"]), waiting)


def _folder(location: str) -> Folder:
    return Folder(f"{location.rstrip('/')}/{_FOLDER}", "delete it: the strategies are those of the program then")


def _is_begun(location: str) -> bool:
    files = CheckpointFiles(location)
    return max(files.planned(), default=-1) > max(files.committed(), default=-1)


def _of_program(changed: Mapping[str, Mapping[str, list[int | None]]], declared: Strategies) -> _Changed:
    """The changes of values that the program declares as it did before."""
    kept = {
        name: {what: pair for what, pair in values.items() if declared.get(name, {}).get(what, _ABSENT) == pair[0]}
        for name, values in changed.items()
    }
    return {name: values for name, values in kept.items() if values}


_ABSENT: object = object()


def _take(changed: _Changed, asked: Strategies, declared: Strategies) -> None:
    """Put the values of a change in force; those that the program declares need not be."""
    for name, values in asked.items():
        for what, value in values.items():
            if what not in declared.get(name, {}):
                _LOG.warning("the watermark strategy %r has changed: the value %s is not taken", name, what)
                continue
            changed.setdefault(name, {})[what] = [declared[name][what], value]
            if value == declared[name][what]:
                del changed[name][what]
        if not changed.get(name, _ABSENT):
            del changed[name]


def _values(changed: Mapping[str, Mapping[str, Iterable[int | None]]]) -> Strategies:
    return {name: {what: [*pair][1] for what, pair in values.items()} for name, values in changed.items()}


class Changes:
    """Changes that wait until the job is between two micro-batches.

    Each waits in a file below the checkpoint, so that it makes no difference which process has asked for it. Its file
    is gone when it is in force.

    Args:
        ask: has a strategy change, and returns the name under which the change waits.
        waiting: the names of the changes that wait.
        looks: whether to look now and then for changes of other processes.
    """

    def __init__(self, ask: Callable[..., str], waiting: Callable[[], Sequence[str]], *, looks: bool = True) -> None:
        self._ask = ask
        self._waiting = waiting
        self._looks = looks
        self._asked: dict[str, Future[None]] = {}
        self._lock = threading.Lock()
        self._look_at = 0.0
        self._has_ended = False
        self.are_due = False

    def ask(self, name: str, *values: object) -> Future[None]:
        """Change a strategy; the future is done when the change is in force.

        Raises:
            ProgramError: if the job has ended, or the strategy cannot change so.
        """
        with self._lock:
            if self._has_ended:
                raise ProgramError(
                    "the job has ended; `eventide watermarks CHECKPOINT` stores a change for its next start"
                )
            in_force: Future[None] = Future()
            in_force.set_running_or_notify_cancel()  # a waiting caller cannot cancel it
            self._asked[self._ask(name, *values)] = in_force
            self._look_at = 0.0
            return in_force

    def look(self) -> None:
        """See now and then whether changes wait: then they ``are_due``; a store that does not answer is asked again."""
        if time.monotonic() < self._look_at or not (self._looks or self._asked):
            return
        with self._lock:
            self._look_at = time.monotonic() + _LOOK_S
            try:
                waiting = {*self._waiting()}
            except ProgramError:  # a store that Arrow does not reach; nothing can be changed there
                self._looks = False
                return
            except OSError as error:
                self._look_at += _PAUSE_S
                _LOG.warning("the watermark strategies could not be checked for changes: %s", error)
                return
            for name in self._asked.keys() - waiting:
                self._asked.pop(name).set_result(None)
            self.are_due = bool(waiting)

    def begin(self) -> None:
        """Take note that a run begins, which takes the changes that wait."""
        self.are_due, self._look_at = False, 0.0

    def end(self) -> None:
        """Tell the callers whose changes are not in force yet that the job has ended."""
        with self._lock:
            self._has_ended = True
            for in_force in self._asked.values():
                said = (
                    "the job has ended before its watermark strategies could change; they change when it starts again"
                )
                in_force.set_exception(StateError(said))
            self._asked.clear()
