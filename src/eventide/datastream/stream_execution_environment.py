"""The environment: where a program gets its streams from and starts its job."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, overload

from eventide._absent import finder_of_names, says_what_is_absent
from eventide.api.functions import SourceFunction
from eventide.api.source import Source
from eventide.common.accepted import accept
from eventide.common.configuration import Configuration
from eventide.common.execution_config import ExecutionConfig
from eventide.common.ingestion_time import ingestion_time
from eventide.common.job import JobClient, JobExecutionResult
from eventide.common.type_variables import T
from eventide.common.typeinfo import RowTypeInfo, TypeInformation
from eventide.common.types import Row
from eventide.common.watermark_generators import NoWatermarks
from eventide.common.watermark_strategy import WatermarkStrategy, spec_of
from eventide.connectors.collection import CollectionSource
from eventide.connectors.function_source import FunctionSource, SourceFace
from eventide.connectors.sink import CollectSink
from eventide.datastream._dependencies import Dependencies
from eventide.datastream._environment_hints import EnvironmentHints
from eventide.datastream._options import apply_options, split_options
from eventide.datastream._reading_files import ReadingFiles
from eventide.datastream._restarting import Restarting
from eventide.datastream._resuming import Resuming
from eventide.datastream._source_strategy import has_timestamps, strategy_in_force
from eventide.datastream._watching import Watching
from eventide.datastream.checkpoint_config import CheckpointConfig
from eventide.datastream.checkpointing_mode import CheckpointingMode
from eventide.datastream.data_stream.stream import DataStream
from eventide.datastream.time_characteristic import TimeCharacteristic
from eventide.errors import ProgramError
from eventide.plan.compiler import compile_plan
from eventide.plan.description import explain
from eventide.plan.execution_mode import RuntimeExecutionMode
from eventide.plan.graph import (
    AssignTransformation,
    DataFrameTransformation,
    NextJob,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    as_json,
    without_uid,
)
from eventide.plan.job import JobPlan
from eventide.plan.settings import Host, JobSettings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@says_what_is_absent
class StreamExecutionEnvironment(EnvironmentHints, Restarting, Resuming, Dependencies, ReadingFiles, Watching):
    """Builds streams and runs them as one job. Flink: ``StreamExecutionEnvironment``."""

    def __init__(self, host: Host) -> None:
        EnvironmentHints.__init__(self)
        Resuming.__init__(self)
        Watching.__init__(self)
        self._host = host
        self._config = ExecutionConfig()
        self._runtime_mode = RuntimeExecutionMode.STREAMING
        self._time_characteristic = TimeCharacteristic.EventTime
        self._available_now = False
        self._max_rows_per_batch: int | None = None
        self.next_job = NextJob()
        self._functions: dict[int, Any] = {}

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None, spark: SparkSession | None = None
    ) -> StreamExecutionEnvironment:
        """An environment on Spark.

        Args:
            configuration: Spark settings for a session that is made here, such as ``spark.driver.memory``; what does
                not begin with ``spark.`` goes to :meth:`configure`.
            spark: the session to use. Without it, the active one is used; without that, a local one is made.
        """
        from eventide.spark.host import SparkHost

        spark_options, options = split_options(configuration or Configuration())
        return StreamExecutionEnvironment(SparkHost.find(spark, spark_options)).configure(options)

    def configure(self, configuration: Configuration) -> Self:
        """Set what Flink's options say: ``parallelism.default``, ``execution.runtime-mode``, and others.

        Those that are known are in the guide "From PyFlink". One warning names those that make no difference, among
        them options of Spark's, whose session is there already.

        Raises:
            ProgramError: if a known option has a value that is none.
        """
        apply_options(configuration, self)
        return self

    def get_config(self) -> ExecutionConfig:
        """Settings of the whole job."""
        return self._config

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Where the job keeps its checkpoint."""
        return self._checkpoint_config

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> Self:
        """Keep the interval, without effect: every micro-batch is a checkpoint, exactly once, whatever is set.

        What can be chosen is the place, with ``get_checkpoint_config().set_checkpoint_storage_dir(...)``, and the time
        between micro-batches, with ``get_config().set_auto_watermark_interval(...)``.
        """
        accept(self._checkpoint_config, "checkpoint_interval", interval)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks of each keyed operator; by default, the number of cores."""
        self._config.set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """The number of subtasks of each keyed operator."""
        return self._declared_parallelism() or self._host.default_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups, which is the upper limit of the parallelism; 32,768 by default.

        It costs nothing, since state is not stored by key group; it cannot change while a checkpoint is in use.
        """
        self._config.set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups."""
        return self._config.get_max_parallelism()

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Choose between streaming and batch execution.

        BATCH reads bounded input as a whole, and no watermark comes before its end, so that nothing is late. Operators
        with keys, and all windows, take their elements in the order of timestamps. Timers fire at the end; one that is
        set by a timer never does. AUTOMATIC is BATCH if all sources are bounded.
        """
        self._runtime_mode = execution_mode
        return self

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> Self:
        """Choose the kind of time that the program works with; event time by default.

        ``time_window`` and ``time_window_all`` follow processing time with ProcessingTime, and timestamps otherwise.
        With IngestionTime, the elements of every source that is added from now on without a strategy have the time at
        which they come in, that of their micro-batch, as their timestamp, and watermarks follow it. Windows that name
        their time, such as ``TumblingEventTimeWindows``, mean what they say; under ProcessingTime, Flink puts out no
        watermarks for those of event time, so choose EventTime where a program has both.

        Raises:
            ProgramError: if it is no time characteristic.
        """
        if not isinstance(characteristic, TimeCharacteristic):
            raise ProgramError(f"set_stream_time_characteristic needs a TimeCharacteristic, not {characteristic!r}")
        self._time_characteristic = characteristic
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """The kind of time that the program works with."""
        return self._time_characteristic

    def set_available_now(self, available_now: bool = True) -> Self:
        """End the job when it has handled all that was there when it started, as Spark's ``availableNow``.

        It ends after the micro-batch with the last of that data, before another one begins. Later processing-time
        timers, and rows that Spark's operators in a DataFrame give after their last input, come with the first
        micro-batch of the next run.

        A job with bounded sources alone ends by itself.
        """
        self._available_now = available_now
        return self

    def set_max_rows_per_batch(self, max_rows: int | None) -> Self:
        """Limit how many rows each source gives to one micro-batch.

        Holds for sources on :class:`~eventide.datastream.connectors.Source`; a DataFrame brings its own options.

        Raises:
            ProgramError: if it is not a positive number.
        """
        if max_rows is not None and (not isinstance(max_rows, int) or isinstance(max_rows, bool) or max_rows < 1):
            raise ProgramError(f"the limit of rows per micro-batch must be 1 or more, not {max_rows!r}")
        self._max_rows_per_batch = max_rows
        return self

    @overload
    def from_collection(self, collection: Iterable[Any], type_info: RowTypeInfo) -> DataStream[Row]: ...

    @overload
    def from_collection(self, collection: Iterable[T], type_info: TypeInformation | None = None) -> DataStream[T]: ...

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream[Any]:
        """A stream of the elements of a collection, in its order; their type may be declared."""
        source = CollectionSource(collection, type_info)
        return self._of_source(SourceTransformation("collection", source, source.get_produced_type()))

    def from_source(
        self,
        source: Source[T],
        watermark_strategy: WatermarkStrategy[T],
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream[T]:
        """A stream of a source, with a watermark for each of its splits.

        With ``WatermarkStrategy.no_watermarks()`` and no timestamp assigner, those of the source itself stay; its
        ``with_idleness`` holds for them. Where the elements have no timestamps and the strategy gives them none, there
        are no watermarks, as in Flink, and a warning says so.

        Raises:
            ProgramError: if the source or strategy is of another type, or your generator needs timestamps and has none.
        """
        if not isinstance(source, Source):
            raise ProgramError(f"from_source needs a Source of eventide.datastream.connectors, not {source!r}")
        strategy = strategy_in_force(watermark_strategy, source, source_name)
        produced_type = type_info or source.get_produced_type()
        if not has_timestamps(strategy) and isinstance(strategy.generator, NoWatermarks):
            timeout_ms, alignment = strategy.idle_timeout_ms, strategy.alignment
            return self._of_source(SourceTransformation(source_name, source, produced_type, timeout_ms, alignment))
        node = SourceTransformation(source_name, source, produced_type)
        return DataStream(self, node).assign_timestamps_and_watermarks(strategy)

    def add_source(
        self,
        source_func: SourceFunction[T],
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream[T]:
        """A stream of what a function emits, with its timestamps and watermarks; a strategy downstream replaces them.

        A ``FlinkKafkaConsumer`` is read as the ``KafkaSource`` that it stands for.

        Raises:
            ProgramError: if it is no :class:`~eventide.datastream.SourceFunction`.
        """
        if isinstance(source_func, SourceFace):
            strategy = source_func.get_watermark_strategy()
            return self.from_source(source_func.as_source(), strategy, source_name, type_info)
        source = FunctionSource(source_func, type_info)
        return self._of_source(SourceTransformation(source_name, source, source.get_produced_type()))

    def from_data_frame(
        self,
        df: DataFrame,
        watermark_strategy: WatermarkStrategy[Row] | None = None,
        split_by: Sequence[str | Column] | None = None,
        splits: Sequence[Any] | None = None,
        order_by: Sequence[str | Column] | None = None,
    ) -> DataStream[Row]:
        """A stream of the rows of a streaming or batch DataFrame, as ``Row`` elements with its column names.

        Args:
            df: any DataFrame: Kafka, files, rate, Delta, …
            watermark_strategy: timestamps and watermarks. A column name or ``Column`` as timestamp assigner is
                evaluated by Spark; it must be a timestamp, or whole milliseconds.
            split_by: the columns that identify the split of a row; each split has a watermark of its own, and one that
                falls silent holds the others back. So name what always speaks, such as the partition of a topic, not
                a device that may be switched off. Without it, the DataFrame is one split.
            splits: the splits that are expected, as values (or tuples of values) of ``split_by``: they hold the
                watermark back until they have spoken. Others join when they first speak. Spark casts the values to the
                types of the columns.
            order_by: the columns that give the order of arrival within a split. Without it, rows come in the order of
                Spark's partitions.

        Raises:
            ProgramError: for columns that are not there, ``splits`` without ``split_by``, or a value in it that its
                column cannot have.
        """
        given = WatermarkStrategy.no_watermarks() if watermark_strategy is None else watermark_strategy
        strategy = spec_of(given, "from_data_frame")
        reader = self._host.read_data_frame(df, strategy, split_by, splits, order_by)
        has_column = strategy.timestamp_column is not None
        node = DataFrameTransformation("data frame", reader, reader.type_info, has_timestamps=has_column)
        if watermark_strategy is None:
            return self._of_source(node)
        return DataStream(self, node).assign_timestamps_and_watermarks(replace(strategy, timestamp_column=None))

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the job of all sinks and operators, and wait for its end.

        An operator runs even if no sink takes what it puts out.

        Raises:
            ProgramError: if the program has neither, or collects elements, which it cannot read while this call waits.
        """
        if self.next_job.collects:
            raise ProgramError(
                "execute() would block until the caller reads the elements of a CollectSink; call "
                "execute_and_collect() of the stream, or execute_async(), and read them with collected() of its client"
            )
        return self.execute_async(job_name).get_job_execution_result().result()

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start the job of all sinks and operators. The next job has those that are added from then on.

        Raises:
            ProgramError: if the program has neither.
        """
        plan, settings = self._plan(self.next_job.taken()), self._settings(job_name)
        client = self._host.run(plan, settings)
        self._show(settings.job_name, client, plan)
        return client

    def get_plan(self, *streams: DataStream) -> JobPlan:
        """The plan of the program: its sources, the levels of its operators, its sinks. Not in PyFlink.

        Args:
            streams: the streams to plan for, as if each were collected; without any, all sinks and operators so far.

        Raises:
            ProgramError: if there is nothing to plan for, or the program cannot run as it is written.
        """
        collected = [SinkTransformation("result", s._transformation, CollectSink()) for s in streams]
        return self._plan(collected or self.next_job.nodes())

    def get_execution_plan(self) -> str:
        """The program as JSON, in the form of Flink's own plans; `explain` says more.

        Raises:
            ProgramError: if it has no sink and no operator.
        """
        return as_json(self.next_job.nodes(), self.get_parallelism())

    def explain(self, *streams: DataStream) -> None:
        """Print the plan, of streams as in `get_plan`: what runs where, how elements travel, and where state is."""
        print(explain(self.get_plan(*streams)))  # noqa: T201 - its purpose

    def own_function(self, function: T) -> T:
        """A function object for an operator with state: itself the first time, a copy from then on.

        Each operator opens its own, and finds its own state then.
        """
        if id(function) in self._functions:
            return copy.copy(function)
        self._functions[id(function)] = function
        return function

    def data_frame_of(self, sink: SinkTransformation) -> DataFrame:
        """The DataFrame of the stream before a sink, whose query runs the operators that it needs."""
        data_frame: DataFrame = self._host.to_data_frame(self._plan([sink]), self._settings(None))
        self.next_job.leave_out(sink)
        return data_frame

    def _of_source(self, node: Transformation) -> DataStream[Any]:
        """The stream of a source without a strategy: ingestion time gives it one."""
        if self._time_characteristic is TimeCharacteristic.IngestionTime:
            node = AssignTransformation("ingestion time", node, ingestion_time(), of_source=True)
        return DataStream(self, node)

    def _plan(self, ends: Sequence[Transformation]) -> JobPlan:
        parallelism, max_parallelism = self._declared_parallelism(), self._config.get_max_parallelism()
        if parallelism is not None and parallelism > max_parallelism:
            raise ProgramError(
                f"the parallelism {parallelism} is above the max parallelism {max_parallelism}, the "
                "number of key groups to deal out; set_max_parallelism to that number or more"
            )
        unnamed = "" if self._config.has_auto_generated_uids_enabled() else ", ".join(without_uid(ends))
        if unnamed:
            raise ProgramError(f"auto generated uids are disabled; call uid(...) on these, which have none: {unnamed}")
        planned = min(self._planned_parallelism(), max_parallelism)
        plan = compile_plan(ends, planned, max_parallelism, self._runtime_mode)
        plan = plan.with_registered_types(self._config.registered_types)
        return plan.with_job_parameters(self._config.get_global_job_parameters())

    def _declared_parallelism(self) -> int | None:
        declared = self._config.get_parallelism()
        return None if declared == ExecutionConfig.PARALLELISM_DEFAULT else declared

    def _planned_parallelism(self) -> int:
        """The parallelism of the program; else that of the savepoint or checkpoint; else that of the host."""
        location = self._checkpoint_config.get_checkpoint_storage_dir()
        return self._declared_parallelism() or self._parallelism_before(location) or self.get_parallelism()

    def _settings(self, job_name: str | None) -> JobSettings:
        return JobSettings(
            job_name=job_name or "eventide job",
            runtime_mode=self._runtime_mode,
            checkpoint_location=self._checkpoint_config.get_checkpoint_storage_dir(),
            trigger_interval_ms=self._config.get_auto_watermark_interval(),
            available_now=self._available_now,
            max_rows_per_batch=self._max_rows_per_batch,
            dashboard_url=self.get_dashboard_url(),
            restart_strategy=self._strategy_in_force(),
            beginning=self._beginning(),
        )


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
