"""The exceptions of eventide: one tree, so that one ``except EventideError`` catches all of them.

The branch says which person can help: `ProgramError` the author of the program, `DataError` the owner of the data,
`UserFunctionError` the author of a function, `StateError` the operator of a job. All of them pickle, because they
travel from Spark's workers to the driver.

``needing`` says which extra to install where a library is missing, ``advised`` how to let a job go on without the data
that stop it, and ``MEMORY_ADVICE`` what to do where memory is short.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import UnionType

from eventide._secrets import without_secrets

__all__ = [
    "DashboardWarning",
    "LeftElementsWarning",
    "DataError",
    "EventideError",
    "ProgramError",
    "StateError",
    "StorageError",
    "TemporaryCheckpointWarning",
    "TimersLeftWarning",
    "TypeMismatch",
    "UserFunctionError",
]

DISTRIBUTION = "eventide-spark"
"""The name of eventide for pip: on the public index, `eventide` is another project."""


class EventideError(Exception):
    """The base class of eventide's exceptions; URIs in their texts have no passwords."""

    def __str__(self) -> str:
        return without_secrets(super().__str__())

    def __repr__(self) -> str:
        return without_secrets(super().__repr__())


class ProgramError(EventideError, ValueError):
    """The program cannot be built or run as it is written; raised before any data is read, if possible."""


class DataError(EventideError):
    """An element is bad: it has no usable timestamp, does not fit its declared type, or cannot be read."""


class UserFunctionError(EventideError):
    """A function of the user raised; the original exception is the ``__cause__``, if it could be kept."""


class StateError(EventideError):
    """The state of a checkpoint does not fit the program that continues it, or the run that had it has been replaced.

    In the latter case, another run uses it, or the server of Spark Connect has been restarted.
    """


class StorageError(EventideError, OSError):
    """A file cannot be written, most often because a disk is full; a job can then continue from its checkpoint."""


class TemporaryCheckpointWarning(UserWarning):
    """A job keeps its checkpoint in a temporary directory, so that it cannot continue after a restart."""


class TimersLeftWarning(UserWarning):
    """The input of a job ended before the time of some processing-time timers, which will never fire."""


class LeftElementsWarning(UserWarning):
    """An earlier run of a job left elements over Spark Connect, and the program has no sink for them any more."""


class DashboardWarning(UserWarning):
    """Jobs cannot be shown, or their metrics not exported; the jobs run all the same."""


class TypeMismatch(DataError):
    """A value does not fit the type that was declared for it.

    Args:
        index: Position of the element among the elements that were converted together.
        value: The value that does not fit; it may be a part of the element.
        expected: The declared type of that value, as text.
        path: The place of the value in the element, such as ``f1`` or ``user.tags[2]``; empty for the element itself.
        why: Why it does not fit, and what to do, if the value does not show it.

    >>> print(TypeMismatch(3, "x", "INT", "f1"))
    element 3, field f1: expected INT, got 'x' (str)
    """

    def __init__(self, index: int, value: object, expected: str, path: str = "", why: str = "") -> None:
        super().__init__(index, value, expected, path, why)
        self.index = index
        self.value = value
        self.expected = expected
        self.path = path
        self.why = why

    def __str__(self) -> str:
        where = f"element {self.index}" + (f", field {self.path}" if self.path else "")
        why = f"; {self.why}" if self.why else ""
        return f"{where}: expected {self.expected}, got {self.value!r} ({type(self.value).__name__}){why}"


def check_is(value: object, kind: type | UnionType, needs: str) -> None:
    """Check that a value of a program is an instance of a class, or of one of several.

    Args:
        value: The value in the program.
        kind: The class, or the union of classes.
        needs: The feature that needs it, for the error.

    Raises:
        ProgramError: The value is of another class.

    >>> check_is(5, str, "set_name needs a text")
    Traceback (most recent call last):
        ...
    eventide.errors.ProgramError: set_name needs a text, not 5
    """
    if not isinstance(value, kind):
        built = "; call its build()" if callable(getattr(value, "build", None)) else ""
        raise ProgramError(f"{needs}, not {value!r}{built}")


@contextmanager
def as_state_error(said: Callable[[Exception], str]) -> Iterator[None]:
    """Raise a `StateError` that describes an error, in place of any error that is not eventide's.

    >>> with as_state_error(lambda error: f"a.parquet cannot be read: {error}"):
    ...     raise OSError("it is cut")
    Traceback (most recent call last):
        ...
    eventide.errors.StateError: a.parquet cannot be read: it is cut
    """
    try:
        yield
    except EventideError:
        raise
    except Exception as error:  # of any kind: the data may contain anything
        raise StateError(said(error)) from error


def dead_letter_advice(stream: str) -> str:
    """The advice in an error that stops a job, if a dead letter could replace the error."""
    return f"side_output_dead_letters(OutputTag(...)), called on {stream}, lets the job go on without what is bad"


DEAD_LETTER_ADVICE = dead_letter_advice("the stream that this operator gives")
"""The advice of the operator that cannot handle an element."""


MEMORY_ADVICE = (
    "give the machine, or spark.driver.memory and spark.executor.memory, more; or have micro-batches read less, with "
    "env.set_max_rows_per_batch(...). A micro-batch that fails so at each start is already planned; 'eventide "
    "checkpoint PATH --defer' undoes that"
)
"""The advice in an error that stops a job because memory was short."""


def advised(error: Exception) -> DataError:
    """An error of the data, followed by the advice."""
    return DataError(f"{error if isinstance(error, DataError) else repr(error)}; {DEAD_LETTER_ADVICE}")


def getting(extra: str) -> str:
    """The command that installs eventide with an extra.

    >>> getting("kafka")
    "pip install 'eventide-spark[kafka]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


@contextmanager
def needing(library: str, what: str, extra: str) -> Iterator[None]:
    """Say what to install where a library of an extra cannot be imported.

    Args:
        library: the name of the library.
        what: the feature that needs it.
        extra: the extra that brings it.

    Raises:
        ProgramError: in place of an ``ImportError``.
    """
    try:
        yield
    except ImportError as error:
        raise ProgramError(
            f"{what} needs the library {library}, which is not installed here: {getting(extra)}, also where Spark's "
            "workers run"
        ) from error
