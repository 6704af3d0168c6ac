"""From a plan to the one DataFrame of frames that carries it out."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pyspark
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.connectors.kafka import KafkaSink
from eventide.errors import ProgramError
from eventide.pickling.pickles import bring
from eventide.plan.job import DataFrameSourceSpec, JobPlan, JobSettings, SinkSpec
from eventide.runtime.chain.chain import end_frames
from eventide.runtime.exchange.partitioners import ColumnsPartitioner
from eventide.runtime.pickles import Modules, classes_of, dumps_program
from eventide.runtime.sources.alignment import SourceAlignment
from eventide.runtime.sources.offsets import restored
from eventide.runtime.sources.task import ChainSpec, SourceSpec
from eventide.runtime.tasks.stage import Stage
from eventide.savepoint import Outline
from eventide.spark.progress import COUNTERS, OBSERVATION
from eventide.spark.query.data_source import CAN_LIMIT, FRAME_SCHEMA, FrameSource, SourceNames, rows_of
from eventide.spark.query.frame_rows import (
    OutputOfSink,
    counted_in,
    frame_batches,
    subtask_ids,
    time_of_batch,
)
from eventide.spark.query.shared_files import Runs
from eventide.spark.query.stage_processor import StageProcessor
from eventide.spark.session.python_files import modules_for_server

Ship = Callable[[Any, str], bytes]
"""Makes bytes of a part of the program, given what a message may call it."""


def frames_of(
    plan: JobPlan,
    settings: JobSettings,
    spark: SparkSession,
    *,
    observation: str | Observation = OBSERVATION,
    savepoint: Outline | None = None,
    runs: Runs | None = None,
    to: OutputOfSink | None = None,
    names: SourceNames | None = None,
) -> DataFrame:
    """The frames that reach the sinks, with counters among them that an observation gathers and sinks pass over.

    Where nothing lies between the sources and the only sink, they may give what it takes in place of frames.

    Args:
        plan: the job.
        settings: how it is to be run.
        spark: the session.
        observation: its name, which must be the only one of its kind in a query, or what gets it.
        savepoint: the savepoint that the job begins with.
        runs: the runs that planned the micro-batches; None if they are not told apart.
        to: the only sink, if it takes something else than frames.
        names: those under which sources are registered; without them, the names are not given to another run.

    Raises:
        ProgramError: if the sources do not fit the mode, or functions cannot be sent to the workers.
    """
    ids = subtask_ids(plan.parallelism)
    ship = shipping(plan, modules_for_server(spark))
    to = None if plan.stages else to
    names = names or SourceNames()
    waiting = [
        (
            plan.first_stage(source),
            _source_frames(source.pruned(), plan, settings, spark, ids, ship, savepoint, to, names),
        )
        for source in plan.sources_by_stage()
    ]
    frames: DataFrame | None = None
    for stage in plan.stages:
        frames = _united(frames, [df for first, df in waiting if first == stage.number])
        if frames is not None:
            frames = _through_stage(frames, stage, ids, ship, savepoint, runs)
    frames = _united(frames, [df for first, df in waiting if first is None])
    if frames is None:
        raise ProgramError("the program has no source")
    return frames.observe(observation, F.collect_list(counted_in(frames)).alias(COUNTERS))


def shipping(plan: JobPlan, modules: Modules) -> Ship:
    """Return the function that pickles parts of a job, with modules and classes; this process knows them from now on.

    Raises:
        ProgramError: if functions cannot be sent to the workers.
    """
    to_kafka = [shipped_of_sink(sink) for sink in plan.sinks if isinstance(sink.sink, KafkaSink)]
    parts = [*map(_shipped_of_source, plan.sources), *map(_shipped_of_stage, plan.stages), *to_kafka]
    classes = classes_of(parts, plan.registered_types)
    bring(classes)  # the driver reads what the job collects
    return partial(dumps_program, classes=classes, start=uuid.uuid4().hex, modules=modules)


def shipped_of_sink(sink: SinkSpec) -> tuple[Any, str]:
    """Return the part of a sink that travels to the workers, with its name for messages."""
    return sink, f"the sink {sink.name!r} or a function of its serializer"


def _united(frames: DataFrame | None, others: list[DataFrame]) -> DataFrame | None:
    for other in others:
        frames = other if frames is None else frames.union(other)
    return frames


def _shipped_of_source(source: SourceSpec | DataFrameSourceSpec) -> tuple[Any, str]:
    """Return the part of a source that travels to the workers, with its name for messages."""
    if isinstance(source, DataFrameSourceSpec):
        chain = ChainSpec(
            source.name,
            source.type_info,
            source.root,
            parallelism=source.parallelism,
            max_parallelism=source.max_parallelism,
            job_parameters=source.job_parameters,
            dead_letter_limits=source.dead_letter_limits,
            search=source.search,
        )
        return chain, f"the functions after {source.name!r}"
    return source, f"the source {source.name!r} or a function after it"


def _shipped_of_stage(stage: Stage) -> tuple[Any, str]:
    """Return the part of a stage that travels to the workers, with its name for messages."""
    return stage, f"an operator ({stage.name}) or a function after it"


def _source_frames(
    source: SourceSpec | DataFrameSourceSpec,
    plan: JobPlan,
    settings: JobSettings,
    spark: SparkSession,
    ids: tuple[int, ...],
    ship: Ship,
    savepoint: Outline | None,
    to: OutputOfSink | None,
    names: SourceNames,
) -> DataFrame:
    if to is not None:  # all that leaves is for the only sink
        source = replace(source, root=source.root.with_partitioner(ColumnsPartitioner(plan.sinks[0].type_info)))
    batch = plan.in_batch
    payload = ship(*_shipped_of_source(source))
    if isinstance(source, DataFrameSourceSpec):
        if not source.reader.rows.isStreaming and not batch:
            raise ProgramError(
                f"the source {source.name!r} is a batch DataFrame, but other sources of the program are streams; read "
                "it as a stream, or set_runtime_mode(RuntimeExecutionMode.BATCH) if all input is bounded"
            )
        shows_time = source.root.shows_time() or bool(source.search.clocks_ms)
        frames: DataFrame = source.reader.frames(payload, ids, to, shows_time=shows_time)
        return frames.union(_end_of_input(source, spark, ids)) if batch and to is None else frames
    if source.alignment is not None and not batch:
        _check_alignment(source.name, source.alignment)
    if settings.max_rows_per_batch is not None and not CAN_LIMIT and not batch:
        warnings.warn(
            f"PySpark {pyspark.__version__} cannot limit the rows of a micro-batch, so {source.name!r} gives all "
            "that it has in one; use PySpark 4.2 or newer",
            stacklevel=2,
        )
    name = names.take()
    saved = None if savepoint is None else savepoint.offsets_of(source.name)
    attributes = {
        "planned": ship(source.planned, f"the source {source.name!r}"),
        "payload": payload,
        "ids": ids,
        "max_rows": settings.max_rows_per_batch,
        # Spark runs no micro-batch without data before one of the same run, however much the clock has gone on.
        "audience": uuid.uuid4().hex[:8] if plan.needs_clock else source.audience,
        "begins": restored(saved or {}),
        "unique_name": name,
        "to": to,
    }
    spark.dataSource.register(type("FrameSource", (FrameSource,), attributes))
    born: DataFrame = (spark.read if batch else spark.readStream).format(name).load()
    return rows_of(born, payload, ids, to) if to is not None and to.is_of_rows else born


def _check_alignment(name: str, alignment: SourceAlignment) -> None:
    """Say where a source cannot wait for others."""
    if alignment.storage is None:
        raise ProgramError(
            f"how far the sources of the watermark group {alignment.group!r} have come is kept below the job's "
            "checkpoint; say where that is with env.get_checkpoint_config().set_checkpoint_storage_dir(...)"
        )
    if not CAN_LIMIT:
        warnings.warn(
            f"PySpark {pyspark.__version__} cannot hold back a source written in Python, so {name!r} does not wait for "
            f"the others of its watermark group {alignment.group!r}; use PySpark 4.2 or newer",
            stacklevel=2,
        )


def _end_of_input(source: DataFrameSourceSpec, spark: SparkSession, ids: tuple[int, ...]) -> DataFrame:
    """A batch DataFrame ends: that is one more signal on each of its edges."""
    signals = [frame for edge in source.root.all_edges() for frame in end_frames(edge)]
    rows = [(f["target"], f["subtask"], f["frame"]) for batch in frame_batches(signals, ids) for f in batch.to_pylist()]
    return spark.createDataFrame(rows, FRAME_SCHEMA)


def _through_stage(
    frames: DataFrame, stage: Stage, ids: tuple[int, ...], ship: Ship, savepoint: Outline | None, runs: Runs | None
) -> DataFrame:
    """With timers, Spark runs micro-batches without data too: only where the stage needs the clock."""
    payload = ship(*_shipped_of_stage(stage))
    clocked = frames.withColumn("clock", time_of_batch())
    begins = None if savepoint is None else (savepoint.location, savepoint.digest)
    return clocked.groupBy("subtask").transformWithState(
        StageProcessor(payload, stage.targets, ids, stage.needs_clock, begins, runs),
        outputStructType=FRAME_SCHEMA,
        outputMode="Append",
        timeMode="ProcessingTime" if stage.needs_clock else "None",
    )
