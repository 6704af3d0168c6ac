"""Functions that make state."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from eventide.api.functions import KeyedProcessFunction


class KeyedStateBootstrapFunction(KeyedProcessFunction):
    """Makes the state of a keyed operator: it is called with each element, and puts what it wants into its state.

    The names and types of its states are those of the function that will find them. It may set timers, of event time
    and of the clock: they fire in the job, in the function of the job.

    >>> from eventide.common import Types
    >>> from eventide.api.state import ValueStateDescriptor
    >>> class Totals(KeyedStateBootstrapFunction):
    ...     def open(self, runtime_context):
    ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
    ...
    ...     def process_element(self, value, ctx):
    ...         self.total.update(value["total"])
    """

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        """Put what should be kept of an element into the state of its key; nothing comes out."""
