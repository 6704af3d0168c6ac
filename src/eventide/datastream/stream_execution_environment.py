"""The environment, from which a program gets its streams, and with which it starts its job."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self, overload

from eventide._absent import hand_out_names, says_what_is_absent
from eventide.api.functions import SourceFunction, in_python
from eventide.api.functions.output_tag import DeadLetterLimits
from eventide.api.source import Source
from eventide.common.accepted import accept, has_no_effect, level_of_the_program
from eventide.common.configuration import Configuration
from eventide.common.execution_config import ExecutionConfig, check_parallelisms
from eventide.common.job import JobClient, JobExecutionResult
from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.common.time import Duration
from eventide.common.type_variables import T
from eventide.common.typeinfo import RowTypeInfo, TypeInformation
from eventide.common.types import Row
from eventide.common.watermark_generators import BoundedOutOfOrderness, NoWatermarks
from eventide.common.watermark_strategy import WatermarkSpec, WatermarkStrategy, ingestion_time, spec_of
from eventide.connectors.file_system import BulkFormat, FilePathFilter, FileProcessingMode, FileSource, StreamFormat
from eventide.connectors.file_system.format import TextInputFormat
from eventide.connectors.function_source import FunctionSource, SourceFace
from eventide.connectors.sink import CollectSink
from eventide.connectors.sources import CollectionSource
from eventide.datastream._hints import EnvironmentHints, take_jars
from eventide.datastream._options import apply_options, split_options
from eventide.datastream.checkpoint_config import CheckpointConfig
from eventide.datastream.checkpointing_mode import CheckpointingMode
from eventide.datastream.data_stream.stream import DataStream
from eventide.datastream.time_characteristic import TimeCharacteristic
from eventide.errors import DashboardWarning, ProgramError, check_is, getting
from eventide.plan.compiler import compile_plan
from eventide.plan.description import describe, explain
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
from eventide.plan.job import Host, JobPlan, JobSettings, RuntimeExecutionMode, SavepointRestoreSettings
from eventide.runtime.elements.ownership import own_each

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from pyspark.sql import Column, DataFrame, SparkSession


@says_what_is_absent
class StreamExecutionEnvironment(EnvironmentHints):
    """Builds streams and runs them as one job. Flink: ``StreamExecutionEnvironment``."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._config = ExecutionConfig()
        self._checkpoint_config = CheckpointConfig()
        self._runtime_mode = RuntimeExecutionMode.STREAMING
        self._time_characteristic = TimeCharacteristic.EventTime
        self._available_now = False
        self._max_rows_per_batch: int | None = None
        self._restart_strategy_of_options: RestartStrategyConfiguration = RestartStrategies.no_restart()
        self._savepoint: str | None = None
        self._allow_non_restored_state = False
        self._placed: set[str] = set()
        self._default_savepoint_directory: str | None = None
        self._dashboard_url: str | None = None
        self._watchers: list[_Watcher] = []
        self.next_job = NextJob()

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None, spark: SparkSession | None = None
    ) -> StreamExecutionEnvironment:
        """An environment on Spark.

        Args:
            configuration: Spark settings for a session that is made here, such as ``spark.driver.memory``; other
                settings go to :meth:`configure`.
            spark: the session to use. Without it, the active one is used; without that, a local one is made.

        Raises:
            ProgramError: if ``configuration`` is of another class, such as a session.
        """
        from eventide.spark.host import SparkHost

        needs = "get_execution_environment takes a session as spark=..., and needs a Configuration here"
        check_is(configuration, Configuration | None, needs)
        spark_options, options = split_options(configuration or Configuration())
        return StreamExecutionEnvironment(SparkHost.find(spark, spark_options)).configure(options)

    def configure(self, configuration: Configuration) -> Self:
        """Apply Flink's options: ``parallelism.default``, ``execution.runtime-mode``, and others.

        The guide "From PyFlink" lists the known options. One warning names those without effect; these include Spark's
        options, because the session exists already.

        Raises:
            ProgramError: if a known option has an invalid value.
        """
        apply_options(configuration, self)
        return self

    def get_config(self) -> ExecutionConfig:
        """Settings of the whole job."""
        return self._config

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of the checkpoint."""
        return self._checkpoint_config

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> Self:
        """Accept an interval without effect: every micro-batch is a checkpoint, exactly once.

        The program can choose the directory, with ``get_checkpoint_config().set_checkpoint_storage_dir(...)``, and the
        time between micro-batches, with ``get_config().set_auto_watermark_interval(...)``.
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

        A high number has no cost, since state is not stored by key group. It cannot change while a checkpoint is in
        use.
        """
        self._config.set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups."""
        return self._config.get_max_parallelism()

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Choose between streaming and batch execution.

        BATCH reads bounded input as a whole, without a watermark before its end, so no element is late. Keyed
        operators, and all windows, get their elements in the order of timestamps. Timers fire at the end; one that is
        set by a timer never fires. AUTOMATIC is BATCH if all sources are bounded.
        """
        self._runtime_mode = execution_mode
        return self

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> Self:
        """Choose the kind of time that the program works with; event time by default.

        ``time_window`` and ``time_window_all`` follow processing time with ProcessingTime, and timestamps otherwise.
        With IngestionTime, the elements of every source that is added from now on without a strategy get the time of
        their micro-batch as timestamp, and watermarks follow it. Windows that name their time, such as
        ``TumblingEventTimeWindows``, follow that time; under ProcessingTime, Flink emits no watermarks for event-time
        windows, so choose EventTime if a program has both.

        Raises:
            ProgramError: if it is not a time characteristic.
        """
        check_is(characteristic, TimeCharacteristic, "set_stream_time_characteristic needs a TimeCharacteristic")
        self._time_characteristic = characteristic
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """The kind of time that the program works with."""
        return self._time_characteristic

    def set_available_now(self, available_now: bool = True) -> Self:
        """End the job when it has handled all data that existed at its start, as Spark's ``availableNow``.

        It ends after the micro-batch with the last of that data. Later processing-time timers, and rows that Spark's
        operators in a DataFrame emit after their last input, follow in the first micro-batch of the next run.

        A job with only bounded sources ends by itself.
        """
        self._available_now = available_now
        return self

    def set_max_rows_per_batch(self, max_rows: int | None) -> Self:
        """Limit how many rows each source gives to one micro-batch.

        It applies to sources based on :class:`~eventide.datastream.connectors.Source`; a DataFrame has its own options.

        Raises:
            ProgramError: if it is not a positive number.
        """
        if max_rows is not None and (type(max_rows) is not int or max_rows < 1):
            raise ProgramError(f"the limit of rows per micro-batch must be 1 or more, not {max_rows!r}")
        self._max_rows_per_batch = max_rows
        return self

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> Self:
        """Set whether a failed job restarts by itself, from its checkpoint; by default it does not.

        The reason for each failure is logged, and is in ``client.get_restarts()``. A failure that would repeat each
        time, such as a program that does not fit its checkpoint, ends the job at once. Flink's default, with
        checkpointing, is to restart for ever.

        Raises:
            ProgramError: if it is not a restart strategy.

        >>> from eventide.common import RestartStrategies
        >>> from eventide.testing import local_environment
        >>> env = local_environment().set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10_000))
        >>> env.get_restart_strategy().get_restart_attempts()
        3
        """
        self._config.set_restart_strategy(restart_strategy_configuration)
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The strategy that was set; else the fallback to the options of :meth:`configure`."""
        return self._config.get_restart_strategy()

    def fall_back_on(self, restart_strategy_configuration: RestartStrategyConfiguration) -> None:
        """Set the restart strategy that options describe. Not in PyFlink."""
        self._restart_strategy_of_options = restart_strategy_configuration

    def set_dashboard(self, port: int = 8081, host: str = "127.0.0.1", hosts: Sequence[str] = ()) -> Self:
        """Show the jobs of this environment on a page, and export their metrics to Prometheus at ``/metrics``.

        The page lives as long as the process; environments with one address share it. It needs the extra ``dashboard``.
        Without that, or if the port is taken, a :class:`~eventide.errors.DashboardWarning` says so, and jobs run
        without a page.

        Args:
            port: its port; 0 for any free port, which :meth:`get_dashboard_url` shows.
            host: the address to listen at. The page has no password, and everyone who can reach the address sees it. To
                show it to other machines, put a proxy with a login in front of it.
            hosts: more host names that requests may have, such as the name of a proxy. Numeric addresses,
                ``localhost``, ``host`` and this machine's name are always accepted. Requests for other names are
                refused, so that a foreign page cannot read it through a host name that resolves to this machine.

        >>> from eventide.testing import local_environment
        >>> env = local_environment().set_dashboard(port=0)
        >>> print(env.get_dashboard_url())
        http://127.0.0.1:...
        """
        try:
            from eventide.dashboard.server import Dashboard

            dashboard = Dashboard.at(host, port, hosts)
        except ImportError as error:
            _warn(f"no dashboard: it needs {error.name!r}; install it with: {getting('dashboard')}")
        except (OSError, OverflowError) as error:
            _warn(f"no dashboard: {host}:{port} cannot be used ({error}); choose another with set_dashboard(port=...)")
        else:
            self._dashboard_url = dashboard.url
            self._watchers.append(dashboard)
        return self

    def get_dashboard_url(self) -> str | None:
        """The URL of the page on this environment's jobs; None if there is no page."""
        return self._dashboard_url

    def set_meter_provider(self, meter_provider: MeterProvider | None = None) -> Self:
        """Export the metrics of this environment's jobs to OpenTelemetry, under the names of :meth:`set_dashboard`.

        It needs the extra ``opentelemetry``, and warns without it. The provider decides where metrics go, and how
        often.

        Args:
            meter_provider: the provider; by default, that of the process.
        """
        try:
            from eventide.dashboard.watched import Telemetry

            self._watchers.append(Telemetry.of(meter_provider))
        except ImportError as error:
            _warn(f"no metrics: that needs {error.name!r}; install it with: {getting('opentelemetry')}")
        return self

    def add_python_file(self, file_path: str) -> None:
        """Let functions import a module on all machines, such as one beside the main file of the program.

        Args:
            file_path: a module (``.py``), a package (a folder with an ``__init__.py``), a folder of modules and
                packages, or a zip file or wheel of them.

        Raises:
            ProgramError: if the path is none of these, or the Spark session was not made by eventide. Over Spark
                Connect any session is accepted, and compiled modules are refused when the job starts.
        """
        self._host.add_python_file(file_path)

    def add_jars(self, *jars_path: str) -> None:
        """Ignore jars, given by URLs or paths, whose work eventide does itself, such as Flink's Kafka connector.

        Raises:
            ProgramError: if a jar has other classes, because eventide does not run Java.
        """
        take_jars("add_jars", jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Ignore jars as :meth:`add_jars` does."""
        take_jars("add_classpaths", classpaths)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install packages for functions on all machines, with the dependencies of eventide itself.

        pip installs them into a folder here, for this operating system and version of Python, and Spark copies the
        folder to its executors; no machine is changed otherwise.

        Args:
            requirements_file_path: a file as ``pip install --requirement`` takes it.
            requirements_cache_dir: a folder that ``pip download`` has filled, as the only source of packages.

        Raises:
            ProgramError: if pip cannot install them, or the Spark session was not made by eventide.
        """
        self._host.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack an archive where functions run: models, tables, or other files that they read.

        A function opens a file of the archive as ``target_dir/file``: their working directory is then the folder that
        contains ``target_dir``, as in PyFlink. Without Spark, it is the working directory of the whole program while a
        job of this environment runs: use absolute paths in other threads.

        Args:
            archive_path: a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` file, at any location that Spark reads.
            target_dir: the name of the folder that it is unpacked into; by default the name of the file.

        Raises:
            ProgramError: if ``target_dir`` leads elsewhere, or the host without Spark finds no archive on this machine.
        """
        target = target_dir or os.path.basename(archive_path)
        if os.path.isabs(target) or ".." in target.split("/"):
            raise ProgramError(
                f"add_python_archive({archive_path!r}, {target_dir!r}): the folder must be below the working directory "
                "of functions; name it without a leading / and without .."
            )
        self._host.add_python_archive(archive_path, target)

    def set_python_executable(self, python_exec: str) -> None:
        """Choose the interpreter that runs functions, and that plans sources beside the driver.

        Args:
            python_exec: its path, the same on every machine, or a name that is on the ``PATH`` of Spark's processes
                there. It must have the minor version of the running interpreter.
        """
        self._host.set_python_executable(python_exec)

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Set where savepoints of running jobs are written, each into a directory of its own below this one.

        It is used by :meth:`JobClient.trigger_savepoint` and ``stop_with_savepoint`` without a directory.
        """
        self._default_savepoint_directory = directory
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """The directory that was set, or None."""
        return self._default_savepoint_directory

    def from_savepoint(self, location: str, allow_non_restored_state: bool = False) -> Self:
        """Start the job from a savepoint: its state, and the positions of its sources.

        It has effect while the job has no checkpoint yet. Later, the checkpoint is used, so the call may stay in the
        program; the savepoint must stay in place as long as the checkpoint. Parallelism and the depth of the program
        may differ from those of the saved job; the max parallelism may not. State is found by the ``uid`` of its
        operator, or by the id that follows from the program. New operators, sources and sinks start empty. Not in
        PyFlink, where ``flink run --fromSavepoint`` does this.

        Args:
            location: the directory that ``eventide savepoint`` has written, or its URI.
            allow_non_restored_state: whether the job may drop state of operators, and positions of sources, that the
                program no longer has; otherwise, a job that would drop some does not start.

        Raises:
            ProgramError: if the location is not text.
        """
        if not isinstance(location, str) or not location:
            raise ProgramError(f"from_savepoint needs the directory of a savepoint, not {location!r}")
        self._savepoint = location
        self._allow_non_restored_state = allow_non_restored_state
        return self

    def saved_position(self, source_name: str = "data frame") -> dict[str, Any] | list[Any] | int | None:
        """The position of a DataFrame in the savepoint, for the options of the reader that replaces it.

        Spark itself starts a new query at the position in the options of its readers. So a program gets it here, and
        sets it there; a job with a DataFrame whose position was not asked for is refused. Once the job has its own
        checkpoint, Spark ignores such options, so the call may stay in the program, like :meth:`from_savepoint`.

        Args:
            source_name: the name of the source: ``data frame``, then ``data frame-2`` and so on.

        Returns:
            The offsets in Spark's log, as values of JSON: for Kafka, the offset by topic and partition, as the option
            ``startingOffsets`` takes them; for a data source of Python, the offsets of its reader. A list if the
            DataFrame reads from several places. None if there is no savepoint.

        Raises:
            ProgramError: if the savepoint has no such DataFrame.
            StateError: if there is no savepoint where :meth:`from_savepoint` says.
        """
        if self._savepoint is None:
            return None
        header = self._host.savepoint(self._savepoint).header
        found = {source.name: source.offsets for source in header.sources if source.kind == "DataFrame"}
        if source_name not in found:
            there = ", ".join(map(repr, found)) or "none"
            raise ProgramError(f"the savepoint has no DataFrame {source_name!r}; it has {there}")
        self._placed.add(source_name)
        offsets: list[Any] = found[source_name]
        position: dict[str, Any] | list[Any] | int | None = offsets[0] if len(offsets) == 1 else offsets
        return position

    @overload
    def from_collection(self, collection: Iterable[Any], type_info: RowTypeInfo) -> DataStream[Row]: ...

    @overload
    def from_collection(self, collection: Iterable[T], type_info: TypeInformation | None = None) -> DataStream[T]: ...

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream[Any]:
        """A stream of copies of the elements of a collection, in its order; their type may be declared."""
        source = CollectionSource(own_each([*collection]), type_info)
        return self._of_source(SourceTransformation("collection", source, source.get_produced_type()))

    def from_source(
        self,
        source: Source[T],
        watermark_strategy: WatermarkStrategy[T],
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream[T]:
        """A stream of a source, with a watermark for each of its splits.

        With ``WatermarkStrategy.no_watermarks()`` and no timestamp assigner, the timestamps and watermarks of the
        source itself are used, with the ``with_idleness`` of the strategy. If neither the source nor the strategy gives
        timestamps, there are no watermarks, as in Flink, and a warning says so.

        Raises:
            ProgramError: if the source or strategy is of another type, or your generator needs timestamps and has none.
        """
        check_is(source, Source, "from_source needs a Source of eventide.datastream.connectors")
        strategy = _strategy_of_source(watermark_strategy, source, source_name)
        produced_type = type_info or source.get_produced_type()
        if not strategy.assigns_timestamps and isinstance(strategy.generator, NoWatermarks):
            timeout_ms, alignment = strategy.idle_timeout_ms, strategy.alignment
            return self._of_source(SourceTransformation(source_name, source, produced_type, timeout_ms, alignment))
        node = SourceTransformation(source_name, source, produced_type)
        return DataStream(self, node)._assigned(strategy, of_source=True)

    def add_source(
        self,
        source_func: SourceFunction[T],
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream[T]:
        """A stream of the elements of a function, with its timestamps and watermarks, unless a strategy replaces them.

        A ``FlinkKafkaConsumer`` is read as the ``KafkaSource`` that replaces it.

        Raises:
            ProgramError: if it is not a :class:`~eventide.datastream.SourceFunction`.
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
            split_by: the columns that identify the split of a row; each split has its own watermark, and a silent split
                holds the others back. So choose splits that always have rows, such as the partitions of a topic, not
                devices that may be switched off. Without it, the DataFrame is one split.
            splits: the expected splits, as values (or tuples of values) of ``split_by``: they hold the watermark back
                until they have rows. Others join with their first row. Spark casts the values to the types of the
                columns.
            order_by: the columns that give the order of arrival within a split. Without it, rows have the order of
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
        return DataStream(self, node)._assigned(replace(strategy, timestamp_column=None), of_source=True)

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        r"""Read the lines of the files of a folder, or of one file, once, as a stream of ``str``.

        Files in subfolders, and files that are still being copied (``_COPYING_`` in their name), are ignored, as in
        Flink. Lines end with ``\n``, and one ``\r`` before it is dropped; a ``\r`` elsewhere is a part of its line.
        Flink: ``readTextFile``.

        Args:
            file_path: A local path, or a URI that Arrow knows.
            charset_name: The encoding of the lines.

        Raises:
            ProgramError: There is nothing at the path, or Python does not know the encoding.

        >>> import tempfile, pathlib
        >>> from eventide.testing import local_environment
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "words.txt"
        >>> _ = file.write_text("to be\nor not")
        >>> list(local_environment().read_text_file(str(file)).execute_and_collect())
        ['to be', 'or not']
        """
        whole = FilePathFilter.create_default_filter()
        return self.read_file(TextInputFormat(charset_name), file_path, path_filter=whole)

    def read_file(
        self,
        file_format: StreamFormat[T] | BulkFormat[T],
        file_path: str,
        watch_type: FileProcessingMode = FileProcessingMode.PROCESS_ONCE,
        interval: int = -1,
        path_filter: FilePathFilter | None = None,
        type_info: TypeInformation | None = None,
    ) -> DataStream[T]:
        """Read the files of a folder, or one file, in a format. Flink: ``readFile``, which PyFlink does not have.

        Files in subfolders are ignored, as in Flink. A file must be complete when it appears, and must not change;
        Flink would read a changed file again as a whole. ``FileSource`` has more settings.

        Args:
            file_format: A format of lines or of columns, such as ``StreamFormat.text_line_format()``.
            file_path: A local path, or a URI that Arrow knows.
            watch_type: Whether to end with the present files, or to keep looking for new ones.
            interval: With ``PROCESS_CONTINUOUSLY``, how often to look, in milliseconds; at least 1.
            path_filter: Says which files to ignore, besides those whose name begins with ``.`` or ``_``.
            type_info: The type of the elements; by default, the type of the format.

        Raises:
            ProgramError: An argument is of another kind, the interval is below 1, or there is nothing at the path.
        """
        check_is(watch_type, FileProcessingMode, "read_file needs a FileProcessingMode")
        check_is(path_filter, FilePathFilter | None, "read_file needs a FilePathFilter")
        if isinstance(file_format, BulkFormat):
            builder = FileSource.for_bulk_file_format(file_format, file_path)
        else:
            builder = FileSource.for_record_stream_format(file_format, file_path)
        builder = replace(builder, path_filter=path_filter, nested=False)
        if watch_type is FileProcessingMode.PROCESS_CONTINUOUSLY:
            if type(interval) is not int or interval < 1:
                raise ProgramError(f"read_file looks for new files after 1 ms or more, not {interval!r}")
            builder.monitor_continuously(Duration.of_millis(interval))
        return self.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "file source", type_info)

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the job of all sinks and operators, and wait for its end.

        An operator runs even without a sink for its results.

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
        """Start the job of all sinks and operators. Those that are added later belong to the next job.

        Raises:
            ProgramError: if the program has neither.
        """
        return self._started(job_name)

    def get_plan(self, *streams: DataStream) -> JobPlan:
        """The plan of the program: its sources, the stages of its operators, its sinks. Not in PyFlink.

        Args:
            streams: the streams to plan for, as if each were collected; by default, all sinks and operators so far.

        Raises:
            ProgramError: if there is nothing to plan, or the program cannot run as it is written.
        """
        collected = [SinkTransformation("result", s._transformation, CollectSink()) for s in streams]
        return self._plan(collected or self.next_job.nodes())

    def get_execution_plan(self) -> str:
        """The program as JSON, in the form of Flink's plans; `explain` says more.

        Raises:
            ProgramError: if it has no sink and no operator.
        """
        return as_json(self.next_job.nodes(), self.get_parallelism())

    def explain(self, *streams: DataStream) -> None:
        """Print the plan, of streams as in `get_plan`: where functions run, how elements travel, and where state is."""
        print(explain(self.get_plan(*streams)))  # noqa: T201 - its purpose

    def start_collecting(self, job_name: str | None, limit: int | None) -> JobClient:
        """Start the job as :meth:`execute_async`; the program takes up to ``limit`` collected elements, or all."""
        return self._started(job_name, limit)

    def as_configured(self, function: T) -> T:
        """Return a function as configured: one that Python calls with each element, if that was set."""
        return in_python(function) if self.get_config().has_functions_in_python() else function

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
        check_parallelisms(parallelism, max_parallelism)
        unnamed = "" if self._config.has_auto_generated_uids_enabled() else ", ".join(without_uid(ends))
        if unnamed:
            raise ProgramError(f"auto generated uids are disabled; call uid(...) on these, which have none: {unnamed}")
        planned = min(self._planned_parallelism(), max_parallelism)
        plan = compile_plan(ends, planned, max_parallelism, self._runtime_mode)
        plan = plan.with_registered_types(self._config.registered_types)
        plan = plan.with_dead_letter_limits(DeadLetterLimits(*self._config.get_dead_letter_limits()))
        return plan.with_job_parameters(self._config.get_global_job_parameters())

    def _started(self, job_name: str | None, collect_limit: int | None = None) -> JobClient:
        """Start the next job, and show it on the dashboard."""
        plan = self._plan(self.next_job.taken())
        settings = replace(self._settings(job_name), collect_limit=collect_limit)
        client = self._host.run(plan, settings)
        self._show(settings.job_name, client, plan)
        return client

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
            default_savepoint_directory=self._default_savepoint_directory,
        )

    def _strategy_in_force(self) -> RestartStrategyConfiguration:
        """The restart strategy of the jobs that are started from now on."""
        strategy = self._config.get_restart_strategy()
        falls_back = isinstance(strategy, RestartStrategies.FallbackRestartStrategyConfiguration)
        return self._restart_strategy_of_options if falls_back else strategy

    def _beginning(self) -> SavepointRestoreSettings | None:
        """The savepoint that the job begins with, if there is one."""
        if self._savepoint is None:
            return None
        return SavepointRestoreSettings(self._savepoint, self._allow_non_restored_state, frozenset(self._placed))

    def _parallelism_before(self, checkpoint: str | None) -> int | None:
        """The parallelism of its checkpoint, wherever that was made, or of its savepoint; None if it has neither."""
        recorded = None if checkpoint is None else self._host.recorded_parallelism(checkpoint)
        if recorded is None and self._savepoint is not None:
            parallelism: int | None = self._host.savepoint(self._savepoint).header.parallelism
            return parallelism
        return recorded

    def _show(self, name: str, client: JobClient, plan: JobPlan) -> None:
        """Show a job that has started on the dashboard."""
        if not self._watchers:
            return
        try:
            description = describe(plan)
            for watcher in self._watchers:
                watcher.watch(name, client, description)
        except Exception as error:  # the job runs, and the caller wants its client
            with suppress(DashboardWarning):  # also where warnings are errors
                _warn(f"the job {name!r} runs, and is not shown: {type(error).__name__}: {error}")


class _Watcher(Protocol):
    def watch(self, name: str, client: JobClient, description: dict[str, Any]) -> None:
        """Follow a job."""


def _strategy_of_source(given: object, source: Source, source_name: str) -> WatermarkSpec:
    """Return the strategy that a source runs with: the given one, without watermarks if nothing gives timestamps.

    A warning says that such a strategy has no effect, as it has none in Flink.

    Raises:
        ProgramError: The strategy is not a ``WatermarkStrategy``.
    """
    strategy = spec_of(given, f"the source {source_name!r}")
    has_times = strategy.assigns_timestamps or source.gives_timestamps()
    if has_times or not isinstance(strategy.generator, BoundedOutOfOrderness):
        return strategy
    why = "the elements have no timestamps; event time needs with_timestamp_assigner(...)"
    has_no_effect(f"the watermark strategy of {source_name!r}", why)
    return replace(strategy, generator=NoWatermarks())


def _warn(why: str) -> None:
    warnings.warn(why, DashboardWarning, stacklevel=level_of_the_program())


hand_out_names(__name__)
