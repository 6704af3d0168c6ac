"""What a dead letter looks like, the same for all operators, and how an error tells of it."""

from __future__ import annotations

from eventide.common.typeinfo import RowTypeInfo, Types
from eventide.errors import DataError

DEAD_LETTER = RowTypeInfo(
    [
        Types.STRING(),
        Types.STRING(),
        Types.STRING(),
        Types.STRING(),
        Types.PICKLED_BYTE_ARRAY(),
        Types.STRING(),
        Types.PICKLED_BYTE_ARRAY(),
        Types.LONG(),
        Types.STRING(),
        Types.LONG(),
    ],
    ["operator", "during", "error_type", "error", "element", "text", "key", "timestamp", "split", "position"],
)
"""The type of dead letters, whoever puts them out.

- ``operator``: the name of the operator, or of the source.
- ``during``: what it did, in words.
- ``error_type``, ``error``: the name of the exception's class, and its message.
- ``element``: the element as it was; of a source, the bytes or the text that could not be read. None where it is a
  timer or a window.
- ``text``: the same as text, for who has no Python; bytes as UTF-8, and what is none with backslashes.
- ``key``: its key, where the operator works by key; that of a record of Kafka, in bytes.
- ``timestamp``: its event time in milliseconds; the time of a timer; of a window, that of its last millisecond.
- ``split``, ``position``: where a source had it: the partition or file, and the offset or the number of the row.
"""


def advice_to_call_it_on(stream: str) -> str:
    """What the error says that stops a job, where a dead letter could take its place."""
    return f"side_output_dead_letters(OutputTag(...)), called on {stream}, lets the job go on without what is bad"


ADVICE = advice_to_call_it_on("the stream that this operator gives")
"""The same of an operator that says of itself what it cannot handle."""


def advised(error: Exception) -> DataError:
    """An error of the data with the advice behind it."""
    return DataError(f"{error if isinstance(error, DataError) else repr(error)}; {ADVICE}")
