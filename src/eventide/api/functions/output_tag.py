"""Side outputs: their names, and the type and the limits of the elements of one for dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, overload

from eventide._absent import says_what_is_absent
from eventide.common.type_variables import OUT, T_co
from eventide.common.typeinfo import RowTypeInfo, TypeInformation, Types
from eventide.common.types import Row

__all__ = ["OutputTag"]


@says_what_is_absent
class OutputTag(Generic[T_co]):
    """A named and typed side output of an operator: for late elements, or for elements that a function sends there.

    Tags are equal when their names are; they do not change.

    Args:
        tag_id: The name, not empty.
        type_info: The type of the elements; a list of types means ``Types.ROW``, None means pickled objects.

    Raises:
        ValueError: The name is empty.
        TypeError: `type_info` is neither a type, a list of types, nor None.

    >>> OutputTag("late-data", Types.TUPLE([Types.STRING(), Types.LONG()]))
    OutputTag('late-data', TUPLE(STRING, LONG))
    """

    __slots__ = ("_tag_id", "_type_info")

    @overload
    def __init__(self, tag_id: str, type_info: TypeInformation[T_co] | None = None) -> None: ...

    @overload
    def __init__(self: OutputTag[Row], tag_id: str, type_info: Sequence[TypeInformation]) -> None: ...

    def __init__(self, tag_id: str, type_info: TypeInformation | Sequence[TypeInformation] | None = None) -> None:
        if not tag_id:
            raise ValueError("OutputTag: the tag_id must not be None or empty")
        if type_info is None:
            type_info = Types.PICKLED_BYTE_ARRAY()
        elif isinstance(type_info, list):
            type_info = Types.ROW(type_info)
        if not isinstance(type_info, TypeInformation):
            raise TypeError(f"OutputTag {tag_id!r}: expected None, a list or a TypeInformation, got {type_info!r}")
        self._tag_id = tag_id
        self._type_info = type_info

    @property
    def tag_id(self) -> str:
        """The name."""
        return self._tag_id

    @property
    def type_info(self) -> TypeInformation[T_co]:
        """The type of the elements."""
        return self._type_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self._tag_id == other._tag_id

    def __hash__(self) -> int:
        return hash(self._tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self._tag_id!r}, {self._type_info})"


Emitted: TypeAlias = Iterable[OUT | tuple[OutputTag[Any], Any]] | None
"""The output of a function: elements, and ``(tag, value)`` for side outputs; None emits nothing."""

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
