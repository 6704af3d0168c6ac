"""Flink's older assigners: one object gives both timestamps and watermarks.

They are here for programs and books that use them; new programs use a ``WatermarkStrategy``.
"""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from typing import Generic, Self, TypeAlias

from eventide.common.learnt import Learnt, Snapshot
from eventide.common.ms import MIN_MS, to_ms
from eventide.common.time import Duration, Time
from eventide.common.type_variables import T, T_contra
from eventide.common.watermark import Watermark
from eventide.common.watermark_generator import WatermarkGenerator, WatermarkOutput
from eventide.common.watermark_generators import BoundedOutOfOrderness, SuppliedGenerator
from eventide.common.watermark_strategy import TimestampAssigner, WatermarkSpec
from eventide.errors import DataError, ProgramError

_log = logging.getLogger(__name__)


class AssignerWithPeriodicWatermarks(TimestampAssigner[T_contra]):
    """Gives timestamps, and a watermark whenever it is asked: at the end of every micro-batch.

    What it learns is kept for each split, as in a `WatermarkGenerator`. Flink: the interface of this name;
    ``WatermarkStrategy.for_generator`` replaces it.

    >>> class Lagging(AssignerWithPeriodicWatermarks):
    ...     highest = -(2**63)
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         self.highest = max(self.highest, value[1])
    ...         return value[1]
    ...     def get_current_watermark(self):
    ...         return Watermark(self.highest - 3_500)
    """

    @abstractmethod
    def get_current_watermark(self) -> Watermark | None:
        """Return the watermark, or None if there is none yet; one that is not above the last is ignored."""


class AssignerWithPunctuatedWatermarks(TimestampAssigner[T_contra]):
    """Gives timestamps, and watermarks that follow from single elements.

    Flink: the interface of this name; ``WatermarkStrategy.for_generator`` replaces it.

    >>> class Marked(AssignerWithPunctuatedWatermarks):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value["time"]
    ...     def check_and_get_next_watermark(self, last_element, extracted_timestamp):
    ...         return Watermark(extracted_timestamp) if last_element["is_marker"] else None
    """

    @abstractmethod
    def check_and_get_next_watermark(self, last_element: T_contra, extracted_timestamp: int) -> Watermark | None:
        """Return the watermark that holds after an element, or None.

        Args:
            last_element: The element, which has just been given its timestamp.
            extracted_timestamp: That timestamp, in milliseconds since the epoch (UTC).
        """


class AscendingTimestampExtractor(AssignerWithPeriodicWatermarks[T_contra]):
    """Gives timestamps that never go back within a split; one that does is logged.

    Flink: the class of this name; ``WatermarkStrategy.for_monotonous_timestamps`` replaces it.

    >>> class PaymentTime(AscendingTimestampExtractor):
    ...     def extract_ascending_timestamp(self, element):
    ...         return element["paid_at_ms"]
    """

    class MonotonyViolationHandler(ABC):
        """Handler of timestamps that go back."""

        @abstractmethod
        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            """Take note that `element_timestamp` came after `last_timestamp`, both in milliseconds."""

    class IgnoringHandler(MonotonyViolationHandler):
        """Does nothing."""

        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            """Do nothing."""

    class LoggingHandler(MonotonyViolationHandler):
        """Writes a warning to the log of the worker."""

        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            _log.warning("the timestamp %d is earlier than the one before it, %d", element_timestamp, last_timestamp)

    class FailingHandler(MonotonyViolationHandler):
        """Fails the job."""

        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            raise DataError(
                f"the timestamps do not ascend: {element_timestamp} is earlier than the one before it, {last_timestamp}"
            )

    _last: int = MIN_MS
    _handler: MonotonyViolationHandler = LoggingHandler()

    @abstractmethod
    def extract_ascending_timestamp(self, element: T_contra) -> int:
        """Return the event time of an element, in milliseconds since the epoch (UTC)."""

    def with_violation_handler(self, handler: MonotonyViolationHandler) -> Self:
        """Set the handler of timestamps that go back, and return this object."""
        if not isinstance(handler, AscendingTimestampExtractor.MonotonyViolationHandler):
            raise ProgramError(f"with_violation_handler needs a MonotonyViolationHandler, not {handler!r}")
        self._handler = handler
        return self

    def extract_timestamp(self, value: T_contra, record_timestamp: int) -> int:
        """Return the timestamp; the handler is called with one that is earlier than the last."""
        timestamp = self.extract_ascending_timestamp(value)
        if timestamp < self._last:
            self._handler.handle_violation(timestamp, self._last)
        else:
            self._last = timestamp
        return timestamp

    def get_current_watermark(self) -> Watermark:
        """Return the watermark one millisecond before the highest timestamp."""
        return Watermark(self._last - 1)


class BoundedOutOfOrdernessTimestampExtractor(ABC, Generic[T_contra]):
    """Gives timestamps that are out of order by no more than a bound.

    Its watermark is the highest timestamp less the bound, one millisecond later than that of
    ``WatermarkStrategy.for_bounded_out_of_orderness``, which replaces it.

    Args:
        max_out_of_orderness: How much older than the newest element another may be.

    Raises:
        ProgramError: The bound is negative or not a length of time.

    >>> class PaymentTime(BoundedOutOfOrdernessTimestampExtractor):
    ...     def extract_timestamp(self, element):
    ...         return element["paid_at_ms"]
    >>> PaymentTime(Time.seconds(10)).get_max_out_of_orderness_in_millis()
    10000
    """

    def __init__(self, max_out_of_orderness: Duration | Time | int) -> None:
        self._bound_ms = to_ms(max_out_of_orderness, "out-of-orderness bound", least=0)

    def get_max_out_of_orderness_in_millis(self) -> int:
        """Return the bound, in milliseconds."""
        return self._bound_ms

    @abstractmethod
    def extract_timestamp(self, element: T_contra) -> int:
        """Return the event time of an element, in milliseconds since the epoch (UTC)."""


class _OneForBoth(WatermarkGenerator[object], TimestampAssigner[object]):
    """An older assigner as a generator; there is one copy of it for each split."""

    def __init__(self, assigner: AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks) -> None:
        self._assigner = copy.deepcopy(assigner)
        self._learnt = Learnt(self._assigner)

    def snapshot_state(self) -> Snapshot:
        return self._learnt.snapshot()

    def restore_state(self, state: Snapshot) -> None:
        self._learnt.restore(state)

    def extract_timestamp(self, value: object, record_timestamp: int) -> int:
        timestamp: int = self._assigner.extract_timestamp(value, record_timestamp)
        return timestamp

    def on_event(self, event: object, event_timestamp: int, output: WatermarkOutput) -> None:
        if isinstance(self._assigner, AssignerWithPunctuatedWatermarks):
            _emit(self._assigner.check_and_get_next_watermark(event, event_timestamp), output)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if isinstance(self._assigner, AssignerWithPeriodicWatermarks):
            _emit(self._assigner.get_current_watermark(), output)


def _emit(watermark: Watermark | None, output: WatermarkOutput) -> None:
    if watermark is not None:
        output.emit_watermark(watermark)


OlderAssigner: TypeAlias = (
    AssignerWithPeriodicWatermarks[T] | AssignerWithPunctuatedWatermarks[T] | BoundedOutOfOrdernessTimestampExtractor[T]
)
"""An assigner of an older program, in place of a strategy."""


def older_strategy(assigner: object) -> tuple[WatermarkSpec, str] | None:
    """The strategy that replaces one of Flink's older assigners, and its code to write; None for other objects.

    >>> older_strategy("something else") is None
    True
    """
    if isinstance(assigner, BoundedOutOfOrdernessTimestampExtractor):
        strategy = WatermarkSpec(BoundedOutOfOrderness(assigner.get_max_out_of_orderness_in_millis() - 1))
        extract = assigner.extract_timestamp
        by = "WatermarkStrategy.for_bounded_out_of_orderness(...).with_timestamp_assigner(...)"
        return strategy.with_timestamp_assigner(lambda element, _: extract(element)), by
    if not isinstance(assigner, AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks):
        return None
    by = "WatermarkStrategy.for_generator(...).with_timestamp_assigner(...)"
    if isinstance(assigner, AscendingTimestampExtractor):
        by = "WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(...)"
    supplied = SuppliedGenerator(lambda: _OneForBoth(assigner), type(assigner).__qualname__)
    # The assigner of each split's own copy takes the place of this one.
    return WatermarkSpec(supplied).with_timestamp_assigner(assigner), by
