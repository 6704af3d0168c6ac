"""A plan as plain values, for viewers long after the program is gone; and in words, for readers of today."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, TypeAlias

from eventide._secrets import without_secrets
from eventide.api.windows import (
    CumulatingEventTimeWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingCalendarWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from eventide.common.watermark_generators import BoundedOutOfOrderness, NoWatermarks
from eventide.common.watermark_strategy import NullTimestamps, WatermarkSpec
from eventide.plan.job import DataFrameSourceSpec, JobPlan, SinkSpec
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.chain.timestamps import AssignTimestamps
from eventide.runtime.columnar.operator import ColumnarWindow
from eventide.runtime.eventtime.valve import ValveEdge
from eventide.runtime.exchange.frames import Edge
from eventide.runtime.joins.columns import WindowColumns
from eventide.runtime.sources.alignment import SourceAlignment
from eventide.runtime.sources.task import SourceSpec
from eventide.runtime.tasks.alignment_task import AlignmentTaskSpec
from eventide.runtime.tasks.operator_task import OperatorTaskSpec
from eventide.runtime.tasks.split_task import SplitTaskSpec
from eventide.runtime.tasks.task import TaskSpec
from eventide.runtime.window.functions import WindowSpec
from eventide.runtime.window.operation import described

Json: TypeAlias = dict[str, Any]
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_LENGTHS: dict[tuple[type, ...], tuple[str, ...]] = {
    (TumblingEventTimeWindows, TumblingProcessingTimeWindows): ("size", "offset"),
    (SlidingEventTimeWindows, SlidingProcessingTimeWindows): ("size", "slide", "offset"),
    (EventTimeSessionWindows, ProcessingTimeSessionWindows): ("session_gap",),
    (CumulatingEventTimeWindows,): ("size", "step", "offset"),
}


def describe(plan: JobPlan) -> Json:
    """Describe a plan with values that JSON knows; the same program gives the same in every process.

    Names are those of counters and messages, and no two nodes of a job have the same. All times are in milliseconds.

    Returns:
        ``parallelism`` and ``max_parallelism``, and four lists:

        - ``sources``, in the order in which a host meets them: ``name``, ``kind`` (the class), ``is_bounded``,
          ``splits`` (those that are expected from the start), ``text``, and ``alignment`` (``group``, ``drift_ms``,
          ``sources``) or None.
        - ``operators``, stage by stage: ``name``, ``id`` (what its state is kept under), ``number``, ``level``,
          ``parallelism``, ``kind`` ("operator"; "splits" where a user-defined generator works on each split of a
          source; "alignment" for the operator that tells sources where the others are), ``speed``, ``says`` (topics and
          texts of ``explain``), and ``windows`` or None: ``text``, ``follows_event_time``, ``lateness_ms``,
          ``late_tag``, and those of ``size_ms``, ``slide_ms``, ``step_ms``, ``offset_ms``, ``session_gap_ms`` and
          ``calendar`` (``unit``, ``zone``, ``every``) that they have.
        - ``sinks``: ``name``, ``number``, ``kind``, ``text``, and ``is_exactly_once``, whether it is written in one
          transaction for each micro-batch.
        - ``edges``: ``from`` and ``to`` (names), ``number``, ``input`` and ``name`` (what its state is kept under; None
          to a sink), ``through`` (the functions on the way, and the tags of side outputs in brackets), ``in_python``
          (those of the functions that are called with each element, and why), ``travels``, ``takes_elements``,
          ``idle_after_ms`` or None, and ``strategy``, the last one on the way, or None: ``text``, ``name``,
          ``generator`` ("bounded", "none" or "own"), ``bound_ms``, ``idle_after_ms``, ``missing``.
    """
    operators = plan.operators
    names = {task.number: task.name for task in operators} | {sink.number: sink.name for sink in plan.sinks}
    valves = {(task.number, valve.edge): valve for task in operators for valve in task.edges}
    nodes = [*plan.sources, *operators]
    description: Json = _shown(
        {
            "parallelism": plan.parallelism,
            "max_parallelism": plan.max_parallelism,
            "sources": [_source(source) for source in plan.sources_by_stage()],
            "operators": [_operator(task, stage.number) for stage in plan.stages for task in stage.tasks],
            "sinks": [_sink(sink) for sink in plan.sinks],
            "edges": [
                _edge(node.name, names[edge.target], edge, valves.get(edge.address), way)
                for node in nodes
                for edge, way in sorted(_ways(node.root), key=lambda found: found[0].address)
            ],
        }
    )
    return description


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


def _shown(part: object) -> Any:
    """A part of a description, in which no URI has a password."""
    match part:
        case str():
            return without_secrets(part)
        case dict():
            return {name: _shown(one) for name, one in part.items()}
        case list():
            return [_shown(one) for one in part]
    return part


def _source(source: SourceSpec | DataFrameSourceSpec) -> Json:
    if isinstance(source, DataFrameSourceSpec):
        return {
            "name": source.name,
            "kind": "DataFrame",
            "is_bounded": source.reader.is_bounded(),
            "splits": list(source.reader.known_splits()),
            "text": _stable(source.reader.describe()),
            "alignment": None,
        }
    return {
        "name": source.name,
        "kind": type(source.source).__name__,
        "is_bounded": source.source.is_bounded(),
        "splits": list(source.source.splits()),
        "text": described(source.source),
        "alignment": _alignment(source.alignment),
    }


def _alignment(alignment: SourceAlignment | None) -> Json | None:
    if alignment is None:
        return None
    return {"group": alignment.group, "drift_ms": alignment.drift_ms, "sources": list(alignment.members)}


def _operator(task: TaskSpec, stage: int) -> Json:
    kinds = {SplitTaskSpec: "splits", AlignmentTaskSpec: "alignment"}
    return {
        "name": task.name,
        "id": task.id,
        "number": task.number,
        "level": stage,
        "parallelism": task.parallelism,
        "kind": kinds.get(type(task), "operator"),
        "speed": _stable(task.speed),
        "says": [[topic, _stable(text)] for topic, text in task.describe()],
        "windows": _windows(task.operator) if isinstance(task, OperatorTaskSpec) else None,
    }


def _windows(spec: object) -> Json | None:
    if not isinstance(spec, WindowSpec | ColumnarWindow | WindowColumns):
        return None
    assigner = spec.assigner
    return {
        "text": described(assigner),
        "follows_event_time": assigner.is_event_time(),
        "lateness_ms": spec.lateness_ms,
        "late_tag": None if isinstance(spec, WindowColumns) else spec.late_tag,
        **_lengths(assigner),
    }


def _lengths(assigner: WindowAssigner[Any, Any]) -> Json:
    """How long windows are, where that is fixed and a matter of time."""
    if isinstance(assigner, TumblingCalendarWindows):
        return {"calendar": asdict(assigner.calendar)}
    names = next((names for kinds, names in _LENGTHS.items() if isinstance(assigner, kinds)), ())
    return {f"{name}_ms": getattr(assigner, name) for name in names}


def _sink(sink: SinkSpec) -> Json:
    return {
        "name": sink.name,
        "number": sink.number,
        "kind": type(sink.sink).__name__,
        "text": described(sink.sink),
        "is_exactly_once": bool(getattr(sink.sink, "is_exactly_once", False)),
    }


def _edge(origin: str, target: str, edge: Edge, valve: ValveEdge | None, way: list[ChainNode]) -> Json:
    operators = {node.operator.number: node.operator for node in way if isinstance(node.operator, AssignTimestamps)}
    assigner = None if edge.assigner is None else operators[edge.assigner]
    return {
        "from": origin,
        "to": target,
        "number": edge.number,
        "input": None if valve is None else valve.input,
        "name": None if valve is None else valve.name,
        "through": [f"[{node.tag}]" if node.operator is None else node.operator.name for node in way],
        "in_python": [
            f"{node.operator.name}: {_stable(node.speed)}"
            for node in way
            if node.operator and node.speed.startswith("in Python")  # with each element, also of columns
        ],
        "travels": _stable(edge.partitioner.describe()),
        "takes_elements": edge.takes_elements,
        "idle_after_ms": None if valve is None else valve.idle_after_ms,
        "strategy": None if assigner is None else {"name": assigner.name, **_strategy(assigner.strategy)},
    }


def _strategy(strategy: WatermarkSpec) -> Json:
    generator = strategy.generator
    missing = strategy.null_timestamps
    return {
        "text": _stable(strategy.describe()),
        "generator": "none" if isinstance(generator, NoWatermarks) else "own" if strategy.is_supplied else "bounded",
        "bound_ms": generator.bound_ms if isinstance(generator, BoundedOutOfOrderness) else None,
        "idle_after_ms": strategy.idle_timeout_ms,
        "missing": missing.value if isinstance(missing, NullTimestamps) else f"to side output {missing!r}",
    }


def _ways(root: ChainNode, way: tuple[ChainNode, ...] = ()) -> Iterator[tuple[Edge, list[ChainNode]]]:
    """The edges of a chain, each with the nodes that lead there."""
    for edge in root.edges:
        yield edge, list(way)
    for node in root.nodes:
        yield from _ways(node, (*way, node))


def _stable(text: str) -> str:
    """A text without the addresses of objects, which are others in each process."""
    return _ADDRESS.sub("", text)


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
        yield f"{indent}-> {_edge_title(edge, targets)}"
    for node in root.nodes:
        if node.tag is not None:
            yield f"{indent}side output {node.tag!r}"
        elif isinstance(node.operator, AssignTimestamps):
            described = f"{node.operator.name}: {node.operator.strategy.describe()}"
            yield f"{indent}{described}; {node.speed}" if node.speed else f"{indent}{described}"
        elif node.operator is not None:
            yield f"{indent}{node.operator.name}: {node.speed}"
        yield from _chain(node, targets, depth + 1)


def _edge_title(edge: Edge, targets: dict[int, str]) -> str:
    return f"{targets[edge.target]}: {edge.partitioner.describe()}"
