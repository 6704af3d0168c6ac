"""A function that is chained, and may raise for single elements: each of them becomes a dead letter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from eventide.common.typeinfo import TypeInformation
from eventide.runtime.chain.chained_operators import Call, ChainedOperator
from eventide.runtime.chain.collector import Collector
from eventide.runtime.chain.contexts import ElementContext, Moment
from eventide.runtime.chain.dead_letter_output import DeadLetterOutput
from eventide.runtime.chain.process import Process
from eventide.runtime.elements.columns import Batch, as_elements
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ownership import own_each
from eventide.runtime.metrics import Metrics


class SingleStep(ChainedOperator, Protocol):
    """A step that can be taken with a single element."""

    @property
    def during(self) -> str:
        """Its work on an element, in words."""

    @property
    def type_info(self) -> TypeInformation | None:
        """The type that was declared for what comes out; None where nothing was, or elements stay as they are."""

    def caller(self, values: list[Any]) -> Call:
        """The function to call with each of these elements, in their order."""


@dataclass(frozen=True, slots=True)
class DeadLetterStep:
    """A step whose bad elements go to the side output ``tag``: of each element, all comes out or nothing."""

    step: SingleStep
    tag: str
    takes_columns: bool = False

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.step.name

    @property
    def user_function(self) -> Any:
        """The user's function, to be opened and closed."""
        return self.step.user_function

    def outputs(self, batch: Batch, moment: Moment, metrics: Metrics) -> dict[str | None, Elements]:
        """The results of the good elements, by side output, and a dead letter for each of the others."""
        step, elements = self.step, as_elements(batch)
        values, columns = elements.values, elements.columns
        originals = own_each(values) if columns is None else values  # those of columns can be made once more
        context, out = ElementContext(moment), Collector(step.name, step.type_info)
        letters = DeadLetterOutput(step.name, self.tag, out, metrics)
        put = out.put_results if isinstance(step, Process) else out.put_values
        call = step.caller(values)
        rows = zip(values, elements.timestamps, elements.sequence, strict=True)
        for place, (value, context.time_ms, number) in enumerate(rows):
            before = out.mark()
            try:
                put(call(value, context), context.time_ms, number)
                out.check_from(before)
            except Exception as error:
                original = originals[place] if columns is None else columns.slice(place, 1).to_elements().values[0]
                letters.put(before, step.during, error, context.time_ms, number, element=original)
        return out.take()

    def apply(self, batch: Batch) -> Elements:
        """The elements that come out of the main output."""
        return self.outputs(batch, Moment(), Metrics()).get(None, Elements())
