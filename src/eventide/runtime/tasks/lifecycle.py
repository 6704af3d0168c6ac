"""Opening and closing what users wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from eventide.datastream.functions import RuntimeContext
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.invoke import calling
from eventide.runtime.tasks.task import TaskSpec


class _HasChain(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def root(self) -> ChainNode: ...

    @property
    def job_parameters(self) -> Mapping[str, str]: ...


class _Opened(NamedTuple):
    """A function with what it is told about where it works."""

    name: str
    parallelism: int
    function: Any
    job_parameters: Mapping[str, str]


def open_all(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec], index: int = 0) -> None:
    """Call ``open`` of every function, once before its first element."""
    for name, parallelism, function, job_parameters in _functions(sources, tasks):
        open_function(name, parallelism, function, index, job_parameters)


def close_all(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> None:
    """Call ``close`` of every function, once behind its last element."""
    for name, _, function, _ in _functions(sources, tasks):
        close_function(name, function)


def open_function(
    name: str, parallelism: int, function: Any, index: int = 0, job_parameters: Mapping[str, str] | None = None
) -> None:
    """Open one function, if it is an object that can be opened."""
    if hasattr(function, "open"):
        with calling(name, during="when its function was opened"):
            function.open(RuntimeContext(name, parallelism, index, job_parameters or {}))


def close_function(name: str, function: Any) -> None:
    """Close one function, if it is an object that can be closed."""
    if hasattr(function, "close"):
        with calling(name, during="when its function was closed"):
            function.close()


def _functions(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> Iterator[_Opened]:
    """Each function object once: one that works before a shuffle too may be the same object on both sides of it."""
    seen: set[int] = set()
    for opened in _all_functions(sources, tasks):
        if id(opened.function) not in seen:
            seen.add(id(opened.function))
            yield opened


def _all_functions(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> Iterator[_Opened]:
    for source in sources:
        yield from _chained(source, 1)
    for task in tasks:
        for function in task.user_functions():
            yield _Opened(task.name, task.parallelism, function, task.job_parameters)
        yield from _chained(task, task.parallelism)


def _chained(spec: _HasChain, parallelism: int) -> Iterator[_Opened]:
    for node in spec.root.all_nodes():
        if node.step is not None and node.step.user_function is not None:
            yield _Opened(node.step.name, parallelism, node.step.user_function, spec.job_parameters)
        for edge in node.edges:
            for name, function in edge.outlet.user_functions():
                yield _Opened(name, edge.subtasks, function, spec.job_parameters)
