"""Rolling aggregation: each element of a key is combined with what came before, and the result put out."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from eventide.api.functions import KeyedProcessFunction, ReduceFunction, RuntimeContext
from eventide.api.state import ReducingStateDescriptor
from eventide.common.ms import MAX_MS
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.common.types import Row
from eventide.errors import ProgramError
from eventide.runtime.elements.fields import types_of_fields
from eventide.runtime.process.functions import Handle, Processing, Results
from eventide.runtime.state.key_context import FUNCTION_STATE
from eventide.runtime.tasks.operator import is_exact
from eventide.runtime.tracing.folds import FieldFold, FieldOfExtreme, Fold, How

_NAME = "reduced"
REDUCED = FUNCTION_STATE + _NAME
"""The name under which what a key has lies in its state."""


class _Reduces(KeyedProcessFunction):
    """Keeps the result of each key; in batch execution it comes out at the end, as in Flink."""

    def __init__(self, function: ReduceFunction, element_type: TypeInformation) -> None:
        self.function = function
        self._element_type = element_type
        self.__wrapped__ = function

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the user's function, and find the state."""
        self.function.open(runtime_context)
        descriptor = ReducingStateDescriptor(_NAME, self.function, self._element_type)
        self._state = runtime_context.get_reducing_state(descriptor)

    def close(self) -> None:
        """Close the user's function."""
        self.function.close()

    def process_element(self, value: Any, ctx: Any) -> Results:
        """Add an element, and give what the key has with it."""
        self._state.add(value)
        if ctx.in_batch:
            ctx.timer_service().register_event_time_timer(MAX_MS)
            return None
        return (self._state.get(),)

    def on_timer(self, timestamp: int, ctx: Any) -> Results:
        """Give what the key has at the end."""
        return (self._state.get(),)


@dataclass(frozen=True, slots=True)
class Rolling(Processing):
    """A ``ReduceFunction`` on a keyed stream."""

    user_function: _Reduces

    @staticmethod
    def of(function: ReduceFunction, kind: str, element_type: TypeInformation) -> Rolling:
        """The rolling aggregation by a function of elements of a type."""
        return Rolling(_Reduces(function, element_type), kind)

    @property
    def function(self) -> ReduceFunction:
        """The function itself."""
        return self.user_function.function

    @property
    def on_element(self) -> tuple[Handle, ...]:
        return (self.user_function.process_element,)

    @property
    def on_timer(self) -> Handle | None:
        """The end of batch execution."""
        return self.user_function.on_timer

    @property
    def may_wait_for_clock(self) -> bool:
        """False: its only timers are of event time."""
        return False


def lower(value: Any, other: Any) -> Any:
    """The lower of two values; of equal ones the first."""
    return other if _is_lower(other, value) else value


def higher(value: Any, other: Any) -> Any:
    """The higher of two values; of equal ones the first."""
    return other if _is_lower(value, other) else value


def _is_lower(one: Any, other: Any) -> bool:
    """Whether a value is lower than another: NaN is higher than any number, and all NaN are equal, as in Java.

    >>> nan = float("nan")
    >>> _is_lower(1.0, nan), _is_lower(nan, 1.0), _is_lower(nan, nan)
    (True, False, False)
    """
    return bool(one < other or (other != other and one == one))  # noqa: PLR0124 - NaN does not equal itself


class Accumulates(ReduceFunction):
    """Combines one field; the others stay those of the first element."""

    def __init__(self, combine: Callable[[Any, Any], Any], field: int | str) -> None:
        self._combine = combine
        self._field = field

    def reduce(self, value1: Any, value2: Any) -> Any:
        """The first element with another value of the field."""
        field = self._field
        return with_field(value1, field, self._combine(field_of(value1, field), field_of(value2, field)))

    def fold(self, type_info: TypeInformation) -> Fold | None:
        """The fold that it is for elements of a type; None where it has to be called."""
        found = _place_and_type(self._field, type_info)
        if found is None or (self._combine is operator.add and str(found[1]) not in _ADDED):
            return None
        place, _ = found
        fields: list[FieldFold] = [How.FIRST] * len(types_of_fields(type_info))
        is_sum = self._combine is operator.add
        fields[place] = How.SUM if is_sum else FieldOfExtreme(((place, self._combine is higher),))
        return Fold(type_info, tuple(fields))


class Chooses(ReduceFunction):
    """The element with the extreme value of a field; of equal ones the first, or the last."""

    def __init__(self, field: int | str, *, highest: bool, first: bool) -> None:
        self._field = field
        self._highest = highest
        self._first = first

    def reduce(self, value1: Any, value2: Any) -> Any:
        """One of the two elements."""
        one, other = field_of(value1, self._field), field_of(value2, self._field)
        if _is_lower(one, other):
            return value2 if self._highest else value1
        if _is_lower(other, one):
            return value1 if self._highest else value2
        return value1 if self._first else value2

    def fold(self, type_info: TypeInformation) -> Fold | None:
        """The fold that it is for elements of a type; None where it has to be called."""
        found = _place_and_type(self._field, type_info)
        if found is None:
            return None
        how = FieldOfExtreme(((found[0], self._highest),), not self._first)
        return Fold(type_info, (how,) * len(types_of_fields(type_info)))


_ADDED = ("BYTE", "SHORT", "INT", "LONG", "DOUBLE")


def _place_and_type(field: int | str, type_info: TypeInformation) -> tuple[int, TypeInformation] | None:
    """The place and type of a field that columns compare and add up as Python does; None for any other."""
    if isinstance(type_info, CompositeTypeInfo):
        names, kinds = type_info.field_names, type_info.types
        place = names.index(field) if field in names else field
        if not isinstance(place, int) or not 0 <= place < len(kinds):
            return None
        kind = kinds[place]
    else:
        place, kind = 0, type_info
        if field != 0:
            return None
    return (place, kind) if is_exact(kind) or str(kind) in ("FLOAT", "DOUBLE") else None


def field_of(value: Any, field: int | str) -> Any:
    """The value of a field, by its place or its name.

    Raises:
        ProgramError: if the element has no such field.

    >>> field_of((1, 2), 1), field_of((1, 2), "f1"), field_of({"a": 3}, "a"), field_of(4, 0)
    (2, 2, 3, 4)
    """
    try:
        if isinstance(value, Row | dict) or (isinstance(value, list | tuple) and isinstance(field, int)):
            return value[field]  # type: ignore[index]
        if isinstance(field, str):
            return value[_place(field)] if type(value) is tuple else getattr(value, field)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise _no_field(value, field) from error
    if field != 0:
        raise _no_field(value, field)
    return value


def with_field(value: Any, field: int | str, new: Any) -> Any:
    """A copy of an element that has another value in one field.

    >>> with_field((1, 2), "f1", 5), with_field({"a": 3}, "a", 5), with_field(4, 0, 5)
    ((1, 5), {'a': 5}, 5)
    """
    if isinstance(value, dict):
        return {**value, field: new}
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a namedtuple
        named = {value._fields[field] if isinstance(field, int) else field: new}
        return value._replace(**named)  # type: ignore[attr-defined]
    if isinstance(value, tuple) and not isinstance(value, Row):
        at = _place(field) if isinstance(field, str) else range(len(value))[field]
        return (*value[:at], new, *value[at + 1 :])
    if isinstance(value, Row | list):
        changed = copy.copy(value)
        changed[field] = new  # type: ignore[index]
        return changed
    if isinstance(field, str):
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{field: new})
        changed = copy.copy(value)
        setattr(changed, field, new)
        return changed
    return new


def _place(field: str) -> int:
    """The place of a field of a tuple, whose fields are called f0, f1, …."""
    if not field.startswith("f"):
        raise ValueError(field)
    return int(field[1:])


def _no_field(value: Any, field: int | str) -> ProgramError:
    return ProgramError(f"an element of type {type(value).__name__} has no field {field!r}: {value!r:.200}")
