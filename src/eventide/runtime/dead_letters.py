"""What becomes of an element that cannot be handled: an error that stops the job; a letter, where one is wanted."""

from __future__ import annotations

from typing import Any

from eventide.common.types import Row
from eventide.datastream._dead_letters import DEAD_LETTER
from eventide.errors import DataError, ProgramError, StateError, UserFunctionError
from eventide.runtime.invoke import user_function_error

FIELDS = tuple(DEAD_LETTER.names or ())

ADVICE = (
    "side_output_dead_letters(OutputTag(...)), called on the stream that this operator gives, lets the job go on "
    "without what is bad"
)
"""What the error says that stops a job, where a dead letter could take its place."""


def dead_letter(operator: str, during: str, error: Exception, **what: Any) -> Row:
    """The letter that tells of an error; ``what`` are its other fields, as far as they are known.

    Raises:
        EventideError: if it is none of the data's: the program or its state is wrong, or memory is short.

    >>> letter = dead_letter("parse", "while it handled an element", ValueError("no number"), element="x")
    >>> letter.error_type, letter.error, letter.element, letter.key
    ('ValueError', 'no number', 'x', None)
    """
    if not is_of_the_data(error):
        raise user_function_error(operator, error, during=during, **what) from error
    cause = error.__cause__ if isinstance(error, UserFunctionError) and error.__cause__ is not None else error
    fields = dict.fromkeys(FIELDS) | what
    fields |= {"operator": operator, "during": during, "error_type": type(cause).__name__, "error": _said(cause)}
    return Row(**fields)


def advised(error: Exception) -> Exception:
    """An error of the data with the advice behind it."""
    return DataError(f"{error}; {ADVICE}") if isinstance(error, DataError) else DataError(f"{error!r}; {ADVICE}")


def is_of_the_data(error: BaseException) -> bool:
    """Whether an error may be one of a single element: not if the program or its state is wrong, or memory is short."""
    return not isinstance(error, ProgramError | StateError | MemoryError)


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as of_its_own:
        return f"<a {type(error).__name__} whose text raised {of_its_own!r}>"
