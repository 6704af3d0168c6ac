"""What the schemas of rows share: their type, how a message is shown, and reading many messages at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.common.typeinfo._base import one_array
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


def halved(
    messages: Any, at_once: Callable[[pa.Array], pa.Array | None], one_by_one: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """The elements of messages, each at the place of its message, null where there is none.

    Args:
        messages: bytes.
        at_once: gives all of some messages, none of them null; or None where it cannot. Then halves are tried, so that
            one bad message has few others looked at one by one with it.
        one_by_one: gives them in any case, or says what is wrong with them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    messages = one_array(messages)
    if messages.null_count:
        there = messages.is_valid()
        places = pc.if_else(
            there, pc.subtract(pc.cumulative_sum(there.cast(pa.int64())), 1), pa.scalar(None, pa.int64())
        )
        return halved(messages.drop_null(), at_once, one_by_one).take(places)
    found = at_once(messages) if len(messages) else None
    if found is not None:
        return found
    if len(messages) <= _FEW:
        return one_by_one(messages)
    middle = len(messages) // 2
    return pa.concat_arrays([halved(part, at_once, one_by_one) for part in (messages[:middle], messages[middle:])])
