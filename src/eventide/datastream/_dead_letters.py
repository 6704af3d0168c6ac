"""What a dead letter looks like: one type for those of all operators, so that their streams can be put together."""

from __future__ import annotations

from eventide.common.typeinfo import RowTypeInfo, Types

DEAD_LETTER = RowTypeInfo(
    [
        Types.STRING(),
        Types.STRING(),
        Types.STRING(),
        Types.STRING(),
        Types.PICKLED_BYTE_ARRAY(),
        Types.PICKLED_BYTE_ARRAY(),
        Types.LONG(),
        Types.STRING(),
        Types.LONG(),
    ],
    ["operator", "during", "error_type", "error", "element", "key", "timestamp", "split", "position"],
)
"""The type of dead letters, whoever puts them out.

- ``operator``: the name of the operator, or of the source.
- ``during``: what it did, in words.
- ``error_type``, ``error``: the name of the exception's class, and its message.
- ``element``: the element as it was; of a source, the bytes or the text that could not be read. None where it is a
  timer or a window.
- ``key``: its key, where the operator works by key; that of a record of Kafka, in bytes.
- ``timestamp``: its event time in milliseconds; the time of a timer; of a window, that of its last millisecond.
- ``split``, ``position``: where a source had it: the partition or file, and the offset or the number of the row.
"""
