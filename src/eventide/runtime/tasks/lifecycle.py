"""Opening and closing what users wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from eventide.datastream.functions import RuntimeContext
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.invoke import calling
from eventide.runtime.tasks.task import TaskSpec


class _HasChain(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def root(self) -> ChainNode: ...


def open_all(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec], index: int = 0) -> None:
    """Call ``open`` of every function, once before its first element."""
    for name, parallelism, function in _functions(sources, tasks):
        open_function(name, parallelism, function, index)


def close_all(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> None:
    """Call ``close`` of every function, once behind its last element."""
    for name, _, function in _functions(sources, tasks):
        close_function(name, function)


def open_function(name: str, parallelism: int, function: Any, index: int = 0) -> None:
    """Open one function, if it is an object that can be opened."""
    if hasattr(function, "open"):
        with calling(name, during="when its function was opened"):
            function.open(RuntimeContext(name, parallelism, index))


def close_function(name: str, function: Any) -> None:
    """Close one function, if it is an object that can be closed."""
    if hasattr(function, "close"):
        with calling(name, during="when its function was closed"):
            function.close()


def _functions(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> Iterator[tuple[str, int, Any]]:
    """Each function object once: one that works before a shuffle too may be the same object on both sides of it."""
    seen: set[int] = set()
    for name, parallelism, function in _all_functions(sources, tasks):
        if id(function) not in seen:
            seen.add(id(function))
            yield name, parallelism, function


def _all_functions(sources: Iterable[_HasChain], tasks: Iterable[TaskSpec]) -> Iterator[tuple[str, int, Any]]:
    for source in sources:
        yield from _chained(source.root, 1)
    for task in tasks:
        for function in task.user_functions():
            yield task.name, task.parallelism, function
        yield from _chained(task.root, task.parallelism)


def _chained(root: ChainNode, parallelism: int) -> Iterator[tuple[str, int, Any]]:
    for node in root.all_nodes():
        if node.step is not None and node.step.user_function is not None:
            yield node.step.name, parallelism, node.step.user_function
        for edge in node.edges:
            for name, function in edge.outlet.user_functions():
                yield name, edge.subtasks, function
