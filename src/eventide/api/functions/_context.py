"""Runtime context of a function: where it runs, and how it reaches its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eventide.api.keyed_state import (
    AggregatingState,
    KeyedStateStore,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from eventide.common.type_variables import IN, OUT, K, T, V
from eventide.errors import ProgramError
from eventide.metrics import MetricGroup


@dataclass(frozen=True)
class RuntimeContext(KeyedStateStore):
    """Where a function runs: the operator and the subtask; and, on a keyed stream, its state.

    Attributes:
        task_name: The name of the operator.
        parallelism: The number of its subtasks.
        index: The number of this subtask, from 0.
        job_parameters: What the job was started with, as text.
        max_parallelism: The number of key groups.
        state: Where the state of the function is; None where there are no keys.
        metrics: What the function counts with.

    >>> context = RuntimeContext("orders", parallelism=4, index=1, job_parameters={"currency": "EUR"})
    >>> context.get_job_parameter("currency", "USD"), context.get_job_parameter("country", "DE")
    ('EUR', 'DE')
    """

    task_name: str
    parallelism: int
    index: int
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    max_parallelism: int = 1
    state: KeyedStateStore | None = None
    metrics: MetricGroup = field(default_factory=MetricGroup)

    def get_task_name(self) -> str:
        """Return the name of the operator."""
        return self.task_name

    def get_task_name_with_subtasks(self) -> str:
        """Return the name with the number of the subtask, counted from 1 as Flink does, such as ``orders (2/4)``."""
        return f"{self.task_name} ({self.index + 1}/{self.parallelism})"

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the number of subtasks of the operator."""
        return self.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the number of key groups, which is how many subtasks the operator could have."""
        return self.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return the number of this subtask, from 0."""
        return self.index

    def get_attempt_number(self) -> int:
        """Return 0: Spark repeats a task without telling it how often."""
        return 0

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return the parameter of the job, or `default_value` where it was not given."""
        return self.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """Return the group of the operator, in which the function makes its metrics when it is opened.

        >>> from eventide.api.functions import MapFunction
        >>> class Parse(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.bad = runtime_context.get_metrics_group().counter("bad")
        ...     def map(self, value):
        ...         if not value.isdigit():
        ...             self.bad.inc()
        ...             return None
        ...         return int(value)
        >>> from eventide.testing import local_environment
        >>> env = local_environment()
        >>> _ = env.from_collection(["1", "x", "3"]).map(Parse()).name("parse").print()
        >>> result = env.execute()
        1
        None
        3
        >>> result.metrics["parse"]
        {'bad': 1}
        """
        return self.metrics

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return the state that holds one value; it is that of the key at hand whenever it is used."""
        return self._states(state_descriptor).get_state(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return the state that holds a list."""
        return self._states(state_descriptor).get_list_state(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return the state that holds a map."""
        return self._states(state_descriptor).get_map_state(state_descriptor)

    def get_reducing_state(self, state_descriptor: StateDescriptor[ReducingState[T]]) -> ReducingState[T]:
        """Return the state that reduces what is added to it."""
        return self._states(state_descriptor).get_reducing_state(state_descriptor)

    def get_aggregating_state(
        self, state_descriptor: StateDescriptor[AggregatingState[IN, OUT]]
    ) -> AggregatingState[IN, OUT]:
        """Return the state that aggregates what is added to it."""
        return self._states(state_descriptor).get_aggregating_state(state_descriptor)

    def _states(self, descriptor: StateDescriptor) -> KeyedStateStore:
        if self.state is None:
            message = (
                f"the state {descriptor.name!r} belongs to a key, and {self.task_name!r} has none; "
                "call key_by(...) before"
            )
            raise ProgramError(message)
        return self.state
