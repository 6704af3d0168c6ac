"""Windows, and what belongs to them: assigners, triggers and evictors (PyFlink: ``pyflink.datastream.window``)."""

from eventide.api.windows._assigners import GlobalWindows, MergingWindowAssigner, WindowAssigner
from eventide.api.windows._continuous import ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger
from eventide.api.windows._count import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from eventide.api.windows._evictors import (
    CountEvictor,
    DeltaEvictor,
    Evictor,
    TimeEvictor,
    TimestampedValue,
)
from eventide.api.windows._fixed import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.api.windows._serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
)
from eventide.api.windows._sessions import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from eventide.api.windows._windows import CountWindow, GlobalWindow, TimeWindow, Window
from eventide.api.windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
)

__all__ = [
    "Window",
    "TimeWindow",
    "CountWindow",
    "GlobalWindow",
    "WindowAssigner",
    "MergingWindowAssigner",
    "TumblingEventTimeWindows",
    "SlidingEventTimeWindows",
    "EventTimeSessionWindows",
    "DynamicEventTimeSessionWindows",
    "TumblingProcessingTimeWindows",
    "SlidingProcessingTimeWindows",
    "ProcessingTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "SessionWindowTimeGapExtractor",
    "GlobalWindows",
    "CountTumblingWindowAssigner",
    "CountSlidingWindowAssigner",
    "Trigger",
    "TriggerResult",
    "EventTimeTrigger",
    "ContinuousEventTimeTrigger",
    "ProcessingTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "PurgingTrigger",
    "NeverTrigger",
    "Evictor",
    "TimestampedValue",
    "CountEvictor",
    "TimeEvictor",
    "DeltaEvictor",
    "TimeWindowSerializer",
    "CountWindowSerializer",
    "GlobalWindowSerializer",
]
