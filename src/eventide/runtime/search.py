"""Search for an element at which the Python process ends: no exception says which it was.

A native crash, ``os._exit`` or a system without memory end a worker without a word. After a micro-batch has ended one,
its next attempt leaves a mark before each call of a function with an element, where it is read when the process is
gone. So that attempt tells the element. When two attempts have told the same one, an error comes in place of the call:
a dead letter where the operator has them; else the job ends with an error that names it, until it is set aside.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from eventide.errors import DataError
from eventide.pickling.pickles import dumps
from eventide.runtime.invoke import shown

Leave: TypeAlias = Callable[[str], None]
"""Keeps a text beyond the end of this process, in place of the one before."""

_BEGIN = "eventide was at "

LETHAL = (
    "the Python process that handled it has ended without an exception: by a native crash, by os._exit, or because the "
    "system had no memory left. 'eventide checkpoint PATH --set-aside' has the job go on without it"
)


@dataclass(frozen=True, slots=True)
class CallMark:
    """Where a process was: in which operator, in words what it did, and the element as text.

    ``id`` tells the element apart from all others of its micro-batch, equal ones as well.

    >>> mark = CallMark("parse", "while it handled an element", "'eventide was at home'", "17")
    >>> CallMark.found_in(f"Python worker exited unexpectedly (crashed): {mark.line()}") == mark
    True
    """

    operator: str
    during: str
    element: str
    id: str

    def line(self) -> str:
        """The mark as a line of text."""
        return f"{_BEGIN}{json.dumps(asdict(self))}\n"

    @staticmethod
    def found_in(text: str) -> CallMark | None:
        """The mark in a report of a process that has ended; None if there is none."""
        _, begin, after = text.partition(_BEGIN)
        try:
            return CallMark(**json.JSONDecoder().raw_decode(after)[0]) if begin else None
        except ValueError:  # a report that was cut
            return None


def _nowhere() -> Leave:
    return lambda _: None


@dataclass(frozen=True, slots=True)
class Search:
    """A search in one micro-batch; picklable. Without arguments, there is none.

    Args:
        clocks_ms: the times by the clock of the micro-batch: each source has its own, and operators have Spark's.
        open: gives, in a task, what keeps its marks.
        found: the ids of the elements that end a process for certain.
        set_aside: those that are left out where the operator has no dead letters.
    """

    clocks_ms: frozenset[int] = frozenset()
    open: Callable[[], Leave] = _nowhere
    found: frozenset[str] = frozenset()
    set_aside: frozenset[str] = frozenset()

    def begin(self, task: int, clock_ms: int) -> TaskSearch | None:
        """The search in one task, given the task index; None in another micro-batch."""
        return TaskSearch(self, task, self.open()) if clock_ms in self.clocks_ms else None


class TaskSearch:
    """The search in one task."""

    def __init__(self, search: Search, task: int, leave: Leave) -> None:
        self._search = search
        self._task = task
        self._leave = leave
        self._seen: Counter[str] = Counter()

    def watched(
        self, operator: str, during: str, call: Callable[..., Any], element: int, left_out: Callable[[], None] | None
    ) -> Callable[..., Any]:
        """A function that leaves a mark before each call.

        Args:
            operator: the name of its operator.
            during: its work in words.
            call: the function.
            element: which of its arguments is the element.
            left_out: is told of an element that is set aside, for which None is returned; None if such an element is
                an error all the same, because the operator has dead letters.
        """

        def watched(*arguments: object) -> Any:
            mark = self._mark(operator, during, arguments[element])
            if mark.id not in self._search.found:
                self._leave(mark.line())
                return call(*arguments)
            if left_out is None or mark.id not in self._search.set_aside:
                raise DataError(LETHAL)
            left_out()
            return None

        return watched

    def rest(self) -> None:
        """Say that the functions have returned: what ends the process now is none of their elements."""
        self._leave("")

    def _mark(self, operator: str, during: str, element: object) -> CallMark:
        try:
            content = dumps(element)
        except Exception:  # whatever a user's class raises
            content = shown(element).encode()
        of_equals = hashlib.sha256(f"{self._task} {operator} {during} ".encode() + content).hexdigest()[:16]
        self._seen[of_equals] += 1
        return CallMark(operator, during, shown(element), f"{of_equals}-{self._seen[of_equals]}")
