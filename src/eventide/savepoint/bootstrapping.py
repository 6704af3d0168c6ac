"""State that no job has made: a function is called with elements, and what it keeps is a savepoint's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from eventide.api.functions import KeyedProcessFunction, RuntimeContext
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError
from eventide.runtime.elements.elements import Elements
from eventide.runtime.invoke import calling
from eventide.runtime.metrics import Metrics
from eventide.runtime.process.functions import ProcessEach, ProcessSpec
from eventide.runtime.process.operation import open_process
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.operators import OperatorStates
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.tasks.task import close_function, open_function
from eventide.savepoint.fitting import BOOTSTRAPPED

_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How the state of an operator is made; picklable.

    Attributes:
        operator: its ``uid``.
        function: is called with each element, for its key.
        select: finds the key of an element.
        key_type: the type of keys; None leaves it open.
        clock_ms: the time by the clock, in milliseconds, at which it is made: state with a time to live is used then.
    """

    operator: str
    function: KeyedProcessFunction
    select: Callable[[Any], Any]
    key_type: TypeInformation | None
    clock_ms: int

    def identity(self) -> dict[str, str]:
        """Identity of its state, as far as that is known without a program."""
        typed = {} if self.key_type is None else {"key type": str(self.key_type)}
        return {"name": self.operator, "stored form": "keyed state", BOOTSTRAPPED: "yes", **typed}

    def run(
        self, elements: Iterable[tuple[Any, Any]], max_parallelism: int, subtask: int = 0, parallelism: int = 1
    ) -> dict[str, bytes]:
        """The state of a subtask, given its elements with their keys.

        Raises:
            UserFunctionError: if the function raised.
            ProgramError: if it gives elements: no sink takes them.
        """
        spec = ProcessSpec(self.operator, ProcessEach(self.function), has_keys=True)
        where = RuntimeContext(
            self.operator, parallelism, subtask, max_parallelism=max_parallelism, state=spec.state_of_functions
        )
        values: dict[str, bytes] = {}
        states = OperatorStates(MemoryBackend(values), {self.operator: self.identity()})
        state = states.of(self.operator)
        open_function(self.function, where)
        waiting = iter(elements)
        while some := [*islice(waiting, _AT_ONCE)]:
            context = OperatorContext(max_parallelism, Metrics(self.clock_ms), MIN_MS, self.clock_ms, in_batch=False)
            operator = open_process(spec, state, context)
            operator.inputs[0]([_elements(some)])
            if operator.take_outputs():
                raise ProgramError(
                    f"the function that makes the state of {self.operator!r} gives elements, and no sink takes them; "
                    "return None from process_element"
                )
            operator.flush()
        close_function(self.operator, self.function)
        states.flush()
        return values

    def keyed(self, elements: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Elements with their keys.

        Raises:
            UserFunctionError: if the function raised that finds them.
        """
        with calling(self.operator, during="when the keys of its elements were found"):
            for element in elements:
                yield element, self.select(element)


def _elements(some: Sequence[tuple[Any, Any]]) -> Elements:
    values, keys = zip(*some, strict=True)
    return Elements([*values], [None] * len(values), [*range(len(values))], [*keys])
