"""Which of its two speeds a window operator runs at: on columns where the program allows it, else on elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventide.common.typeinfo import Types
from eventide.datastream._graph import KeyTransformation, WindowTransformation
from eventide.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from eventide.plan.stages import who_moves_time
from eventide.runtime.columnar.contents import AggregatedColumns, ColumnResult
from eventide.runtime.columnar.panes import panes_of
from eventide.runtime.columnar.results import ResultShape
from eventide.runtime.columnar.spec import ColumnarWindow
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.exchange.outlets import ByKey, Outlet, Together
from eventide.runtime.tasks.stage import OperatorSpec
from eventide.runtime.window.contents import Reduced
from eventide.runtime.window.partials import PartialsCodec
from eventide.runtime.window.reducing_outlet import ReducingOutlet
from eventide.runtime.window.spec import WindowSpec

_COLUMNAR = "columns"
_ELEMENT = "element by element"
_WITHOUT = "with built-in watermarks, or a generator class that is_periodic,"


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """An operator at its speed: its description, how elements get to it, and the speed in words, with the reason."""

    spec: OperatorSpec
    outlet: Outlet
    speed: str


def planned(node: WindowTransformation, name: str, max_parallelism: int) -> PlannedOperator:
    """Choose the speed of a window operator; its results are the same at both."""
    spec: WindowSpec = node.build(name)
    key = node.inputs[0] if isinstance(node.inputs[0], KeyTransformation) else None
    contents = spec.contents
    if isinstance(contents, AggregatedColumns) and isinstance(spec.function, ColumnResult):
        obstacle = _obstacle(spec, key)
        if obstacle is None:
            columnar = _columnar(spec, contents, spec.function, node, key)
            return PlannedOperator(columnar, columnar.outlet(max_parallelism), f"{_COLUMNAR}, {_why_fast(columnar)}")
    else:
        obstacle = _python_in(spec)
    outlet = _element_outlet(spec, node, key, max_parallelism)
    if isinstance(outlet, ReducingOutlet):
        return PlannedOperator(spec, outlet, f"{_ELEMENT}, reduced before the shuffle, because {obstacle}")
    unreduced = f"; not reduced before the shuffle, because {_unreduced(spec, node)}" if _reduces(spec) else ""
    return PlannedOperator(spec, outlet, f"{_ELEMENT}, because {obstacle}{unreduced}")


def _columnar(
    spec: WindowSpec,
    contents: AggregatedColumns,
    result: ColumnResult,
    node: WindowTransformation,
    key: KeyTransformation | None,
) -> ColumnarWindow:
    keys = () if key is None else key.columns
    return ColumnarWindow(
        name=spec.name,
        assigner=spec.assigner,
        trigger=spec.trigger,
        aggregation=contents.aggregation,
        value_type=contents.value_type,
        keys=keys,
        shape=ResultShape(node.type_info, len(keys), result.has_window, contents.aggregation),
        lateness_ms=spec.lateness_ms,
        late_tag=spec.late_tag,
        one_by_one=any(who_moves_time(source) for source in node.inputs),
    )


def _obstacle(spec: WindowSpec, key: KeyTransformation | None) -> str | None:
    """Why aggregates by column cannot run on columns, and what to change; None if they can."""
    assigner, trigger = spec.assigner, spec.trigger
    if key is not None and not key.columns:
        return "the key is a Python function; name columns instead: key_by('…')"
    if spec.evictor is not None:
        return f"the evictor {spec.evictor!r} looks at single elements"
    if _follows_clock(assigner):
        return f"the windows {assigner!r} follow processing time, which is no column; those of event time would do"
    if isinstance(assigner, CountTumblingWindowAssigner):
        if trigger == assigner.get_default_trigger():
            return None
        return f"the trigger {trigger!r} is not the one of count windows; leave trigger(...) out"
    if not isinstance(assigner, TumblingEventTimeWindows | SlidingEventTimeWindows | EventTimeSessionWindows):
        return f"the windows {assigner!r} need each element; use tumbling, sliding, session or count windows"
    if isinstance(trigger, EventTimeTrigger):
        return None
    if isinstance(trigger, ContinuousEventTimeTrigger):
        if isinstance(assigner, TumblingEventTimeWindows):
            return None
        return "a ContinuousEventTimeTrigger runs on columns with tumbling windows only"
    by_clock = isinstance(trigger, ProcessingTimeTrigger | ContinuousProcessingTimeTrigger)
    what = "waits for processing time" if by_clock else "looks at single elements"
    return f"the trigger {trigger!r} {what}; use the windows' own, or a ContinuousEventTimeTrigger"


def _follows_clock(assigner: WindowAssigner[Any, Any]) -> bool:
    return assigner.has_time_windows and not assigner.is_event_time()


def _python_in(spec: WindowSpec) -> str:
    functions = ", ".join(map(_name_of, spec.user_functions())) or "the window function"
    if _follows_clock(spec.assigner):
        return f"{functions} is Python, and the windows follow processing time"
    return f"{functions} is Python; aggregate(sum_('…'), …) of eventide.aggregates would run on columns"


def _name_of(function: Any) -> str:
    kind = type(function)
    return "a function" if kind.__module__.startswith("eventide.") else kind.__name__


def _why_fast(window: ColumnarWindow) -> str:
    if window.aggregates_first:
        return "aggregated before the shuffle"
    if window.ships_elements:
        return "rows go through the shuffle, because late ones are wanted; without side_output_late_data they need not"
    if window.one_by_one:
        reason = "rows go through the shuffle, because watermarks may come between any two of them"
        return f"{reason}; {_WITHOUT} they do not"
    if window.is_continuous:
        return "rows go through the shuffle, because the trigger follows from the first element of a key"
    return "rows go through the shuffle, because their order decides what these windows hold"


def _reduces(spec: WindowSpec) -> bool:
    return isinstance(spec.contents, Reduced)


def _unreduced(spec: WindowSpec, node: WindowTransformation) -> str | None:
    """Why elements cannot be reduced before the shuffle without other results, and what to change; None if not."""
    if not spec.is_fixed:
        windows = f"{spec.assigner!r} with {spec.trigger!r}"
        return f"{windows} asks each element; tumbling and sliding windows of event time by themselves do not"
    if spec.late_tag is not None:
        return "late elements are wanted as they are; without side_output_late_data they could be"
    if spec.lateness_ms:
        return "each late element fires its window; without allowed_lateness they could be"
    if any(who_moves_time(source) for source in node.inputs):
        return f"watermarks may come between any two elements; {_WITHOUT} they do not"
    if isinstance(spec.assigner, SlidingEventTimeWindows) and spec.assigner.slide > spec.assigner.size:
        return "some elements are in no window; a slide of at most the size would leave none out"
    said = spec.contents.user_function.is_associative
    if said is None:
        return "nothing says that the reduce function is associative; if it is, say so: reduce(associative(…))"
    if said is False:
        return "the reduce function says that it is not associative"
    return None


def _element_outlet(
    spec: WindowSpec, node: WindowTransformation, key: KeyTransformation | None, max_parallelism: int
) -> Outlet:
    value_type = node.inputs[0].type_info
    panes = panes_of(spec.assigner)
    if isinstance(spec.contents, Reduced) and panes is not None and _unreduced(spec, node) is None:
        codec = PartialsCodec(value_type, Types.PICKLED_BYTE_ARRAY() if key is None else key.key_type)
        select = None if key is None else key.select
        return ReducingOutlet(spec.name, spec.contents, panes, codec, select, max_parallelism)
    if key is None:
        return Together(ElementCodec(value_type))
    return ByKey(ElementCodec(value_type, key.key_type), key.select, max_parallelism)
