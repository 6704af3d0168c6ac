"""Dead letters: the rows that tell of elements, timers and windows that an operator cannot handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eventide._secrets import without_secrets
from eventide.api.dead_letters import DEAD_LETTER
from eventide.api.source import Unreadable
from eventide.common.types import Row
from eventide.errors import DataError, UserFunctionError
from eventide.pickling.pickles import dumps
from eventide.runtime.invoke import is_of_the_data, repr_of, shown, user_function_error

FIELDS = tuple(DEAD_LETTER.names or ())

_LONGEST = 300


def dead_letter(operator: str, during: str, error: Exception, *, window: Any = None, **what: Any) -> Row:
    """The dead letter that tells of an error; ``what`` are its other fields, as far as they are known.

    A ``window`` that could not fire is named in ``during``.

    Raises:
        EventideError: if the data is not to blame: the program or its state is wrong, or memory is short.

    >>> letter = dead_letter("parse", "while it handled an element", ValueError("no number"), element="x")
    >>> letter.error_type, letter.error, letter.element, letter.key
    ('ValueError', 'no number', 'x', None)
    """
    if not is_of_the_data(error):
        raise user_function_error(operator, error, during=during, **what) from error
    cause = error.__cause__ if isinstance(error, UserFunctionError) and error.__cause__ is not None else error
    fields = dict.fromkeys(FIELDS) | what
    fields |= {
        "operator": operator,
        "during": during if window is None else f"when the window {shown(window)} fired",
        "error_type": type(cause).__name__,
        "error": without_secrets(_text(cause, str)),
    }
    fields["text"] = as_text(fields["element"])
    for name in ("error", "text", "split"):
        fields[name] = _in_unicode(fields[name])
    if not _can_travel(fields["element"]):
        fields["element"] = None
    return Row(**fields)


def as_text(element: Any) -> str | None:
    r"""An element of any type as text; None stays None.

    >>> as_text(b"caf\xc3\xa9 \xff"), as_text("one"), as_text(("a", 1))
    ('café \\xff', 'one', "('a', 1)")
    """
    if element is None or isinstance(element, str):
        return element
    if isinstance(element, bytes | bytearray):
        return element.decode("utf-8", "backslashreplace")
    return _text(element, repr)


def cannot_be_read(bad: Unreadable) -> DataError:
    """The error of a source that cannot read a record."""
    where = ["record" if bad.position is None else f"record {bad.position}", *([bad.split] if bad.split else [])]
    said = str(bad.error) if isinstance(bad.error, DataError) else repr(bad.error)
    cut = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
    return DataError(f"{' of '.join(where)} cannot be read: {cut}")


def described(tag: str | None) -> list[tuple[str, str]]:
    """The line of ``explain`` about an operator's dead letters; no line where it has none."""
    return [] if tag is None else [("bad data", f"to side output {tag!r}, as dead letters")]


def _text(value: Any, form: Callable[[Any], str]) -> str:
    try:
        return form(value)
    except Exception as error:
        return f"<a {type(value).__name__} whose text raised {repr_of(error)}>"


def _in_unicode(text: str | None) -> str | None:
    r"""A text that a column can hold: a surrogate without its other half, as JSON allows it, is written out.

    >>> _in_unicode("\ud83d!")
    '\\ud83d!'
    """
    return None if text is None else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _can_travel(element: Any) -> bool:
    try:
        dumps(element)
    except Exception:  # whatever a user's class raises, or what is too deep to be pickled
        return False
    return True
