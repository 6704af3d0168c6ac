"""Spark as a host of programs: a plan becomes one query, which is started and followed."""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from eventide.common.accepted import has_no_effect, level_of_the_program
from eventide.common.configuration import Configuration
from eventide.common.job import FinishedJob, JobClient, JobExecutionResult, JobID
from eventide.common.restart_strategy import RestartStrategies
from eventide.common.watermark_strategy import WatermarkSpec
from eventide.connectors.kafka.sink_writer import temporary
from eventide.errors import ProgramError, TemporaryCheckpointWarning
from eventide.pickling.pickles import loads
from eventide.plan.job import DataFrameSourceSpec, Host, JobPlan, JobSettings, SinkSpec, refuse_savepoint
from eventide.runtime.invoke import Search
from eventide.runtime.metrics import JobMetrics, gathered
from eventide.savepoint import Outline
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.checkpoint.record import (
    bytes_of_offsets,
    fit_checkpoint,
    has_begun_more,
    last_committed,
    outline,
    recorded_parallelism,
    refuse_mixed_logs,
    restore_sources,
    savepoint_of,
)
from eventide.spark.checkpoint.savepoint import take_savepoint
from eventide.spark.checkpoint.state_reader import clocks_of_state, evidence
from eventide.spark.checkpoint.strategies import Changes, ask_for, values_in_force, waiting_changes
from eventide.spark.checkpoint.unfinished import Searched, note_end, searched
from eventide.spark.connect import ResultConsumer, ResultSpool, check_server, over_connect, refuse_over_connect, there
from eventide.spark.failures import Restarts, in_our_words, is_of_an_ended_process
from eventide.spark.job import QueryRun, Savepoints, StreamingJob, TriggerClock
from eventide.spark.progress import COUNTERS, ProgressView, contents_of, have_ended
from eventide.spark.query.compiler import frames_of, shipped_of_sink, shipping
from eventide.spark.query.data_frame import DataFrameReader
from eventide.spark.query.data_source import SourceNames
from eventide.spark.query.frame_rows import RowsOfSink, typed_rows
from eventide.spark.query.shared_files import Runs, begun
from eventide.spark.query.worker import FaultLog, archives_are_here
from eventide.spark.session.locations import delete_temporary, leave, made_temporary, resolved, take
from eventide.spark.session.make import (
    ROCKSDB,
    SHUFFLE_PARTITIONS,
    STATE_STORE,
    cores,
    find_session,
    settings_for_start,
    shuffle_partitions,
)
from eventide.spark.session.python_files import PythonFiles, modules_for_server, ship, uri_of
from eventide.spark.sinks.kafka import SinkRun
from eventide.spark.sinks.program_sinks import Collected, DriverSinks, ProgramSinks, ResultHandover
from eventide.spark.sinks.routing import (
    Delivery,
    directories,
    files_of_tasks,
    output_of,
    refuse_used_directories,
    write_batch,
    writer,
)
from eventide.why import Why, why

_ONE_MICRO_BATCH = "1000000 hours"
"""The trigger of a query that is stopped after its first micro-batch: the next one is further away than its end."""
_TICK_MS = 200  # the interval at which Flink asks for watermarks, if no other is set


class SparkHost(Host):
    """Runs jobs in a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @staticmethod
    def find(spark: SparkSession | None, configuration: Configuration | None) -> SparkHost:
        """A host on the given session, the active one, or a new local one."""
        return SparkHost(find_session(spark, configuration))

    def default_parallelism(self) -> int:
        return cores(self.spark)

    def add_python_file(self, path: str) -> None:
        PythonFiles.of(self.spark).add(path)

    def set_python_requirements(self, requirements: str, cache_dir: str | None) -> None:
        refuse_over_connect("set_python_requirements")
        PythonFiles.of(self.spark).install(requirements, cache_dir)

    def add_python_archive(self, archive: str, target_dir: str) -> None:
        refuse_over_connect("add_python_archive")
        self.spark.sparkContext.addArchive(f"{uri_of(archive)}#{target_dir}")
        archives_are_here()

    def set_python_executable(self, program: str) -> None:
        refuse_over_connect("set_python_executable")
        self.spark.sparkContext.pythonExec = program

    def read_data_frame(
        self, data_frame: Any, strategy: WatermarkSpec, split_by: Any, splits: Any, order_by: Any
    ) -> DataFrameReader:
        return DataFrameReader.of(data_frame, strategy.timestamp_column, split_by, splits, order_by)

    def recorded_parallelism(self, checkpoint_location: str) -> int | None:
        with in_our_words():
            return recorded_parallelism(self.spark, resolved(self.spark, checkpoint_location))

    def savepoint(self, location: str) -> Outline:
        with in_our_words():
            return outline(self.spark, location)

    def run(self, plan: JobPlan, settings: JobSettings) -> JobClient:
        """Start a job: a streaming query, or a batch job where all input is bounded and the mode says so.

        Raises:
            ProgramError: if something cannot be run as it is written.
            StateError: if the program does not fit its checkpoint.
        """
        ship(self.spark)
        with in_our_words():
            return self._run_batch(plan, settings) if plan.in_batch else self._run_stream(plan, settings)

    def _run_stream(self, plan: JobPlan, settings: JobSettings) -> JobClient:
        if over_connect():
            check_server(self.spark)
        collected = Collected()
        chosen = settings.checkpoint_location
        location = made_temporary(self.spark) if chosen is None else resolved(self.spark, chosen)
        take(location, settings.job_name)
        at_end = partial(_leave, self.spark, location, settings)
        hand_over = ResultHandover(collected.put)
        start = partial(self._start, plan, settings, location, hand_over, collected)
        try:
            if settings.checkpoint_location is None:
                _tell_of_temporary_checkpoint(self.spark, location, settings)
            run = start()
        except BaseException:
            at_end(True)
            raise
        restarts = Restarts(settings.job_name, settings.restart_strategy)
        view = ProgressView(settings.job_name, settings.dashboard_url)
        explain, save = partial(_why, self.spark, location), partial(_save, self.spark, location)
        savepoints = Savepoints(str(run.query.id), save, settings.default_savepoint_directory)
        ask, waiting = partial(_ask, self.spark, location), partial(_waiting, self.spark, location)
        changes = Changes(ask, waiting, looks=not over_connect())
        return StreamingJob(run, start, restarts, collected, view, at_end, explain, savepoints, changes)

    def _start(
        self,
        plan: JobPlan,
        settings: JobSettings,
        location: str,
        hand_over: ResultHandover,
        collected: Collected,
        *,
        is_finishing: bool = False,
    ) -> QueryRun:
        """Start a job from where its checkpoint stands; of the run before, it knows only what was handed over.

        A run that ``is_finishing`` finishes the begun micro-batch of the run before, and begins none.
        """
        run = uuid.uuid4().hex
        of_program = ProgramSinks(plan.sinks, hand_over)
        is_elsewhere = over_connect()
        to_program = ResultSpool(location, run, of_program.specs.values()) if is_elsewhere else DriverSinks(of_program)
        sinks, names = SinkRun(), SourceNames()

        def close() -> None:
            names.release()
            sinks.close()

        try:
            refuse_mixed_logs(self.spark, location)
            savepoint = savepoint_of(self.spark, location, plan, settings)
            values = partial(values_in_force, location, plan.strategies, takes=not is_finishing)
            in_force = there(self.spark, partial(values, keeps=False))
            program, plan = plan, plan.with_strategies(in_force).with_storage(location)
            if plan.stages and last_committed(self.spark, location) >= 0:
                plan = plan.with_clocks(clocks_of_state(self.spark, location))
            plan = plan.with_search(_sought(self.spark, location))
            told_apart = None if settings.available_now else run
            begins = partial(begun, location, told_apart)
            runs = there(self.spark, partial(begins, keeps=False), [Runs]) if plan.has_idleness else None
            owner = Ownership(location, run)
            files = files_of_tasks(self.spark, plan.sinks)
            to = output_of(plan.sinks, files)
            frames = frames_of(plan, settings, self.spark, savepoint=savepoint, runs=runs, to=to, names=names)
            delivery = Delivery(plan.sinks, to_program, _sinks_of(plan, self.spark), sinks, files, owner)
            began = None if savepoint is None else savepoint.location
            checkpoint, repeated, counted, known_as = fit_checkpoint(
                self.spark, location, plan, settings.job_name, began
            )
            delivery.begin(self.spark, known_as, counted, repeated)
            if settings.checkpoint_location is None:
                sinks.starts(self.spark, temporary(checkpoint), repeated=repeated)
            else:
                sinks.starts(self.spark, checkpoint, location, repeated, savepoint)
            if there(self.spark, values) != in_force:  # a change has come meanwhile
                close()
                return self._start(program, settings, location, hand_over, collected, is_finishing=is_finishing)
            if plan.has_idleness:
                there(self.spark, begins, [Runs])
            there(self.spark, owner.claim, [Ownership])
            if savepoint is not None:
                restore_sources(self.spark, savepoint, plan, location)
            output = writer(frames, delivery).queryName(f"{settings.job_name} {run[:8]}")
            clock: TriggerClock | None = None
            rows = _reads_data_frames(plan)
            # State of a DataFrame's own may need micro-batches without data, and Spark has them for all or for none.
            runs_without_data = plan.needs_clock if rows else plan.runs_without_data
            if is_finishing:
                output = output.trigger(processingTime=_ONE_MICRO_BATCH)
            elif _takes_what_is_there(plan, settings):
                output = output.trigger(availableNow=True)
            else:
                # Without a pause, micro-batches for the clock alone would keep a core busy.
                interval_ms = settings.trigger_interval_ms or (_TICK_MS if runs_without_data else 0)
                output = output.trigger(processingTime=f"{interval_ms} milliseconds")
                clock = TriggerClock() if interval_ms and not is_elsewhere else None
            committed = partial(last_committed, self.spark, location)
            taking = (
                ResultConsumer(self.spark, location, run, of_program, collected, committed) if is_elsewhere else None
            )
            only_with_data = plan.needs_clock and (_takes_what_is_there(plan, settings) or not runs_without_data)
            partitions = shuffle_partitions(self.spark, plan.parallelism)
            offsets_bytes = bytes_of_offsets(self.spark, location, plan)
            with settings_for_start(
                self.spark, partitions, location, rows=rows, only_with_data=only_with_data, offsets_bytes=offsets_bytes
            ):
                query = output.option("checkpointLocation", location).start()
            if taking is not None:
                _begin_to_take(taking, query)
        except BaseException:
            close()
            raise
        check = None if is_elsewhere else owner.check
        failed = partial(_note, self.spark, location)
        if is_finishing:
            return QueryRun(query, close, lambda _: True, taking, check=check, failed=failed, sink_ms=sinks.took_ms)
        again = partial(self._start, program, settings, location, hand_over, collected, is_finishing=True)
        goes_on = plan.needs_clock and settings.checkpoint_location is not None

        def finish(is_saved: bool) -> QueryRun | None:
            return again() if (is_saved or goes_on) and has_begun_more(self.spark, location) else None

        is_over = _end_that_spark_does_not_see(plan, settings)
        return QueryRun(query, close, is_over, taking, finish, check, failed, sinks.took_ms, clock)

    def _run_batch(self, plan: JobPlan, settings: JobSettings) -> JobClient:
        refuse_savepoint(settings, "a batch job reads everything from the beginning")
        if settings.restart_strategy != RestartStrategies.no_restart():
            why = "a batch job has no checkpoint that it could go on from; start it again yourself if it fails"
            has_no_effect("the restart strategy", why)
        if over_connect():
            check_server(self.spark)
        refuse_used_directories(self.spark, directories(self.spark, plan.sinks))
        collected: list[Any] = []
        started = time.monotonic()
        with settings_for_start(self.spark, plan.parallelism, rows=_reads_data_frames(plan)):
            observation = Observation()
            names, files = SourceNames(), files_of_tasks(self.spark, plan.sinks)
            to = output_of(plan.sinks, files)
            frames = frames_of(plan, settings, self.spark, observation=observation, to=to, names=names)
            job = SinkRun()
            job.starts(self.spark, temporary(uuid.uuid4().hex))
            try:
                to_program = DriverSinks(ProgramSinks(plan.sinks, ResultHandover(collected.append)))
                write_batch(frames, Delivery(plan.sinks, to_program, _sinks_of(plan, self.spark), job, files))
            finally:
                names.release()
                job.close()
        took_ms = int((time.monotonic() - started) * 1000)
        metrics = JobMetrics()
        said = contents_of(observation.get[COUNTERS])
        began_ms = time.time_ns() // 1_000_000 - took_ms
        progress = gathered(0, said, metrics, began_ms=began_ms, took_ms=took_ms, sink_ms=job.took_ms(0))
        return FinishedJob(
            JobExecutionResult(JobID(uuid.uuid4().hex), took_ms, metrics.values()), collected, [progress]
        )

    def to_data_frame(self, plan: JobPlan, settings: JobSettings) -> DataFrame:
        """The DataFrame of a plan with one sink; the caller starts the query."""
        refuse_savepoint(settings, "the query of to_data_frame() is started by you, with a checkpoint of its own")
        ship(self.spark)
        wanted = {SHUFFLE_PARTITIONS: str(plan.parallelism), STATE_STORE: ROCKSDB}
        wrong = {name: value for name, value in wanted.items() if self.spark.conf.get(name, None) != value}
        if wrong and plan.stages:
            settings_text = "; ".join(f"spark.conf.set({name!r}, {value!r})" for name, value in wrong.items())
            warnings.warn(
                f"before you start a query on this DataFrame, call: {settings_text}. Stateful operators need the state "
                "store of RocksDB, and run best with as many shuffle partitions as subtasks",
                stacklevel=level_of_the_program(),
            )
        observation = f"eventide {uuid.uuid4().hex}"  # several such DataFrames may meet in one query
        location = settings.checkpoint_location
        stored = plan.with_storage(None if location is None else resolved(self.spark, location))
        frames = frames_of(stored, settings, self.spark, observation=observation, to=RowsOfSink.of(plan.sinks[0]))
        return typed_rows(frames, plan.sinks[0])


def _sought(spark: SparkSession, location: str) -> Search:
    """The search for an element that ends the process, in a micro-batch that has ended one."""
    try:
        found = there(spark, partial(searched, location), [Searched])
    except (ProgramError, OSError):  # a store that Arrow does not reach; Spark does
        found = None
    if found is None:
        return Search()
    return Search(frozenset(found.clocks_ms), FaultLog, frozenset(found.found), frozenset(found.set_aside))


def _note(spark: SparkSession, location: str, failure: BaseException) -> None:
    """Let the next run search, if a process has ended; where that cannot be written, it does not."""
    if is_of_an_ended_process(failure):
        with suppress(Exception):
            there(spark, partial(note_end, location, str(failure)))


def _save(spark: SparkSession, location: str, target: str) -> None:
    try:
        with in_our_words():
            take_savepoint(spark, location, target, running=True)
    except Exception as error:
        error.add_note(f"If the job was stopped for it, `eventide savepoint {location} TARGET` writes one elsewhere.")
        raise


def _ask(spark: SparkSession, location: str, name: str, *values: object) -> str:
    return there(spark, partial(ask_for, location, name, *values))


def _waiting(spark: SparkSession, location: str) -> list[str]:
    return there(spark, partial(waiting_changes, location))


def _why(spark: SparkSession, location: str, operator: str | None, at: int | str | None, key: str | None) -> Why:
    return why(evidence(spark, location, time.time_ns() // 1_000_000, loads), operator, at, key)


def _leave(spark: SparkSession, location: str, settings: JobSettings, may_go: bool) -> None:
    """Let others use a checkpoint; delete it if it was temporary, unless a savepoint of it is still wanted."""
    leave(location)
    if settings.checkpoint_location is None and may_go:
        delete_temporary(spark, location)


def _tell_of_temporary_checkpoint(spark: SparkSession, location: str, settings: JobSettings) -> None:
    on_cluster = not str(spark.conf.get("spark.master", "local")).startswith("local")
    for_executors = ", and no other machine of the cluster finds the job's state there" if on_cluster else ""
    warnings.warn(
        f"the job {settings.job_name!r} keeps its checkpoint in the temporary directory {location}, which is "
        f"deleted at its end, so it cannot go on when its program is started again{for_executors}; call "
        "env.get_checkpoint_config().set_checkpoint_storage_dir(...)",
        TemporaryCheckpointWarning,
        stacklevel=level_of_the_program(),
    )


def _sinks_of(plan: JobPlan, spark: SparkSession) -> Callable[[SinkSpec], bytes]:
    """Return the function that pickles a sink of a job."""
    return lambda sink: shipping(plan, modules_for_server(spark))(*shipped_of_sink(sink))


def _takes_what_is_there(plan: JobPlan, settings: JobSettings) -> bool:
    return settings.available_now or (plan.bounded and not _reads_data_frames(plan))


def _end_that_spark_does_not_see(
    plan: JobPlan, settings: JobSettings
) -> Callable[[StreamingQueryProgress], bool] | None:
    """A check whether a query is over because its sources ended, where Spark would continue; None if not needed."""
    return have_ended if plan.may_end and not _takes_what_is_there(plan, settings) else None


def _reads_data_frames(plan: JobPlan) -> bool:
    return any(isinstance(source, DataFrameSourceSpec) for source in plan.sources)


def _begin_to_take(taking: ResultConsumer, query: StreamingQuery) -> None:
    """Take what a query has for the program; a query for which that fails does not go on alone."""
    try:
        taking.start()
    except BaseException:
        query.stop()
        raise
