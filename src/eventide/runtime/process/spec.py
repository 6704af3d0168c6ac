"""Description of a process operator, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from eventide.api.functions import KeyedStateStore
from eventide.common.typeinfo import TypeInformation, Types
from eventide.runtime.chain.outputs import described
from eventide.runtime.elements.elements import in_time_order
from eventide.runtime.process.functions import Processing
from eventide.runtime.state.key_context import KeyContext
from eventide.runtime.tasks.operator import SortInputs


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """All that describes a process operator; picklable.

    ``dead_letters`` is the side output of elements and timers that its function cannot handle; None: they are errors.
    """

    name: str
    processing: Processing
    has_keys: bool
    output_type: TypeInformation = field(default_factory=Types.PICKLED_BYTE_ARRAY)
    dead_letters: str | None = None
    key_context: KeyContext = field(default_factory=KeyContext, compare=False, repr=False)

    @property
    def needs_clock(self) -> bool:
        """Whether the function may set timers by the clock."""
        return self.has_keys and self.processing.may_wait_for_clock

    @property
    def sort_inputs(self) -> SortInputs | None:
        """Sorts by timestamps across both inputs, if they have keys."""
        return in_time_order if self.has_keys else None

    @property
    def state_of_functions(self) -> KeyedStateStore | None:
        """Where its function finds its state; None where there are no keys."""
        return self.key_context.store if self.has_keys else None

    @property
    def speed(self) -> str:
        """How it runs, and why."""
        return f"element by element, because {type(self.processing.user_function).__name__} is Python"

    def user_functions(self) -> list[Any]:
        """The function that the user wrote, to be opened and closed."""
        function = self.processing.user_function
        return [] if function is None else [function]

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        state = "per key, in buckets that are read when one of their keys is touched" if self.has_keys else "none"
        timers = "by key" if self.has_keys and self.processing.on_timer is not None else "none"
        function = ("function", type(self.processing.user_function).__name__)
        return [function, ("state", state), ("timers", timers), *described(self.dead_letters)]
