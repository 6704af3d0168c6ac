"""The operator that hands elements on as they are: what matters is how they get to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eventide.common.typeinfo import TypeInformation
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.exchange.partitioners import StreamPartitioner
from eventide.runtime.process.functions import Handle
from eventide.runtime.process.operation import open_process
from eventide.runtime.process.spec import ProcessSpec
from eventide.runtime.tasks.operator import OperatorInput, PlannedOperator


@dataclass(frozen=True, slots=True)
class HandOn:
    """No function at all."""

    kind: str
    user_function: None = None
    may_wait_for_clock: bool = False

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """The element itself."""
        return (_itself,)

    @property
    def on_timer(self) -> Handle | None:
        """None."""
        return None


@dataclass(frozen=True, slots=True)
class Redistribution:
    """Description of ``rebalance`` and the like: another way to the subtasks.

    ``partitioner`` makes the way out of the tasks before from the codec of elements.
    """

    kind: str
    partitioner: Callable[[ElementCodec], StreamPartitioner]
    result_type: TypeInformation
    endless: str | None = None
    needs_all: bool = False

    @property
    def ship_strategy(self) -> str:
        """Flink's name for this way, in its execution plans."""
        return self.kind.removeprefix("partition_").upper()

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """Element by element; nothing is kept."""
        (source,) = inputs
        spec = ProcessSpec(name, HandOn(self.kind), False, self.result_type)
        partitioner = self.partitioner(ElementCodec(source.value_type))
        return PlannedOperator(spec, open_process, (partitioner,), "as they are", {}, (None,))


def _itself(value: Any, _: Any) -> tuple[Any]:
    return (value,)
