"""Calls of a user's function, and errors of it with the operator, the key and the element.

Where the Python process ends in a call, no exception says at which element: ``Search`` finds it. A native crash,
``os._exit`` or a system without memory end a worker without a word. After a micro-batch has ended one, its next attempt
leaves a mark before each call of a function with an element, where it is read when the process is gone. So that attempt
tells the element. When two attempts have told the same one, an error comes in place of the call: a dead letter where
the operator has them; else the job ends with an error that names it, until it is set aside.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from operator import length_hint
from typing import Any, TypeAlias

from eventide.errors import MEMORY_ADVICE, DataError, EventideError, ProgramError, StateError, UserFunctionError
from eventide.pickling.pickles import dumps

_LONGEST = 500

Leave: TypeAlias = Callable[[str], None]
"""Keeps a text beyond the end of this process, in place of the one before."""

_BEGIN = "eventide was at "

LETHAL = (
    "the Python process that handled it has ended without an exception: by a native crash, by os._exit, or because the "
    "system had no memory left; to have the job go on without it, run 'eventide checkpoint PATH --set-aside'"
)


def shown(value: object) -> str:
    """A value's text form, cut where it would flood a message."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<a {type(value).__name__} whose repr raised {repr_of(error)}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"


def repr_of(error: BaseException) -> str:
    """An error as text, whose own may be an error again."""
    try:
        return repr(error)
    except Exception:
        return type(error).__name__


def is_of_the_data(error: BaseException) -> bool:
    """Whether an error may be one of a single element: not if the program or its state is wrong, or memory is short."""
    return not isinstance(error, ProgramError | StateError | MemoryError)


def user_function_error(
    operator: str, error: BaseException, *, during: str, advice: str = "", **what: object
) -> EventideError:
    """Wrap what a user's function raised; eventide's own errors keep their type and get the place added.

    ``advice`` says what would let the job go on, where the data may be to blame; where memory is short, something else
    helps.
    """
    place = ", ".join(f"{name} {shown(value)}" for name, value in what.items())
    head = f"in operator {operator!r}, {during}" + (f" ({place})" if place else "")
    if isinstance(error, EventideError):
        kind = DataError if isinstance(error, DataError) else type(error)
        is_told = not isinstance(error, DataError | UserFunctionError) or advice in str(error)
        return kind(f"{head}: {error}" + ("" if is_told else f"; {advice}"))
    trace = "".join(traceback.format_exception(error)).rstrip()
    if isinstance(error, MemoryError):
        advice = MEMORY_ADVICE
    elif not is_of_the_data(error):
        advice = ""
    advised = f"; {advice}" if advice else ""
    return UserFunctionError(f"{head}: the user's function raised {repr_of(error)}{advised}. Its traceback:\n{trace}")


@contextmanager
def calling(operator: str, *, during: str, advice: str = "", **what: object) -> Iterator[None]:
    """Guard one call into user code."""
    try:
        yield
    except Exception as error:
        raise user_function_error(operator, error, during=during, advice=advice, **what) from error


def results_of(returned: Any) -> Iterable[Any]:
    """The results of a function that returns them together: none for None, whatever else is iterated.

    Raises:
        ProgramError: if it returned something that cannot be iterated, such as 0.

    >>> [*results_of(None)], [*results_of([0])]
    ([], [0])
    """
    if returned is None:
        return ()
    try:
        results: Iterable[Any] = iter(returned)
    except TypeError:
        raise ProgramError(
            f"the function returned {shown(returned)}; it has to return a list of its results, or to yield them, and "
            "None stands for no results"
        ) from None
    return results


def no_timestamp() -> DataError:
    """Return the error for an element without the timestamp that its windows need."""
    return DataError(
        "the element has no timestamp; give the stream one with assign_timestamps_and_watermarks and a strategy with a "
        "timestamp assigner"
    )


def last_of(values: list[Any], handled: Iterator[Any]) -> Any:
    """The value that an iterator over a list gave last; the list's iterator knows how many are left.

    Nothing has to be counted while all goes well.
    """
    return values[len(values) - length_hint(handled) - 1]


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
