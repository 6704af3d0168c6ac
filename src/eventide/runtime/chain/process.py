"""A process function that is chained: it runs in the tasks of what it follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from eventide.common.typeinfo import TypeInformation, Types
from eventide.runtime.chain.chained_operators import HANDLING, Call, element_error
from eventide.runtime.chain.collector import Collector
from eventide.runtime.chain.contexts import ElementContext, Moment
from eventide.runtime.elements.columns import Batch, as_elements
from eventide.runtime.elements.elements import Elements


@dataclass(frozen=True, slots=True)
class Process:
    """A ``ProcessFunction``, which has side outputs; ``type_info`` is the declared type of what comes out."""

    name: str
    call: Callable[[Any, ElementContext], Any]
    user_function: Any
    takes_columns: bool = False
    type_info: TypeInformation = field(default_factory=Types.PICKLED_BYTE_ARRAY)

    during: ClassVar[str] = HANDLING

    def caller(self, values: list[Any]) -> Call:
        """The function, which may go on while its results are taken."""
        call = self.call

        def results_of(value: Any, context: ElementContext) -> Iterable[Any]:
            results = call(value, context)
            return () if results is None else results

        return results_of

    def outputs(self, batch: Batch, moment: Moment) -> dict[str | None, Elements]:
        """Call the function with each element; its results keep the element's timestamp and number."""
        elements, call = as_elements(batch), self.call
        context, out = ElementContext(moment), Collector(self.name, self.type_info)
        values = iter(elements.values)
        try:
            for value, context.time_ms, number in zip(values, elements.timestamps, elements.sequence, strict=True):
                results = call(value, context)
                if results is not None:
                    out.put_results(results, context.time_ms, number)
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        return out.take()

    def apply(self, batch: Batch) -> Elements:
        """The elements that come out of the main output."""
        return self.outputs(batch, Moment()).get(None, Elements())
