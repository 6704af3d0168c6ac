"""Base of the schemas of rows: their type, how a message is shown, and reading many messages at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

_FEW = 64
_LONGEST = 200


def row_type_of(schema: str, type_info: TypeInformation | None) -> CompositeTypeInfo:
    """The type of rows that was given to the builder of a schema.

    Raises:
        ProgramError: if there is none, or it is no type of rows.
    """
    if not isinstance(type_info, CompositeTypeInfo):
        raise ProgramError(
            f"{schema} needs the type of its rows, such as Types.ROW_NAMED([...], [...]), not {type_info!r}"
        )
    return type_info


def said(message: bytes) -> str:
    """A message as an error shows it, cut where it would flood it."""
    text = repr(message[:_LONGEST])
    return text if len(message) <= _LONGEST else f"{text}… ({len(message)} bytes)"


def bytes_of_column(messages: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The messages of a column; text as its UTF-8."""
    import pyarrow as pa

    is_text = pa.types.is_string(messages.type) or pa.types.is_large_string(messages.type)
    found: list[Any] = (messages.cast(pa.binary()) if is_text else messages).to_pylist()
    return found


def halved(
    messages: Sequence[Any], at_once: Callable[[Any], pa.Array | None], one_by_one: Callable[[Any], pa.Array]
) -> pa.Array:
    """The elements of messages, each at the place of its message, null where there is none.

    Args:
        messages: bytes; None where there is no message.
        at_once: gives all of some messages, none of them None; or None where it cannot. Then halves are tried, so that
            one bad message has few others looked at one by one with it.
        one_by_one: gives them in any case, or says what is wrong with them.
    """
    import pyarrow as pa

    there = [message for message in messages if message is not None]
    if len(there) < len(messages):
        numbers = itertools.count()
        places = [None if message is None else next(numbers) for message in messages]
        return halved(there, at_once, one_by_one).take(pa.array(places, pa.int64()))
    found = at_once(messages) if messages else None
    if found is not None:
        return found
    if len(messages) <= _FEW:
        return one_by_one(messages)
    middle = len(messages) // 2
    return pa.concat_arrays([halved(part, at_once, one_by_one) for part in (messages[:middle], messages[middle:])])
