"""The operator that hands the elements, and the timers, of many keys at once to a function on columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.functions import VectorizedKeyedProcessFunction
from eventide.api.functions.output_tag import DEAD_LETTER
from eventide.api.functions.timers import TimeDomain
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.errors import DEAD_LETTER_ADVICE, ProgramError
from eventide.runtime.chain.chained_operators import HANDLING, Moment
from eventide.runtime.chain.outputs import dead_letter
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Columns, Elements, Numbers, interleaved_columns
from eventide.runtime.elements.keys import are_comparable
from eventide.runtime.exchange.partitioners import KeyGroupPartitioner
from eventide.runtime.invoke import is_of_the_data, user_function_error
from eventide.runtime.process.operation import identity_of
from eventide.runtime.process.operator import ON_TIMER
from eventide.runtime.process.vectorized_calls import (
    NO_CALL,
    ResultColumns,
    VectorizedCall,
    VectorizedProcessSpec,
    keys_of_fields,
)
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.keyed_columns import KeyedColumns, TimerArrays
from eventide.runtime.tasks.operator import (
    Operator,
    OperatorContext,
    OperatorInput,
    PlannedOperator,
    Receive,
)


class VectorizedProcessOperator(Operator):
    """Calls the function with the elements of all keys that come under one watermark, and with the timers due.

    Flink: ``KeyedProcessOperator``.
    """

    def __init__(self, spec: VectorizedProcessSpec, backend: Backend, context: OperatorContext) -> None:
        self.spec = spec
        self.state = KeyedColumns(backend, spec.key.type_info, context.max_parallelism, in_batch=context.in_batch)
        self.moment = Moment(context.watermark_ms, context.clock_ms)
        self._outputs: dict[str | None, list[Columns]] = {}
        self._metrics = context.metrics
        spec.state.begin(self.state)

    @property
    def inputs(self) -> Sequence[Receive]:
        return (self._receive,)

    @property
    def late_until(self) -> int:
        """``MIN_MS``: the function takes all elements."""
        return MIN_MS

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: the function may look at the watermark."""
        return True

    def advance(self, watermark_ms: int) -> None:
        self.moment.watermark = watermark_ms
        self._fire(self.state.timers[0], watermark_ms, TimeDomain.EVENT_TIME)

    def advance_clock(self, clock_ms: int) -> None:
        """Fire the timers of processing time that are set for a time or before."""
        self._fire(self.state.timers[1], clock_ms, TimeDomain.PROCESSING_TIME)

    @property
    def next_clock_ms(self) -> int | None:
        return self.state.timers[1].next_ms()

    def timers_left(self) -> int:
        return 0 if self.next_clock_ms is None else self.state.timers[1].count()

    def take_outputs(self) -> Mapping[str | None, Elements]:
        outputs, self._outputs = self._outputs, {}
        found = {}
        for tag, parts in outputs.items():
            columns = Columns.joined(parts)
            columns.sequence = pa.array(np.arange(len(columns)))
            found[tag] = Elements(columns=columns)
        return found

    def flush(self) -> None:
        self.state.expire(self.moment.processing_time)
        self.state.flush()

    def held(self) -> dict[str, int]:
        return self.state.held()

    def _receive(self, parts: list[Elements]) -> None:
        columns = interleaved_columns(parts, self.spec.value_type)
        names = self.spec.key.columns

        def call_of(begin: int, end: int) -> VectorizedCall:
            some = columns.slice(begin, end - begin)
            keys = keys_of_fields([some.field(name) for name in names], names)
            return VectorizedCall(self.spec, self.state, self.moment, keys, some.timestamps, elements=some.fields())

        results: ResultColumns = {}
        for begin, call in self._calls(call_of, 0, len(columns)):
            for tag, of_tag in call.results.items():
                results.setdefault(tag, []).extend((kind, values, rows + begin) for kind, values, rows in of_tag)
        for tag, of_tag in results.items():
            kinds, values, rows = zip(*of_tag, strict=True)
            together = np.concatenate(rows)
            order = np.argsort(together, kind="stable")
            times = None if columns.timestamps is None else columns.timestamps.take(pa.array(together[order]))
            self._put(tag, kinds[-1], pa.concat_arrays(values).take(pa.array(order)), times)

    def _fire(self, timers: TimerArrays, until_ms: int, domain: TimeDomain) -> None:
        """Fire timers, and put the results out in the order of the timers of all calls.

        One that is set meanwhile for a time that is over counts as one of the time at which that happens.
        """
        results: dict[str | None, list[tuple[TypeInformation, pa.Array, tuple[Numbers, ...]]]] = {}
        before: tuple[Numbers, Numbers] | None = None
        reached: Numbers | None = None
        for places, times, numbers in timers.due(until_ms):
            if not self.spec.has_timers:
                continue
            calls = [*self._calls(partial(self._call_of_timers, places, times, domain), 0, len(places))]
            at = times
            if before is not None:
                if reached is None:
                    reached = np.full(len(self.state), MIN_MS)
                reached[before[0]] = before[1]
                at = np.maximum(times, reached[places])
            before = places, at
            for begin, call in calls:
                for tag, of_tag in call.results.items():
                    for kind, values, rows_of_call in of_tag:
                        rows = rows_of_call + begin
                        order = numbers[rows], self.state.groups(places[rows]), at[rows]
                        results.setdefault(tag, []).append((kind, values, (*order, times[rows])))
        for tag, parts in results.items():
            kinds, arrays, columns = zip(*parts, strict=True)
            *by, times = map(np.concatenate, zip(*columns, strict=True))
            in_order = np.lexsort(by)
            stamps = pa.array(times[in_order]) if domain is TimeDomain.EVENT_TIME else None
            self._put(tag, kinds[-1], pa.concat_arrays(arrays).take(pa.array(in_order)), stamps)

    def _keys_at(self, places: Numbers) -> pa.Array:
        """The keys at some places, as the fields of elements have them."""
        key = self.spec.key
        kinds = {part.name: part.type for part in self.spec.value_type.arrow_type()}
        parts = zip(self.state.keys_at(places), key.columns, strict=True)
        return keys_of_fields([part.cast(kinds[name]) for part, name in parts], key.columns)

    def _put(self, tag: str | None, type_info: TypeInformation, values: pa.Array, times: pa.Array | None) -> None:
        if len(values):
            self._outputs.setdefault(tag, []).append(
                Columns(type_info, values, times, pa.array(np.arange(len(values))))
            )

    def _call_of_timers(
        self, places: Numbers, times: Numbers, domain: TimeDomain, begin: int, end: int
    ) -> VectorizedCall:
        some = slice(begin, end)
        keys, of_rows = self._keys_at(places[some]), pa.array(times[some])
        return VectorizedCall(self.spec, self.state, self.moment, keys, of_rows, domain=domain, places=places[some])

    def _calls(
        self, call_of: Callable[[int, int], VectorizedCall], begin: int, end: int
    ) -> Iterator[tuple[int, VectorizedCall]]:
        """Call the function with some rows; where it raises, with either half of them, if dead letters are wanted.

        So a row for which it raises by itself is found, and the others go their way.

        Yields:
            Where the rows of each call that stands begin, and the call.
        """
        call = call_of(begin, end)
        try:
            self._act(call)
        except Exception as error:
            if self.spec.dead_letters is None or not is_of_the_data(error):
                during = "while it handled a batch" if call.elements is not None else "when timers fired"
                raise user_function_error(self.spec.name, error, during=during, advice=DEAD_LETTER_ADVICE) from error
            call.rollback()
            if end - begin > 1:
                middle = (begin + end) // 2
                yield from self._calls(call_of, begin, middle)
                yield from self._calls(call_of, middle, end)
                return
            call.results = self._letter(self.spec.dead_letters, call, error)
        else:
            call.commit()
        yield begin, call

    def _act(self, call: VectorizedCall) -> None:
        """Call a method of the function, for which the state is that of the call."""
        function = self.spec.function
        handle: Callable[..., Any] = function.on_timers if call.elements is None else function.process_batch
        self.spec.state.call = call
        try:
            returned = handle(call.timestamps if call.elements is None else call.elements, call)
        finally:
            self.spec.state.call = NO_CALL
        if returned is not None:
            raise ProgramError(
                f"the function returned a {type(returned).__name__}; emit results with ctx.collect(...), and return or "
                "yield nothing"
            )

    def _letter(self, tag: str, call: VectorizedCall, error: Exception) -> ResultColumns:
        """The dead letter of a call with a single row, as its one result."""
        key = self.spec.key_of(call.keys)
        [timestamp] = [None] if call.domain is TimeDomain.PROCESSING_TIME else call.timestamps.to_pylist()
        element, during = None, ON_TIMER
        if call.elements is not None:
            [element] = self.spec.value_type.from_arrow(call.elements.to_struct_array())
            during = HANDLING
        letter = dead_letter(self.spec.name, during, error, element=element, key=key, timestamp=timestamp)
        given = [letter][: self._metrics.count_dead_letters(self.spec.name, [letter])]
        return {tag: [(DEAD_LETTER, DEAD_LETTER.to_arrow(given), np.arange(len(given)))]}


@dataclass(frozen=True, slots=True)
class VectorizedOperation:
    """Description of a function on columns."""

    function: VectorizedKeyedProcessFunction
    result_type: TypeInformation
    kind: str = "keyed process"
    dead_letters: str | None = None
    endless: str | None = None
    needs_all: bool = False

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """On columns.

        Raises:
            ProgramError: if the key or the elements are not columns.
        """
        (source,) = inputs
        kind, function = source.value_type, type(self.function).__name__
        if source.key is None or kind.is_pickled:
            raise ProgramError(
                f"{name}: {function} is called with columns, so the type of the elements must be declared; declare "
                "output_type on the operator before it"
            )
        key = source.key.by_field(kind)
        if not key.is_columnar or not are_comparable(kind.arrow_type().field(name).type for name in key.columns):
            raise ProgramError(
                f"{name}: {function} is called with columns, so the key must be given by fields of plain types, as in "
                'key_by("user", "country")'
            )
        spec = VectorizedProcessSpec(name, self.function, key, kind, self.result_type, self.dead_letters)
        partitioner = KeyGroupPartitioner(ElementCodec(kind), key.select, max_parallelism, key_columns=key.columns)
        return PlannedOperator(
            spec,
            VectorizedProcessOperator,
            (partitioner,),
            f"on columns, because {function} is called with batches",
            identity_of([OperatorInput(kind, key)], max_parallelism),
            (None,),
        )
