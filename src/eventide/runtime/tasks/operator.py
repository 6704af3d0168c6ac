"""The seam between the plan, the tasks and the operators: the protocols that they know each other by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from eventide.api.functions import KeyedStateStore, RuntimeContext
from eventide.common.column_expression import ColumnExpression
from eventide.common.typeinfo import CompositeTypeInfo, TupleTypeInfo, TypeInformation, Types
from eventide.runtime.elements.elements import Elements, types_of_fields
from eventide.runtime.exchange.partitioners import StreamPartitioner
from eventide.runtime.exchange.selected_keys import selector_of
from eventide.runtime.metrics import Metrics
from eventide.runtime.state.backend import Backend
from eventide.runtime.tracing.column_functions import result_type, traced
from eventide.runtime.tracing.reasons import place_of, why_python
from eventide.runtime.tracing.tracing import key_fields


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """Where an operator stands when a micro-batch begins, and what it counts with.

    Attributes:
        max_parallelism: the number of key groups.
        metrics: takes its counters.
        watermark_ms: its watermark, in milliseconds.
        clock_ms: the time of the micro-batch by the clock, in milliseconds.
        in_batch: whether all input comes at once, before any watermark.
        runtime: where its functions run.
    """

    max_parallelism: int
    metrics: Metrics
    watermark_ms: int
    clock_ms: int
    in_batch: bool = False
    runtime: RuntimeContext = field(default_factory=lambda: RuntimeContext("operator", parallelism=1, index=0))


Receive: TypeAlias = Callable[[list[Any]], None]
"""Handles the payloads of one input, put in order, all under the current watermark."""

SortInputs: TypeAlias = Callable[[Mapping[int, list[Any]]], Iterable[tuple[int, Any]]]
"""Puts the payloads of inputs, by the number of the input, into the order of timestamps.

It gives them one after the other, each with the number of its input.
"""


class Operator(Protocol):
    """Worker of a task: it takes elements and watermarks, and keeps its state in a backend."""

    @property
    def inputs(self) -> Sequence[Receive]:
        """The handler of the elements of each input."""

    @property
    def late_until(self) -> int:
        """The last event time, in milliseconds, of which an element comes too late now; ``MIN_MS`` where none does.

        Where that depends on more than the time, it is the last one that may be late.
        """

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether the watermark must move there exactly, between two elements; if not, it may move later."""

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, and fire all that it passes."""

    def advance_clock(self, clock_ms: int) -> None:
        """Fire what was to happen by a time of the clock: processing time.

        ``MAX_MS`` stands for the end of batch execution, before which the clock does not go on: what waits for it
        happens then.
        """

    @property
    def next_clock_ms(self) -> int | None:
        """The time by the clock at which it has something to do, with no data too; None if never."""

    def timers_left(self) -> int:
        """How many timers of processing time are set, which never fire when the input has ended."""

    def take_outputs(self) -> Mapping[str | None, Elements]:
        """Give away the results since the last call, by side output (None: the main one)."""

    def flush(self) -> None:
        """Store the state; called once, at the end of the micro-batch."""

    def held(self) -> Mapping[str, int]:
        """Counts of its contents, by names of ``eventide.runtime.metrics``: those that are known after :meth:`flush`.

        Open windows are those of time, each once for all keys; open sessions, windows of counts, keys, timers and
        elements are single ones.
        """


class WithoutClock:
    """The part of an operator for which nothing waits for the clock."""

    def advance_clock(self, clock_ms: int) -> None:
        """Nothing happens."""

    @property
    def next_clock_ms(self) -> int | None:
        """None, because no processing-time timer is ever set."""
        return None

    def timers_left(self) -> int:
        """Zero, because there are no processing-time timers."""
        return 0


class HoldsNothing:
    """The part of an operator that holds nothing that could be counted."""

    def held(self) -> Mapping[str, int]:
        """Nothing."""
        return {}


class OperatorSpec(Protocol):
    """Description of an operator, as plain data; picklable. Each task makes an operator of it, by an `OpenOperator`."""

    @property
    def name(self) -> str:
        """The operator's name."""

    @property
    def needs_clock(self) -> bool:
        """Whether the operator may have something to do when only the clock has gone on."""

    @property
    def runs_without_data(self) -> bool:
        """Whether the operator must run without data, because it may have something to do."""

    @property
    def sort_inputs(self) -> SortInputs | None:
        """Puts the input into the order of timestamps in batch execution: with keys, and for all windows.

        None if elements come in the order of arrival. Flink: ``InputRequirement.SORTED`` and ``PASS_THROUGH``.
        """

    @property
    def state_of_functions(self) -> KeyedStateStore | None:
        """Where its functions find the state of the current key; None if there are no keys, or no functions."""

    def user_functions(self) -> list[Any]:
        """The functions that the user wrote, to be opened and closed."""

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``: topic and text."""


OpenOperator: TypeAlias = Callable[[Any, Backend, OperatorContext], Operator]
"""Makes the operator of a description (the first argument, of the kind that the function is for) on its state.

It is a function of a module, or a class: it travels to the tasks by its name. Flink: ``StreamOperatorFactory``.
"""


_EXACT = frozenset({"BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "STRING", "SQL_DATE", "SQL_TIMESTAMP"})
_UNDECLARED = Types.PICKLED_BYTE_ARRAY()


def is_exact(kind: TypeInformation) -> bool:
    """Whether values of a type that are equal are the same in every way, to Python and in columns.

    0.0 and -0.0 are equal and are not the same, nor are decimals with more or fewer zeros.
    """
    return str(kind) in _EXACT


def tells_apart(kind: TypeInformation) -> bool:
    """Whether keys of a type are equal in columns where they are equal to Python, and in every way."""
    return all(map(is_exact, kind.types)) if isinstance(kind, TupleTypeInfo) else is_exact(kind)


@dataclass(frozen=True, slots=True)
class Key:
    """How an element's key is found; ``columns`` are the fields that it consists of, if it was given by them."""

    select: Callable[[Any], Any]
    type_info: TypeInformation
    columns: tuple[str, ...] = ()

    @property
    def is_columnar(self) -> bool:
        """Whether columns can tell keys apart: it consists of fields, whose values are equal where their columns are.

        The bytes of equal objects may differ, and Arrow compares no windows.
        """
        parts = types_of_fields(self.type_info)
        return bool(self.columns) and not any(part.is_pickled or part == Types.TIME_WINDOW() for part in parts)

    def by_field(self, value_type: TypeInformation, *, several: bool = False) -> Key:
        """The key given by its field, if a plain function returns that as it is; else the key itself.

        With ``several``, also by its fields, where the function returns a tuple of them.
        """
        if self.columns or not isinstance(value_type, CompositeTypeInfo) or selector_of(self.select) is not None:
            return self
        names = key_fields(self.select, value_type)
        if names is None or (len(names) != 1 and not several):
            return self
        kinds = [value_type.types[value_type.field_names.index(name)] for name in names]
        kind = kinds[0] if len(kinds) == 1 else Types.TUPLE(kinds)
        fits = all(map(is_exact, kinds)) and self.type_info in (kind, _UNDECLARED)
        return Key(self.select, kind, names) if fits else self

    def why_in_python(self, value_type: TypeInformation) -> str | None:
        """Why the selector is called with each element of a type, with its place; None if columns can compute keys."""
        if selector_of(self.select) is not None:
            return f"it is an object{place_of(self.select)}"
        return why_python(lambda: result_type(traced(self.select, value_type), None), self.select, value_type)

    def why_no_fields(self, value_type: TypeInformation, wanted: str = "fields") -> str:
        """Why the key is not given by its fields, or whatever is ``wanted``, where it has to be."""
        if isinstance(self.select, ColumnExpression):
            return f"the key is a column expression, not {wanted}"
        why = self.why_in_python(value_type) or f"it does not return {wanted}{place_of(self.select)}"
        return f"the key selector is Python: {why}"


@dataclass(frozen=True, slots=True)
class OperatorInput:
    """An input of an operator as it is known when the operator is planned.

    ``key`` is None for a stream without keys. ``is_punctuated`` says that a watermark may come between any two
    elements. With ``in_batch``, an operator with ``sort_inputs`` takes elements in the order of their timestamps.
    ``known_type`` is what traces know of the type of its elements; None for no more than is declared. ``from_sources``
    says that the tasks of sources send all of them, and eventide plans some of these sources.
    """

    value_type: TypeInformation
    key: Key | None = None
    is_punctuated: bool = False
    in_batch: bool = False
    known_type: TypeInformation | None = None
    from_sources: bool = False


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """An operator as it will run, and all that the plan asks of it.

    Attributes:
        spec: its description, which travels to the tasks.
        open: makes the operator of its description in each task.
        partitioners: for each input, how elements leave the tasks that send them here.
        speed: whether it works on columns or element by element, and why.
        identity: the facts that its stored state depends on, in words that a message can show.
        used_fields: for each input, the fields of its elements that it uses; None if it takes whole elements.
        broadcast_input: the input whose elements come before those of the others at one point, if there is one.
        is_union: whether watermarks see its inputs as one, as those of a union.
        tells_watermark: whether it tells the tasks of sources at which watermark it stands.
    """

    spec: OperatorSpec
    open: OpenOperator
    partitioners: tuple[StreamPartitioner, ...]
    speed: str
    identity: dict[str, str] = field(default_factory=dict)
    used_fields: tuple[frozenset[str] | None, ...] = ()
    broadcast_input: int | None = None
    is_union: bool = False
    tells_watermark: bool = False


class Operation(Protocol):
    """Description of one operator as the program asks for it, before it is decided how it runs."""

    @property
    def kind(self) -> str:
        """The kind of the operator, in words that stay when it is renamed: ids without a uid follow from them too."""

    @property
    def endless(self) -> str | None:
        """The reason why the operator would never end after its input has ended; None if it ends."""

    @property
    def needs_all(self) -> bool:
        """Whether one subtask must have all elements, where there are no keys."""

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """Decide how it runs, under a name of its own; the results are the same either way."""
