"""Tasks after a shuffle: the description, one subtask of it during one micro-batch, and the life of its functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from eventide.api.functions import RuntimeContext
from eventide.api.functions.output_tag import DeadLetterLimits
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.eventtime.valve import ValveEdge
from eventide.runtime.exchange.frames import Frame
from eventide.runtime.invoke import Search, calling
from eventide.runtime.metrics import FunctionMetrics
from eventide.runtime.state.backend import Backend


class Task(Protocol):
    """One subtask during one micro-batch."""

    passed: list[int]
    """The watermarks that it reached in this micro-batch, in milliseconds, lowest first."""

    @property
    def next_clock_ms(self) -> int | None:
        """The time by the clock at which this subtask must run again, with no data too; None if it need not."""

    def run(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Handle the frames of a micro-batch for this subtask, give those for others, and store the state.

        There are no frames where only the clock has gone on.
        """

    def metrics(self) -> dict[str, Any]:
        """Return counters and watermarks, as plain values.

        ``operators`` has counters by operator, ``functions`` the metrics of functions, ``held`` what an operator holds
        in a subtask, ``watermarks`` those of operators, and ``splits`` those of splits by their source.

        Called once, after :meth:`run`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec(ABC):
    """All that a host must know to run an operator and what is chained to it; picklable.

    Attributes:
        number: where frames for it are addressed to.
        id: the name of its state: its uid, or an id that follows from the program.
        name: its name, for messages and counters.
        edges: the ways to it.
        root: the root of the functions that are chained to it.
        parallelism: the number of its subtasks.
        max_parallelism: the number of key groups.
        identity: the facts that its stored state depends on.
        audience: a name for all tasks that wait for reports of others; to another one, a task says again where it
            stands.
        speed: whether it works on columns or elements, and why.
        in_batch: whether all input comes at once: no watermark comes before its end, and what waits for the clock
            happens then.
        job_parameters: the parameters that its functions may ask for.
        dead_letter_limits: how many dead letters its operators may have.
        function_metrics: the metrics of its functions, where they are open.
        search: looks for an element that ends the process.
    """

    number: int
    id: str
    name: str
    edges: tuple[ValveEdge, ...]
    root: ChainNode
    parallelism: int
    max_parallelism: int
    identity: dict[str, str] = field(default_factory=dict)
    audience: str = ""
    speed: str = ""
    in_batch: bool = False
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    dead_letter_limits: DeadLetterLimits = field(default=DeadLetterLimits())
    function_metrics: FunctionMetrics = field(default_factory=FunctionMetrics, compare=False, repr=False)
    search: Search = field(default=Search())

    @property
    def has_generators(self) -> bool:
        """Whether user-defined watermark generators work in its tasks."""
        return any(operator.strategy.is_supplied for operator in self.root.assigners())

    @property
    @abstractmethod
    def needs_clock(self) -> bool:
        """Whether its tasks may have to run when only the clock has gone on."""

    @property
    def runs_without_data(self) -> bool:
        """Whether micro-batches have to come while no data does, because of its tasks."""
        return self.needs_clock

    @abstractmethod
    def task(self, subtask: int, backend: Backend, clock_ms: int, run: str | None = None) -> Task:
        """Open one of its subtasks for a micro-batch.

        Args:
            subtask: its index.
            backend: its state.
            clock_ms: the time of the micro-batch by the clock, in milliseconds since the epoch.
            run: a name for the run of the job that planned the micro-batch; None if runs cannot be told apart.
        """

    def runtime_context(self) -> RuntimeContext:
        """The runtime context of its operator's functions in the first subtask."""
        return _where(self, self.name, self.parallelism)

    @abstractmethod
    def user_functions(self) -> list[Any]:
        """The functions that the user wrote for its operator, to be opened and closed."""

    @abstractmethod
    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``: topic and text."""


def open_all(sources: Collection[_HasChain], tasks: Collection[TaskSpec], index: int) -> int:
    """Call ``open`` of every function of a subtask, once before its first element; their metrics start from zero.

    Returns:
        The number of functions, with those that have nothing to open.
    """
    for spec in (*sources, *tasks):
        spec.function_metrics.clear()
    functions = [*_functions(sources, tasks)]
    for function, where in functions:
        open_function(function, replace(where, index=index))
    return len(functions)


def close_all(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> None:
    """Call ``close`` of every function, once after its last element."""
    for function, where in _functions(sources, tasks):
        close_function(where.task_name, function)


def open_function(function: object, where: RuntimeContext) -> None:
    """Open one function, if it is an object that can be opened."""
    if hasattr(function, "open"):
        with calling(where.task_name, during="when its function was opened"):
            function.open(where)


def close_function(name: str, function: object) -> None:
    """Close one function, if it is an object that can be closed."""
    if hasattr(function, "close"):
        with calling(name, during="when its function was closed"):
            function.close()


class _HasChain(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def root(self) -> ChainNode: ...

    @property
    def parallelism(self) -> int: ...

    @property
    def max_parallelism(self) -> int: ...

    @property
    def job_parameters(self) -> Mapping[str, str]: ...

    @property
    def function_metrics(self) -> FunctionMetrics: ...


_Opened: TypeAlias = tuple[Any, RuntimeContext]
"""A function with what it is told about where it works; the number of its subtask is still to be put in."""


def _functions(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> Iterator[_Opened]:
    """Each function object once, also where a program has one object in several places: it is that of the last then."""
    return iter({id(opened[0]): opened for opened in _all_functions(sources, tasks)}.values())


def _all_functions(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> Iterator[_Opened]:
    for source in sources:
        yield from _chained(source)
    for task in tasks:
        for function in task.user_functions():
            yield function, task.runtime_context()
        yield from _chained(task)


def _chained(spec: _HasChain) -> Iterator[_Opened]:
    for node in spec.root.all_nodes():
        if node.operator is not None and node.operator.user_function is not None:
            yield node.operator.user_function, _where(spec, node.operator.name, spec.parallelism)
        for edge in node.edges:
            for name, function in edge.partitioner.user_functions():
                yield function, _where(spec, name, edge.subtasks)


def _where(spec: _HasChain, name: str, parallelism: int) -> RuntimeContext:
    group = spec.function_metrics.group(name)
    return RuntimeContext(name, parallelism, 0, spec.job_parameters, spec.max_parallelism, metrics=group)
