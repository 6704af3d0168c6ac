"""The type of dead letters, and the advice to ask for them in the errors that stop a job."""

from __future__ import annotations

from typing import NamedTuple

from eventide.common.typeinfo import RowTypeInfo, Types
from eventide.errors import DataError

_TEXT, _NUMBER, _OBJECT = Types.STRING(), Types.LONG(), Types.PICKLED_BYTE_ARRAY()
_FIELDS = {
    "operator": _TEXT,
    "during": _TEXT,
    "error_type": _TEXT,
    "error": _TEXT,
    "element": _OBJECT,
    "text": _TEXT,
    "key": _OBJECT,
    "timestamp": _NUMBER,
    "split": _TEXT,
    "position": _NUMBER,
}
DEAD_LETTER = RowTypeInfo(_FIELDS.values(), _FIELDS)
"""The type of dead letters, of all operators and sources.

- ``operator``: the name of the operator, or of the source.
- ``during``: what it was doing, in words.
- ``error_type``, ``error``: the name of the exception's class, and its message.
- ``element``: the element as it was; of a source, the bytes or the text that could not be read. None for a timer and
  a window.
- ``text``: ``element`` as text, for readers without Python; bytes as UTF-8, with backslashes for bytes that are not
  UTF-8.
- ``key``: its key, if the operator is keyed; the bytes of the key of a Kafka record.
- ``timestamp``: its event time in milliseconds; the time of a timer; the last millisecond of a window.
- ``split``, ``position``: its place in a source: the partition or file, and the offset or the number of the row.
"""


class DeadLetterLimits(NamedTuple):
    """Limits of the dead letters of each operator, in one of its tasks and one micro-batch; None for no limit.

    Attributes:
        given: the greatest number of letters that are emitted; others are only counted.
        stop_above: the number of letters above which the job stops.
    """

    given: int | None = None
    stop_above: int | None = None


def advice_to_call_it_on(stream: str) -> str:
    """The advice in an error that stops a job, if a dead letter could replace the error."""
    return f"side_output_dead_letters(OutputTag(...)), called on {stream}, lets the job go on without what is bad"


ADVICE = advice_to_call_it_on("the stream that this operator gives")
"""The advice of the operator that cannot handle an element."""


def advised(error: Exception) -> DataError:
    """An error of the data, followed by the advice."""
    return DataError(f"{error if isinstance(error, DataError) else repr(error)}; {ADVICE}")
