"""What a function may ask about where it runs, and how it reaches its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eventide.datastream.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )


class KeyedStateStore(ABC):
    """Gives access to state by its descriptor; the state belongs to the current key, and window where there is one."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """Return the state that holds one value."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return the state that holds a list."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """Return the state that holds a map."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """Return the state that reduces what is added to it."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """Return the state that aggregates what is added to it."""


@dataclass(frozen=True)
class RuntimeContext:
    """Where a function runs: the operator and the subtask.

    Attributes:
        task_name: The name of the operator.
        parallelism: The number of its subtasks.
        index: The number of this subtask, from 0.
        job_parameters: What the job was started with, as text.

    >>> context = RuntimeContext("orders", parallelism=4, index=1, job_parameters={"currency": "EUR"})
    >>> context.get_job_parameter("currency", "USD"), context.get_job_parameter("country", "DE")
    ('EUR', 'DE')
    """

    task_name: str
    parallelism: int
    index: int
    job_parameters: Mapping[str, str] = field(default_factory=dict)

    def get_task_name(self) -> str:
        """Return the name of the operator."""
        return self.task_name

    def get_task_name_with_subtasks(self) -> str:
        """Return the name with the number of the subtask, counted from 1 as Flink does, such as ``orders (2/4)``."""
        return f"{self.task_name} ({self.index + 1}/{self.parallelism})"

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the number of subtasks of the operator."""
        return self.parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return the number of this subtask, from 0."""
        return self.index

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return the parameter of the job, or `default_value` where it was not given."""
        return self.job_parameters.get(key, default_value)
