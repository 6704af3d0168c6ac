"""Session windows whose elements bring their gaps: one for each row, found on columns or by the program's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from eventide.api.windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from eventide.common.ms import clamp_ms
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation, Types
from eventide.errors import DEAD_LETTER_ADVICE
from eventide.runtime.chain.chained_operators import HANDLING
from eventide.runtime.elements.elements import Columns
from eventide.runtime.invoke import user_function_error
from eventide.runtime.tracing.admission import NotTraceable, says_in_python
from eventide.runtime.tracing.column_functions import mapped, traced_whole
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import BatchInPython, place_of, reason_of, why_python

DynamicGapSessions: TypeAlias = DynamicEventTimeSessionWindows[Any] | DynamicProcessingTimeSessionWindows[Any]
DYNAMIC = (DynamicEventTimeSessionWindows, DynamicProcessingTimeSessionWindows)
"""The sessions whose elements bring their gaps, by either kind of time."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps of the sessions of a window operator, whose elements have fields; ``keys`` are those of its key."""

    operator: str
    assigner: DynamicEventTimeSessionWindows[Any]
    keys: tuple[str, ...]

    def column(self, columns: Columns) -> tuple[pa.Array, BatchInPython | None]:
        """The gap of each element, in milliseconds; and why Python is called for that because of what they contain.

        Raises:
            DataError: if one is not a positive integer.
            UserFunctionError: if the extractor raised.
        """
        try:
            return traced_gaps(self.assigner, columns), None
        except NotTraceable:
            in_python = None
        except Guard as guard:
            in_python = BatchInPython(self.operator, reason_of(guard))
        kind = columns.type_info
        gaps = pa.array([self._of(element, kind) for element in kind.from_arrow(columns.values)], pa.int64())
        return gaps, in_python

    def _of(self, element: Any, kind: TypeInformation) -> int:
        try:
            return clamp_ms(self.assigner.gap_of(element))
        except Exception as error:
            names = kind.field_names if isinstance(kind, CompositeTypeInfo) else []
            parts = [None if element is None else element[names.index(key)] for key in self.keys]
            key = None if not parts else parts[0] if len(parts) == 1 else tuple(parts)
            raise user_function_error(
                self.operator, error, during=HANDLING, advice=DEAD_LETTER_ADVICE, key=key, element=element
            ) from error

    def speed(self, kind: TypeInformation) -> str:
        """How gaps are found for elements of a type, and why, for ``explain``."""
        reason = why_no_traced_gaps(self.assigner, kind)
        return "gaps on columns" if reason is None else f"gaps in Python, because {reason}"


def traced_gaps(assigner: DynamicGapSessions, columns: Columns) -> pa.Array:
    """The gap of each element, in milliseconds, found on columns.

    Raises:
        NotTraceable: if its extractor has to be called in Python.
        Guard: if Python might give something else for some of these elements, or raise.
    """
    traced_whole(_call(assigner), columns.type_info)
    gaps, _ = mapped(_call(assigner), columns, Types.LONG())
    if gaps.null_count or not (gaps.to_numpy() > 0).all():
        raise Guard("a gap that is not a positive number")
    return gaps


def why_no_traced_gaps(assigner: DynamicGapSessions, kind: TypeInformation) -> str | None:
    """Why gaps of elements of a type are found in Python; None if they are not."""
    call = _call(assigner)
    return why_python(lambda: traced_whole(call, kind), call, kind)


def obstacle_of_gaps(assigner: object, dead_letters: str | None) -> str | None:
    """Why sessions whose elements bring their gaps cannot run on columns, and what to change; None if they can."""
    if not isinstance(assigner, DynamicEventTimeSessionWindows):
        return None
    if dead_letters is not None:
        return "elements without a gap become dead letters; without side_output_dead_letters gaps run on columns"
    extractor = assigner.session_window_time_gap_extractor
    if not says_in_python(extractor):
        return None
    return f"the program says in_python of the gap extractor{place_of(extractor)}"


def _call(assigner: DynamicGapSessions) -> Callable[[Any], Any]:
    extractor = assigner.session_window_time_gap_extractor
    return extractor.extract if isinstance(extractor, SessionWindowTimeGapExtractor) else extractor
