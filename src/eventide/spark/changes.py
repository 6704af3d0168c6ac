"""Changes of a running job's watermark strategies: those that its client asks for, and those of a command."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from eventide.errors import ProgramError, StateError

_LOG = logging.getLogger("eventide")
_LOOK_S, _PAUSE_S = 2.0, 60.0


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
                    "the job has ended; `eventide watermarks CHECKPOINT` has a change wait for its next start"
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
                _LOG.warning("it could not be seen whether watermark strategies are to change: %s", error)
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
