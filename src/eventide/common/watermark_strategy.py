"""`WatermarkStrategy`: the timestamps and watermarks of a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeGuard

from eventide._absent import hand_out_names
from eventide.common.column_expression import is_expression
from eventide.common.ms import to_ms, to_positive_ms
from eventide.common.time import Duration, Time
from eventide.common.timestamp_assigner import (
    ExpressionAssigner,
    FunctionAssigner,
    RecordTimestampAssigner,
    SuppliedAssigner,
    TimestampAssigner,
    VectorizedTimestampAssigner,
)
from eventide.common.type_variables import T, T_contra
from eventide.common.watermark import Watermark
from eventide.common.watermark_generator import (
    BatchWatermarkOutput,
    VectorizedWatermarkGenerator,
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
)
from eventide.common.watermark_generators import (
    BoundedOutOfOrderness,
    NoWatermarks,
    SuppliedGenerator,
    WatermarksWithIdleness,
)
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "NullTimestamps",
    "TimestampAssigner",
    "VectorizedTimestampAssigner",
    "WatermarkAlignment",
    "WatermarkSpec",
    "WatermarkStrategy",
    "spec_of",
]


class NullTimestamps(Enum):
    """Treatment of an element whose timestamp is missing: None, NaN, or null in a column. Not in Flink.

    ``FAIL`` is the default: the job fails, and the error says where. ``DROP`` drops the element, and counts it
    (``numRecordsWithoutTimestamp``). Use an ``OutputTag`` instead to get such elements.
    """

    FAIL = "fail"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class WatermarkAlignment:
    """Settings of a strategy for watermark alignment. Flink: ``WatermarkAlignmentParams``.

    Attributes:
        group: The common name of all sources that wait for each other.
        drift_ms: How far a split of the source may be ahead of the lowest watermark of the group, in milliseconds. None
            if the source does not wait, and no other waits for it: this was turned off while the job ran.
    """

    group: str
    drift_ms: int | None

    def describe(self) -> str:
        """Return a few words for plans and logs."""
        if self.drift_ms is None:
            return f"not aligned in {self.group!r} for now"
        return f"aligned in {self.group!r} within {self.drift_ms} ms"


class SparkColumn(Protocol):
    """A Spark ``Column``, classic or Connect, declared without loading Spark."""

    def isNotNull(self) -> object:  # noqa: N802 - Spark's name
        """Return a column that is true where this one has a value."""


class _Tag(Protocol):
    """An ``OutputTag``, which a higher layer defines."""

    @property
    def tag_id(self) -> str:
        """The name of a side output."""


class WatermarkStrategy(ABC, Generic[T_contra]):
    """The rules for the timestamps and the watermarks of a stream.

    Start with a built-in strategy, such as `for_bounded_out_of_orderness`. Or subclass this class: then
    `create_timestamp_assigner` and `create_watermark_generator` make the objects of each split of a source, or of each
    subtask if the strategy comes after an operator. They are called in every micro-batch, and the new objects get the
    state of the old ones. A strategy is pickled and sent to the workers.

    A strategy is a value: each ``with_*`` returns a new strategy that keeps all other settings, in any order.
    (PyFlink's ``with_idleness`` drops the timestamp assigner; eventide's methods keep it.) Flink:
    ``WatermarkStrategy``; PyFlink's cannot be subclassed.

    >>> from eventide.common import BoundedOutOfOrdernessWatermarks
    >>> class OfPayments(WatermarkStrategy):
    ...     def create_timestamp_assigner(self, context):
    ...         return lambda payment, _: payment["paid_at_ms"]
    ...     def create_watermark_generator(self, context):
    ...         return BoundedOutOfOrdernessWatermarks(Duration.of_seconds(5))
    >>> OfPayments().with_idleness(Duration.of_minutes(1)).describe()
    'watermarks of OfPayments, idle after 60000 ms, timestamps from OfPayments'
    """

    def create_timestamp_assigner(
        self, context: WatermarkGeneratorContext
    ) -> TimestampAssigner[T_contra] | Callable[[T_contra, int], int]:
        """Return a new assigner for the elements of a split; by default, they keep the timestamps of their source.

        The assigner's state is kept for its split, as a generator's state is.

        Args:
            context: The context of the assigner, such as the clock.

        Returns:
            A `TimestampAssigner`, or a function ``(element, record_timestamp) -> milliseconds``.
        """
        return RecordTimestampAssigner()

    @abstractmethod
    def create_watermark_generator(self, context: WatermarkGeneratorContext) -> WatermarkGenerator[T_contra]:
        """Return a new generator for the watermarks of a split.

        Args:
            context: The context of the generator, such as the clock.
        """

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration | Time | int) -> WatermarkSpec[object]:
        """Return a strategy for elements that are out of order by no more than a bound.

        Args:
            max_out_of_orderness: How much older than the newest element another may be without being late.

        Raises:
            ProgramError: The bound is negative or not a length of time.
        """
        return WatermarkSpec(BoundedOutOfOrderness(to_ms(max_out_of_orderness, "out-of-orderness bound", least=0)))

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkSpec[object]:
        """Return a strategy for elements whose timestamps never go back within a split."""
        return WatermarkSpec(BoundedOutOfOrderness(0))

    @staticmethod
    def no_watermarks() -> WatermarkSpec[object]:
        """Return a strategy without watermarks until the stream ends."""
        return WatermarkSpec(NoWatermarks())

    @staticmethod
    def for_generator(generator_supplier: Callable[..., WatermarkGenerator[T]]) -> WatermarkSpec[T]:
        """Return a strategy with the watermarks of a user-defined generator.

        Each split of a source has its own generator; after an operator, each subtask has one. Flink has this in Java;
        PyFlink does not.

        Args:
            generator_supplier: A class of `WatermarkGenerator`, or a function that returns a new one; if it has an
                argument, it is given a `WatermarkGeneratorContext`, which has the clock.

        Raises:
            ProgramError: The argument cannot be called in this way.

        >>> from eventide.common.watermark_generators import TimeLagWatermarks
        >>> print(WatermarkStrategy.for_generator(lambda ctx: TimeLagWatermarks(5_000, ctx)).describe())
        watermarks of <lambda>, timestamps of the source
        """
        return WatermarkSpec(SuppliedGenerator(generator_supplier))

    def with_idleness(self, idle_timeout: Duration | Time | int) -> WatermarkSpec[T_contra]:
        """Return this strategy with an idle timeout, for splits that may fall silent.

        A split without elements for this time, in processing time, is idle: it no longer holds the others back. It
        counts again from its next watermark on. Once all are idle, the highest of their watermarks counts. The time is
        that of micro-batches, which then also run without data.

        Args:
            idle_timeout: How long a split may be silent.

        Raises:
            ProgramError: The timeout is not positive.
        """
        return replace(spec_of(self), idle_timeout_ms=to_positive_ms(idle_timeout, "idle timeout"))

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration | Time | int,
        update_interval: Duration | Time | int | None = None,
    ) -> WatermarkSpec[T_contra]:
        """Return this strategy with watermark alignment: sources wait for each other, so that windows hold less state.

        The watermark of a group is the lowest watermark of all splits of its sources. A split whose watermark is ahead
        of it by more than the drift is not read until the others have caught up. Splits that are idle, or have ended,
        are not waited for. A split that waits does not become idle.

        Args:
            watermark_group: The name of the group. Its sources may be of any kind except ``from_data_frame``.
            max_allowed_watermark_drift: How far a split of this source may be ahead. Each source of a group adds its
                own to the watermark of the group, as in Flink.
            update_interval: Accepted for compatibility with PyFlink (there, one second): here, each micro-batch is
                planned with the watermarks that the previous one has reached.

        Raises:
            ProgramError: The group is not a name, the drift is negative, or the interval is not positive.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps()
        >>> strategy.with_watermark_alignment("orders", Duration.of_minutes(5)).alignment.describe()
        "aligned in 'orders' within 300000 ms"
        """
        if not isinstance(watermark_group, str) or not watermark_group:
            raise ProgramError(
                f"watermark alignment needs the name of a group, such as 'orders', not {watermark_group!r}"
            )
        drift_ms = to_ms(max_allowed_watermark_drift, "max allowed watermark drift", least=0)
        if update_interval is not None:
            to_positive_ms(update_interval, "update interval")
        return replace(spec_of(self), alignment=WatermarkAlignment(watermark_group, drift_ms))

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner[T] | Callable[[T, int], int] | str | SparkColumn
    ) -> WatermarkSpec[T]:
        """Return this strategy with a source of timestamps, which replaces any earlier one.

        Args:
            timestamp_assigner: A `TimestampAssigner`; or a function ``(element, record_timestamp)`` that returns
                milliseconds since the epoch; or, beyond PyFlink, the name of a column, an expression of
                ``pyarrow.compute`` over the fields, or a Spark ``Column``, which are evaluated without calling Python
                for each element.

        Raises:
            ProgramError: The argument is none of these.
        """
        assigner: TimestampAssigner[Any] | None = None
        column: str | SparkColumn | None = None
        if isinstance(timestamp_assigner, TimestampAssigner):
            assigner = timestamp_assigner
        elif is_expression(timestamp_assigner):
            assigner = ExpressionAssigner(timestamp_assigner)
        elif isinstance(timestamp_assigner, str) or _is_spark_column(timestamp_assigner):
            column = timestamp_assigner
        elif callable(timestamp_assigner):
            assigner = FunctionAssigner(timestamp_assigner)
        else:
            raise ProgramError(
                "timestamp assigner: expected a TimestampAssigner, a function (element, record_timestamp) -> int, "
                f"a column name, an expression of pyarrow.compute or a Column, got {timestamp_assigner!r}"
            )
        return replace(spec_of(self), timestamp_assigner=assigner, timestamp_column=column)

    def with_null_timestamps(self, null_timestamps: NullTimestamps | _Tag) -> WatermarkSpec[T_contra]:
        """Return this strategy with a treatment of missing timestamps. Not in Flink.

        Args:
            null_timestamps: ``NullTimestamps.FAIL``, ``NullTimestamps.DROP``, or an ``OutputTag``: then
                ``get_side_output`` on the stream with the strategy returns the elements without a timestamp.

        Raises:
            ProgramError: The argument is none of these.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
        >>> strategy.with_null_timestamps(NullTimestamps.DROP).null_timestamps
        <NullTimestamps.DROP: 'drop'>
        """
        if isinstance(null_timestamps, NullTimestamps):
            return replace(spec_of(self), null_timestamps=null_timestamps)
        tag = getattr(null_timestamps, "tag_id", None)
        if not isinstance(tag, str):
            raise ProgramError(
                "null timestamps: expected NullTimestamps.FAIL, NullTimestamps.DROP or an OutputTag, "
                f"got {null_timestamps!r}"
            )
        return replace(spec_of(self), null_timestamps=tag)


@dataclass(frozen=True, slots=True)
class WatermarkSpec(WatermarkStrategy[T_contra]):
    """A `WatermarkStrategy` as separate settings, for plans.

    Attributes:
        generator: The description of the watermarks.
        timestamp_assigner: The object that gives an element its timestamp, or None.
        timestamp_column: The column that holds the timestamp, a name or a Spark ``Column``, or None. At most one of the
            two is set; with neither, the timestamps of the source are kept.
        idle_timeout_ms: How long a split may be silent until it counts as idle; None for no limit.
        null_timestamps: The treatment of elements without a timestamp; or the id of the side output that they go to.
        alignment: How far the splits of a source may be ahead of others; None for no limit.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    >>> strategy.with_timestamp_assigner("event_time").describe()
    "bounded out-of-orderness 5000 ms, timestamps from column 'event_time'"
    """

    generator: BoundedOutOfOrderness | NoWatermarks | SuppliedGenerator
    timestamp_assigner: TimestampAssigner[T_contra] | SuppliedAssigner | None = None
    timestamp_column: Any = None
    idle_timeout_ms: int | None = None
    null_timestamps: NullTimestamps | str = NullTimestamps.FAIL
    alignment: WatermarkAlignment | None = None

    def create_timestamp_assigner(self, context: WatermarkGeneratorContext) -> TimestampAssigner[T_contra]:
        """Return the assigner that was set; a new one, if a subclass of `WatermarkStrategy` makes it.

        Raises:
            ProgramError: The timestamps come from a column, which the job reads without an assigner.
        """
        assigner = self.timestamp_assigner
        if isinstance(assigner, SuppliedAssigner):
            return assigner.create(context)
        if self.timestamp_column is not None:
            raise ProgramError(
                f"create_timestamp_assigner: the timestamps come from column {self.timestamp_column!r}, which is read "
                "without an assigner; call with_timestamp_assigner with a function"
            )
        return RecordTimestampAssigner() if assigner is None else assigner

    def create_watermark_generator(self, context: WatermarkGeneratorContext) -> WatermarkGenerator[T_contra]:
        """Return a new generator of the watermarks and the idleness of this strategy."""
        generator = self.generator.create(context)
        if self.idle_timeout_ms is None:
            return generator
        return WatermarksWithIdleness(generator, self.idle_timeout_ms, context)

    @property
    def is_supplied(self) -> bool:
        """Whether the watermarks come from a generator that the user supplies."""
        return isinstance(self.generator, SuppliedGenerator)

    @property
    def is_periodic(self) -> bool:
        """Whether watermarks are emitted only at the end of micro-batches, never between two elements."""
        return not isinstance(self.generator, SuppliedGenerator) or self.generator.is_periodic

    @property
    def assigns_timestamps(self) -> bool:
        """Whether the strategy gives elements timestamps, in place of those of their source."""
        return self.timestamp_assigner is not None or self.timestamp_column is not None

    @property
    def is_columnar(self) -> bool:
        """Whether timestamps can be found without a Python object for each element."""
        return self.timestamp_assigner is None or isinstance(self.timestamp_assigner, VectorizedTimestampAssigner)

    def describe(self) -> str:
        """Return one line for plans and logs: the watermarks, and where the timestamps come from."""
        idleness = "" if self.idle_timeout_ms is None else f", idle after {self.idle_timeout_ms} ms"
        aligned = "" if self.alignment is None else f", {self.alignment.describe()}"
        return f"{self.generator.describe()}{idleness}{aligned}, timestamps {self._timestamps()}"

    def _timestamps(self) -> str:
        if isinstance(self.timestamp_assigner, SuppliedAssigner):
            return f"from {self.timestamp_assigner.name}"
        if isinstance(self.timestamp_assigner, ExpressionAssigner):
            return f"from {self.timestamp_assigner.expression}"
        if isinstance(self.timestamp_assigner, FunctionAssigner):
            return f"from function {getattr(self.timestamp_assigner.function, '__name__', 'callable')}"
        if self.timestamp_assigner is not None:
            return f"from {type(self.timestamp_assigner).__name__}"
        if self.timestamp_column is not None:
            return f"from column {self.timestamp_column!r}"
        return "of the source"


def spec_of(strategy: object, where: str = "a watermark strategy") -> WatermarkSpec[Any]:
    """Return the settings of a strategy; for a user's class, the class supplies generators and assigners.

    Args:
        strategy: A `WatermarkStrategy`.
        where: The call that was given the strategy, for the error.

    Raises:
        ProgramError: The strategy is not a `WatermarkStrategy`.

    >>> spec_of(WatermarkStrategy.no_watermarks()).describe()
    'no watermarks, timestamps of the source'
    """
    if isinstance(strategy, WatermarkSpec):
        return strategy
    if not isinstance(strategy, WatermarkStrategy):
        raise ProgramError(
            f"{where} needs a WatermarkStrategy, such as WatermarkStrategy.no_watermarks(), not {strategy!r}"
        )
    kind = type(strategy)
    keeps_timestamps = kind.create_timestamp_assigner is WatermarkStrategy.create_timestamp_assigner
    return WatermarkSpec(
        SuppliedGenerator(strategy.create_watermark_generator, kind.__qualname__),
        None if keeps_timestamps else SuppliedAssigner(strategy.create_timestamp_assigner, kind.__qualname__),
    )


def _is_spark_column(value: object) -> TypeGuard[SparkColumn]:
    """Say whether a value is a Spark column, classic or Connect, without importing Spark."""
    return any(base.__name__ == "Column" for base in type(value).__mro__)


class IngestionTime(VectorizedWatermarkGenerator[object], VectorizedTimestampAssigner[object]):
    """Gives elements the time of their micro-batch, which never decreases."""

    is_periodic = True

    def __init__(self, context: WatermarkGeneratorContext) -> None:
        self._context = context

    def extract_timestamp(self, value: object, record_timestamp: int) -> int:
        return self._context.get_current_processing_time()

    def extract_timestamps(self, batch: pa.RecordBatch | pa.Array) -> pa.Array:
        import pyarrow as pa

        return pa.repeat(pa.scalar(self._context.get_current_processing_time(), pa.int64()), len(batch))

    def on_event(self, event: object, event_timestamp: int, output: WatermarkOutput) -> None:
        """Do nothing: the clock decides."""

    def on_batch(self, events: pa.RecordBatch | pa.Array, timestamps: pa.Array, output: BatchWatermarkOutput) -> None:
        """Do nothing: the clock decides."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit the millisecond before the micro-batch."""
        output.emit_watermark(Watermark(self._context.get_current_processing_time() - 1))


def ingestion_time() -> WatermarkSpec[object]:
    """Return the strategy of ingestion time, which is the time of micro-batches.

    A micro-batch that is repeated after a failure keeps its time.

    >>> print(ingestion_time().describe())
    watermarks of IngestionTime, timestamps from IngestionTime
    """
    strategy = WatermarkStrategy.for_generator(IngestionTime)
    # Each generator is an assigner too, with the clock of its task, and replaces this one.
    return strategy.with_timestamp_assigner(IngestionTime(WatermarkGeneratorContext()))


hand_out_names(__name__)
