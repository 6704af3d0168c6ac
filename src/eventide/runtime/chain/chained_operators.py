"""The chained operators: each turns a batch of elements into batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from sys import getrefcount
from typing import Any, ClassVar, Protocol, TypeAlias

import pyarrow as pa

from eventide.api.functions import CoProcessFunction, KeySelector, ProcessFunction
from eventide.api.functions.timers import TimerService
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import CompositeTypeInfo, ListTypeInfo, MapTypeInfo, TypeInformation, Types
from eventide.errors import DEAD_LETTER_ADVICE, ProgramError
from eventide.runtime.chain.outputs import Collector, DeadLetterOutput, TagsAmongResults
from eventide.runtime.elements.elements import Columns, Elements, without_collection
from eventide.runtime.elements.keys import stable_hash, unhashable
from eventide.runtime.elements.ownership import (
    FIXED,
    UNSHARED,
    all_fixed,
    is_bare,
    is_flat,
    only_looks,
    own,
    own_each,
    own_in_turn,
)
from eventide.runtime.elements.touched import touched_fields
from eventide.runtime.invoke import is_of_the_data, last_of, results_of, user_function_error
from eventide.runtime.metrics import Metrics
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import (
    fields_read,
    filtered,
    flat_mapped,
    mapped,
    output_types,
    processed,
    result_type,
    traced,
    traced_process,
    traced_truth,
)
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import place_of, why_python
from eventide.runtime.tracing.tracing import Trace


class ElementContext(ProcessFunction.Context, CoProcessFunction.Context):
    """The operator or task as a function without keys sees it; ``time_ms`` is the time of the current element."""

    def __init__(self, moment: Moment) -> None:
        self.time_ms: int | None = None
        self._timers: Times = Times(moment)

    def timer_service(self) -> TimerService:
        return self._timers

    def timestamp(self) -> int | None:
        return self.time_ms

    def follow(self, moment: Moment) -> None:
        """Tell the times of another task, or micro-batch, from now on."""
        self._timers.follow(moment)


def _no_context() -> ElementContext:
    """A context before its first element."""
    return ElementContext(Moment())


Call: TypeAlias = Callable[[Any, ElementContext], Iterable[Any]]
"""Gives what comes of one element, or raises."""

HANDLING = "while it handled an element"

EXTRACTING = "when a key was extracted"


class Moment:
    """Where an operator stands, in milliseconds."""

    __slots__ = ("processing_time", "watermark")

    def __init__(self, watermark: int = MIN_MS, processing_time: int = MIN_MS) -> None:
        self.watermark = watermark
        self.processing_time = processing_time


class Clock:
    """The times of an operator or task, as functions ask for them."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment

    def follow(self, moment: Moment) -> None:
        """Tell the times of another moment from now on."""
        self._moment = moment

    def current_processing_time(self) -> int:
        """The time of the micro-batch, in milliseconds."""
        return self._moment.processing_time

    def current_watermark(self) -> int:
        """The operator's watermark, in milliseconds."""
        return self._moment.watermark


class Times(Clock, TimerService):
    """The times of an operator or task; timers are refused, because they need a key."""

    def register_event_time_timer(self, timestamp: int) -> None:
        raise ProgramError("timers belong to a key, and this stream has none; call key_by(...) before process(...)")

    register_processing_time_timer = register_event_time_timer
    delete_event_time_timer = delete_processing_time_timer = register_event_time_timer


class StatelessOperator(Protocol):
    """An operator on elements that keeps no state. Flink: ``StreamMap``, ``StreamFilter`` and their like."""

    @property
    def name(self) -> str:
        """The operator's name."""

    @property
    def user_function(self) -> Any:
        """The user's function, to be opened and closed."""

    def on_columns(self, columns: Columns) -> Elements | Mapping[str | None, Elements] | None:
        """The results, without a Python object for any of them; None if Python has to be called.

        Those of an operator with side outputs come by side output (None: the main one).

        Raises:
            Guard: if Python has to be called because of what is in these columns.
        """

    def why_in_python(self, type_info: TypeInformation) -> str | None:
        """Why Python is called for each element of a type that comes as columns; None if it is not."""


class ChainedOperator(StatelessOperator, Protocol):
    """An operator in a chain: one that Python can be called for."""

    def outputs(self, elements: Elements, moment: Moment, metrics: Metrics) -> Mapping[str | None, Elements]:
        """The results by side output (None: the main one), by a call of Python for each element.

        Results keep the timestamp and the number of their element.
        """


class OneOutput(ABC):
    """The part of an operator on elements whose only output is the main one."""

    __slots__ = ()

    def outputs(self, elements: Elements, moment: Moment, metrics: Metrics) -> Mapping[str | None, Elements]:
        """The results as the main output, which is the only one."""
        return {None: self.apply(elements)}

    @abstractmethod
    def apply(self, elements: Elements) -> Elements:
        """The results, by a call of Python for each element."""


@dataclass(frozen=True, slots=True)
class _CalledFunction(ABC):
    """A function that is called with each element; ``type_info`` is the declared type of its results."""

    name: str
    call: Callable[..., Any]
    user_function: object
    type_info: TypeInformation | None = None

    during: ClassVar[str] = HANDLING
    several: ClassVar[bool] = False
    """Whether the function gives any number of results for one element."""

    def on_columns(self, columns: Columns) -> Elements | Mapping[str | None, Elements] | None:
        """The results of the function's trace."""
        try:
            return self._on_columns(columns)
        except NotTraceable:
            return None

    @abstractmethod
    def _on_columns(self, columns: Columns) -> Elements | Mapping[str | None, Elements]:
        """The results of the function's trace; the function may have none."""

    def why_in_python(self, type_info: TypeInformation) -> str | None:
        """The reason that keeps the function in Python; None if it runs on columns."""
        return why_python(lambda: self.output_types(self.trace(type_info)), self.call, type_info)

    def trace(self, type_info: TypeInformation) -> Trace:
        """The trace of the function with elements of a type.

        Raises:
            NotTraceable: if it stays Python.
        """
        return traced(self.call, type_info, several=self.several)

    def output_types(self, trace: Trace) -> Mapping[str | None, TypeInformation]:
        """The types of its outputs, by side output.

        Raises:
            NotTraceable: if results do not become values of the declared type by a cast.
        """
        return {None: result_type(trace, self.type_info)}

    def fields_read(self, type_info: TypeInformation) -> frozenset[str] | None:
        """The fields of its elements that it reads, besides handing them on; None if that is not known."""
        return fields_read(self.call, type_info, several=self.several)


@dataclass(frozen=True, slots=True)
class Map(_CalledFunction):
    """One element for one, in the main output or a side output."""

    def caller(self, values: list[Any]) -> Call:
        """The function, whose result is one of one."""
        call = self.call
        return lambda value, _: [call(value)]

    def _on_columns(self, columns: Columns) -> Elements:
        values, kind = mapped(self.call, columns, self.type_info)
        return Elements(columns=replace(columns, type_info=kind, values=values))

    def outputs(self, elements: Elements, moment: Moment, metrics: Metrics) -> Mapping[str | None, Elements]:
        """The results of the function, by side output."""
        call, values, tags = self.call, iter(_seen_by(self.call, elements)), TagsAmongResults()
        try:
            made = map(call, values)
            results = list(made) if is_bare(call) else own_in_turn(made, tags.copied)
            if len(results) < len(elements):
                raise RuntimeError("the function raised StopIteration")  # which ended `made`, as it would any iterator
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        return tags.by_output(self.name, Elements(results, elements.timestamps, elements.sequence), self.type_info)


@dataclass(frozen=True, slots=True)
class Projection:
    """Some fields of a tuple, by their places, as the function of a map.

    >>> Projection((2, 0))(("a", "b", "c"))
    ('c', 'a')
    """

    places: tuple[int, ...]
    is_bare: ClassVar[bool] = True

    def __call__(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """The chosen fields of one tuple."""
        return tuple(value[place] for place in self.places)


@dataclass(frozen=True, slots=True)
class Filter(OneOutput, _CalledFunction):
    """The elements for which the function is true; ``only_looks`` says that its code shows that it changes none."""

    only_looks: bool = False

    def caller(self, values: list[Any]) -> Call:
        """The element itself, or nothing."""
        call = self.call
        return lambda value, _: [value] if call(value) else []

    def _on_columns(self, columns: Columns) -> Elements:
        return Elements(columns=columns.filtered(filtered(self.call, columns)))

    def why_in_python(self, type_info: TypeInformation) -> str | None:
        return why_python(lambda: traced_truth(self.call, type_info), self.call, type_info)

    def apply(self, elements: Elements) -> Elements:
        if (seen := _fields_seen_by(self.call, elements, fixed=True)) is not None:
            return self._apply_to_fields(elements, seen)
        call, values = self.call, iter(elements.values)
        given = elements.values
        is_known = self.only_looks and elements.columns is not None
        stay_as_they_are = is_known or only_looks(call) or all_fixed(given)
        try:
            if stay_as_they_are:
                kept = [bool(call(value)) for value in values]
            else:
                unshared = UNSHARED + 1  # the batch refers to each element, too
                given, kept = [], []
                for value in values:
                    kept.append(bool(call(value)))
                    is_owner = not kept[-1] or (getrefcount(value) == unshared and is_flat(value))
                    given.append(value if is_owner else own(value))
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        if all(kept):
            return elements if stay_as_they_are else Elements(given, elements.timestamps, elements.sequence)
        columns = elements.columns if stay_as_they_are else None
        return Elements(
            list(compress(given, kept)),
            list(compress(elements.timestamps, kept)),
            list(compress(elements.sequence, kept)),
            columns=None if columns is None else columns.filtered(pa.array(kept)),
        )

    def _apply_to_fields(self, elements: Elements, seen: list[Any]) -> Elements:
        """The elements that are kept, as columns: the function looks at some fields, which cannot be changed."""
        values = iter(seen)
        try:
            kept = [bool(self.call(value)) for value in values]
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        columns = elements.columns
        return elements if columns is None or all(kept) else Elements(columns=columns.filtered(pa.array(kept)))


@dataclass(frozen=True, slots=True)
class FlatMap(_CalledFunction):
    """Any number of elements for one, in the main output and side outputs."""

    several: ClassVar[bool] = True

    def caller(self, values: list[Any]) -> Call:
        """The function, whose results are listed."""
        call = self.call
        return lambda value, _: list(results_of(call(value)))

    def _on_columns(self, columns: Columns) -> Elements:
        return Elements(columns=flat_mapped(self.call, columns, self.type_info))

    def outputs(self, elements: Elements, moment: Moment, metrics: Metrics) -> Mapping[str | None, Elements]:
        """The results of the function, by side output."""
        out, call, values, tags = Elements(), self.call, iter(_seen_by(self.call, elements)), TagsAmongResults()
        put, put_timestamp, put_number = out.values.append, out.timestamps.append, out.sequence.append
        fixed, are_fixed = FIXED, FIXED.issuperset  # own looks at these first: here without a call for each result
        copied = tags.copied
        try:
            for value, timestamp, number in zip(values, elements.timestamps, elements.sequence, strict=True):
                given = call(value)
                # A list of no other owner is one more that refers to each result.
                unshared = UNSHARED + (type(given) is list and getrefcount(given) == UNSHARED)
                for one in given if type(given) is list else results_of(given):
                    kind = type(one)
                    is_fixed = kind in fixed or (kind is tuple and are_fixed(map(type, one)))
                    put(one if is_fixed or (getrefcount(one) == unshared and is_flat(one)) else copied(one))
                    put_timestamp(timestamp)
                    put_number(number)
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        return tags.by_output(self.name, out, self.type_info)


def _seen_by(call: Callable[..., Any], elements: Elements) -> list[Any]:
    """The values of elements for a function: those of columns without the fields that its code does not name."""
    seen = _fields_seen_by(call, elements)
    return elements.values if seen is None else seen


def _fields_seen_by(call: Callable[..., Any], elements: Elements, *, fixed: bool = False) -> list[Any] | None:
    """The values of columns, with None in place of the fields that the code of a function does not name.

    None if it may look at all fields; or ``fixed``, if it names one that can be changed.
    """
    columns = elements.columns
    if columns is None or not elements.is_unread or not isinstance(columns.type_info, CompositeTypeInfo):
        return None
    kinds, places = columns.type_info.types, touched_fields(call, columns.type_info)
    if places is None or len(places) == len(kinds) or (fixed and any(_can_change(kinds[at]) for at in places)):
        return None
    with without_collection():
        return columns.type_info.from_arrow(columns.values, places)


def _can_change(kind: TypeInformation) -> bool:
    return kind.is_pickled or isinstance(kind, CompositeTypeInfo | ListTypeInfo | MapTypeInfo)


def type_after(
    operator: StatelessOperator, before: TypeInformation, declared: TypeInformation, *, for_good: bool = False
) -> TypeInformation:
    """The type of the results of an operator: as it was declared, or as a trace finds it.

    With ``for_good``, only if it does not follow from values that may change.
    """
    operator = operator.operator if isinstance(operator, DeadLetterOperator) else operator
    if isinstance(operator, Filter):
        return before
    if isinstance(operator, _CalledFunction) and not before.is_pickled:
        try:
            found = operator.trace(before)
            if found.admission.is_closed or not for_good:
                return operator.output_types(found).get(None, declared)
        except NotTraceable:
            pass
    return declared


def element_error(name: str, error: Exception, elements: Elements, handled: Iterator[Any]) -> Exception:
    """Return the error of a function that took its elements one by one from the iterator ``handled``."""
    element = last_of(elements.values, handled)
    return user_function_error(name, error, during=HANDLING, advice=DEAD_LETTER_ADVICE, element=element)


@dataclass(frozen=True, slots=True)
class Process(_CalledFunction):
    """A ``ProcessFunction``, which has side outputs."""

    type_info: TypeInformation = field(default_factory=Types.PICKLED_BYTE_ARRAY)
    context: ElementContext = field(default_factory=_no_context, compare=False, repr=False)
    """The context that the function sees, which may keep it."""

    def caller(self, values: list[Any]) -> Call:
        """The function, which may go on while its results are taken."""
        call = self.call

        def results_of(value: object, context: ElementContext) -> Iterable[Any]:
            results = call(value, context)
            return () if results is None else results

        return results_of

    def _on_columns(self, columns: Columns) -> Mapping[str | None, Elements]:
        outputs = processed(self.call, columns, self.type_info)
        return {tag: Elements(columns=output) for tag, output in outputs.items()}

    def trace(self, type_info: TypeInformation) -> Trace:
        return traced_process(self.call, type_info)

    def output_types(self, trace: Trace) -> Mapping[str | None, TypeInformation]:
        return output_types(trace, self.type_info)

    def outputs(self, elements: Elements, moment: Moment, metrics: Metrics) -> Mapping[str | None, Elements]:
        """The results of the function, by side output."""
        call = self.call
        context, out = self.context, Collector(self.name, self.type_info)
        context.follow(moment)
        values = iter(_seen_by(call, elements))
        try:
            for value, context.time_ms, number in zip(values, elements.timestamps, elements.sequence, strict=True):
                results = call(value, context)
                if results is not None:
                    out.put_results(results, context.time_ms, number)
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        return out.take()


class ElementOperator(StatelessOperator, Protocol):
    """An operator that can be applied to a single element."""

    @property
    def during(self) -> str:
        """The work of the function on an element, in words."""

    @property
    def type_info(self) -> TypeInformation | None:
        """The declared type of the results; None if there is none, or elements stay as they are."""

    def caller(self, values: list[Any]) -> Call:
        """The function to call with each of these elements, in their order."""


@dataclass(frozen=True, slots=True)
class DeadLetterOperator:
    """An operator whose bad elements go to the side output ``tag``: each element has all of its results or none."""

    operator: ElementOperator
    tag: str
    context: ElementContext = field(default_factory=_no_context, compare=False, repr=False)
    """The context that the function sees, which may keep it."""

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.operator.name

    @property
    def user_function(self) -> Any:
        """The user's function, to be opened and closed."""
        return self.operator.user_function

    def on_columns(self, columns: Columns) -> Elements | Mapping[str | None, Elements] | None:
        """The results of the operator, if no element is bad.

        Raises:
            Guard: if one is, or might be: then each is looked at by itself.
        """
        try:
            return self.operator.on_columns(columns)
        except Guard:
            raise
        except Exception as error:
            if not is_of_the_data(error):
                raise
            raise Guard("an element that a function on batches cannot handle") from error

    def why_in_python(self, type_info: TypeInformation) -> str | None:
        """The reason that the operator has."""
        return self.operator.why_in_python(type_info)

    def outputs(self, elements: Elements, moment: Moment, metrics: Metrics) -> Mapping[str | None, Elements]:
        """The results of the good elements, by side output, and a dead letter for each of the others."""
        operator = self.operator
        values, columns = elements.values, elements.columns
        originals = own_each(values) if columns is None else values  # those of columns can be made once more
        context, out = self.context, Collector(operator.name, operator.type_info)
        context.follow(moment)
        letters = DeadLetterOutput(operator.name, self.tag, out, metrics)
        call = operator.caller(values)
        rows = zip(values, elements.timestamps, elements.sequence, strict=True)
        for place, (value, context.time_ms, number) in enumerate(rows):
            before = out.mark()
            try:
                out.put_results(call(value, context), context.time_ms, number)
                out.check_from(before)
            except Exception as error:
                original = originals[place] if columns is None else Elements(columns=columns.slice(place, 1)).values[0]
                letters.put(before, operator.during, error, context.time_ms, number, element=original)
        return out.take()


def watched(operator: ChainedOperator, metrics: Metrics) -> ChainedOperator:
    """An operator whose function a search sees, if there is one. Without dead letters, its elements may be left out."""
    if not metrics.is_watched:
        return operator
    if isinstance(operator, DeadLetterOperator):
        return replace(operator, operator=_watched(operator.operator, metrics, may_leave_out=False))
    found: ChainedOperator = _watched(operator, metrics, may_leave_out=True)
    return found


def _watched(operator: StatelessOperator, metrics: Metrics, *, may_leave_out: bool) -> Any:
    if not isinstance(operator, _CalledFunction):
        return operator
    call = operator.call
    if isinstance(operator, Map) and may_leave_out:  # one that is left out has no result, where a map has always one
        operator = FlatMap(operator.name, call, operator.user_function, operator.type_info)
        call = _listed(call)
    return replace(operator, call=metrics.watched(operator.name, operator.during, call, may_leave_out=may_leave_out))


def _listed(call: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda value: [call(value)]


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """Hands on the elements that have a key; the partitioner finds the key once more."""

    name: str
    select: Callable[[Any], Any]
    key_type: TypeInformation
    user_function: KeySelector | None = None
    type_info: ClassVar[None] = None
    during: ClassVar[str] = EXTRACTING

    def caller(self, values: list[Any]) -> Call:
        """The element itself, or an error."""
        select, key_type = self.select, self.key_type

        def checked(value: object, _: object) -> list[Any]:
            key = select(value)
            try:
                hash(key)
                stable_hash(key)
            except TypeError as error:
                raise unhashable(key) from error
            if not key_type.is_pickled:
                key_type.as_declared([key])
            return [value]

        return checked

    def on_columns(self, columns: Columns) -> None:
        """None, because each key is looked at."""

    def why_in_python(self, type_info: TypeInformation) -> str:
        """The reason, which is the same for all types."""
        return f"each key is looked at, so that bad ones become dead letters{place_of(self.select)}"
