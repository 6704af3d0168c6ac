"""Opening and closing what users wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from eventide.api.functions import RuntimeContext
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.invoke import calling
from eventide.runtime.metrics import FunctionMetrics
from eventide.runtime.tasks.task import TaskSpec


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


class _Opened(NamedTuple):
    """A function with what it is told about where it works; the number of its subtask is still to be put in."""

    function: Any
    where: RuntimeContext


def open_all(sources: Collection[_HasChain], tasks: Collection[TaskSpec], index: int) -> None:
    """Call ``open`` of every function of a subtask, once before its first element; their metrics begin anew."""
    for spec in (*sources, *tasks):
        spec.function_metrics.clear()
    for function, where in _functions(sources, tasks):
        open_function(function, replace(where, index=index))


def close_all(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> None:
    """Call ``close`` of every function, once after its last element."""
    for function, where in _functions(sources, tasks):
        close_function(where.task_name, function)


def open_function(function: Any, where: RuntimeContext) -> None:
    """Open one function, if it is an object that can be opened."""
    if hasattr(function, "open"):
        with calling(where.task_name, during="when its function was opened"):
            function.open(where)


def close_function(name: str, function: Any) -> None:
    """Close one function, if it is an object that can be closed."""
    if hasattr(function, "close"):
        with calling(name, during="when its function was closed"):
            function.close()


def _functions(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> Iterator[_Opened]:
    """Each function object once, also where a program has one object in several places: it is that of the last then."""
    return iter({id(opened.function): opened for opened in _all_functions(sources, tasks)}.values())


def _all_functions(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> Iterator[_Opened]:
    for source in sources:
        yield from _chained(source)
    for task in tasks:
        for function in task.user_functions():
            yield _Opened(function, task.runtime_context())
        yield from _chained(task)


def _chained(spec: _HasChain) -> Iterator[_Opened]:
    for node in spec.root.all_nodes():
        if node.step is not None and node.step.user_function is not None:
            yield _Opened(node.step.user_function, _where(spec, node.step.name, spec.parallelism))
        for edge in node.edges:
            for name, function in edge.partitioner.user_functions():
                yield _Opened(function, _where(spec, name, edge.subtasks))


def _where(spec: _HasChain, name: str, parallelism: int) -> RuntimeContext:
    group = spec.function_metrics.group(name)
    return RuntimeContext(name, parallelism, 0, spec.job_parameters, spec.max_parallelism, metrics=group)
