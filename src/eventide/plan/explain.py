"""A plan in words: the stages, what runs in each, how elements travel, and where state is."""

from __future__ import annotations

from collections.abc import Iterator

from eventide._secrets import without_secrets
from eventide.plan.job import DataFrameSourceSpec, JobPlan
from eventide.runtime.chain.chain import ChainNode, Edge
from eventide.runtime.chain.timestamps import AssignTimestamps
from eventide.runtime.sources.task import SourceSpec
from eventide.runtime.tasks.task import TaskSpec


def explain(plan: JobPlan) -> str:
    """Describe a plan, one line for each thing that a reader may want to know."""
    targets = {task.number: f"operator {task.number}" for task in plan.operators}
    targets |= {sink.number: f"sink {sink.name!r}" for sink in plan.sinks}
    lines: list[str] = []
    for source in plan.sources:
        lines.append(_source_title(source))
        if source.fields is not None:
            lines.append(f"  reads      {', '.join(source.fields)}")
        lines += _chain(source.root, targets)
    for stage in plan.stages:
        lines.append(f"Stage {stage.number}: one shuffle, {len(stage.tasks)} operator(s)")
        for task in stage.tasks:
            lines += [*_title(task), *_chain(task.root, targets)]
    lines += [f"Sink {sink.name!r}: {sink.sink!r}, elements of type {sink.type_info}" for sink in plan.sinks]
    return without_secrets("\n".join(lines))


def _source_title(source: SourceSpec | DataFrameSourceSpec) -> str:
    if isinstance(source, DataFrameSourceSpec):
        return f"Source {source.name!r}: {source.reader.describe()}"
    kind = "bounded" if source.source.is_bounded() else "unbounded"
    splits = source.source.splits()
    shown = ", ".join(splits[:5]) + (", …" if len(splits) > 5 else "")
    several = f"{len(splits)} split(s): {shown}" if splits else "splits that join when they are read"
    return f"Source {source.name!r}: {type(source.source).__name__}, {kind}, {several}"


def _title(task: TaskSpec) -> Iterator[str]:
    yield f"Operator {task.number} {task.name!r}: {task.speed}, {task.parallelism} subtask(s)"
    for topic, text in task.describe():
        yield f"  {topic:<10} {text}"
    yield f"  {'stored as':<10} {task.id!r}"


def _chain(root: ChainNode, targets: dict[int, str], depth: int = 1) -> Iterator[str]:
    indent = "  " * depth
    for edge in root.edges:
        yield f"{indent}-> {_edge(edge, targets)}"
    for node in root.nodes:
        if node.tag is not None:
            yield f"{indent}side output {node.tag!r}"
        elif isinstance(node.step, AssignTimestamps):
            yield f"{indent}{node.step.name}: {node.step.strategy.describe()}"
        elif node.step is not None:
            yield f"{indent}{node.step.name}"
        yield from _chain(node, targets, depth + 1)


def _edge(edge: Edge, targets: dict[int, str]) -> str:
    return f"{targets[edge.target]}: {edge.partitioner.describe()}"
