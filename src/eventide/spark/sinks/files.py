"""A directory of files as a sink: they are written out of sight, and appear whole, under a name of their own."""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql import types as spark

from eventide.connectors.file_system.part_writer import ParquetFiles, TaskParts
from eventide.connectors.file_system.sink import NO_LEFTOVERS, Leftovers, PartFiles, new_stage
from eventide.connectors.sink import FormatSink
from eventide.errors import ProgramError, StateError
from eventide.plan.job import SinkSpec
from eventide.runtime.exchange.frames import METRICS, Frame, Signal
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.connect import there
from eventide.spark.failures import ONE_RUN_ONLY
from eventide.spark.query.frame_rows import COUNTED, as_rows, elements_of, schema_of, typed_rows
from eventide.spark.query.worker import settled
from eventide.spark.session.locations import resolved

SPARKS_FILES = ("avro", "csv", "json", "orc", "parquet", "text")
"""The formats that are files in a directory, and nothing else."""

_TASK = "__eventide_task"
_FILE = "file"
_PARQUET = "spark.sql.parquet"
_ENCRYPTING = ("parquet.crypto.factory.class", "spark.hadoop.parquet.crypto.factory.class")
"""The settings of a session by which Spark encrypts Parquet, and Arrow would not."""
_WHERE_NOBODY_LOOKS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
"""Hadoop need not mark the hidden directory as complete, nor have files appear there all at once."""
_LOOKS_AFTER_S = (0.0, 0.2, 0.5, 1.0)
_PUT_BACK = (
    "If an older copy of the checkpoint was put back, first delete this file and those with greater numbers; 'eventide "
    "checkpoint PATH' says how the names begin"
)
_WRITTEN = re.compile(r"(?:.*/)?part-(?P<task>\d+)-.*[-.]c\d+(?P<ending>\..*)?")


@dataclass(frozen=True, slots=True)
class FilesOfSink:
    """The elements of one sink as files that tasks write where they have them: Spark has the names of these alone.

    Attributes:
        number: the target of the sink's frames.
        location: its directory, as any library understands it.
        stage: the name of the hidden directory of this run.
        files: how files are written.
        buckets: the fields whose values name folders.
    """

    is_of_rows: ClassVar[bool] = False
    number: int
    location: str
    stage: str
    files: ParquetFiles
    buckets: tuple[str, ...]

    @staticmethod
    def of(spark: SparkSession, spec: SinkSpec) -> FilesOfSink | None:
        """The files of a sink; None if it has none, or of a format or with options that Spark alone writes."""
        sink = spec.sink
        if not isinstance(sink, FormatSink) or sink.format != "parquet" or "path" not in sink.options:
            return None
        conf = spark.conf
        if conf.get(f"{_PARQUET}.writeLegacyFormat") != "false" or any(conf.get(name, None) for name in _ENCRYPTING):
            return None
        timestamps, codec = conf.get(f"{_PARQUET}.outputTimestampType"), conf.get(f"{_PARQUET}.compression.codec")
        files = ParquetFiles.of(_options(sink), str(timestamps), str(codec))
        if files is None:
            return None
        schema_of(spec)  # refuses elements without columns
        location = resolved(spark, sink.options["path"].rstrip("/"))
        return FilesOfSink(spec.number, location, new_stage(), files, sink.partition_by)

    def schema(self) -> spark.StructType:
        """The columns that Spark has of a written file: its counts, or its name."""
        return spark.StructType([spark.StructField(name, spark.StringType()) for name in (COUNTED, _FILE)])

    def batches(self, frames: Iterable[Frame]) -> Iterator[pa.RecordBatch]:
        """Write the elements of the sink; return the names of the files, and what was counted."""
        counted = []
        with self._parts() as parts:
            for frame in frames:
                if frame.target == METRICS:
                    counted.append(json.dumps(frame.content))
                elif frame.target == self.number and frame.signal is Signal.ELEMENTS:
                    parts.add(as_rows(frame.content.values))
            names = parts.finish()
        yield _reports(counted, names)

    def of_frames(self, frames: DataFrame) -> DataFrame:
        """Write the elements of the sink among frames of any; the names of the files."""

        def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with self._parts() as parts:
                for values in elements_of(batches, self.number):
                    parts.add(as_rows(values))
                names = parts.finish()
            yield _reports([], names)

        return frames.mapInArrow(lambda batches: settled(write(batches)), self.schema())

    def _parts(self) -> closing[TaskParts]:
        return closing(TaskParts(PartFiles.at(self.location), self.stage, self.files, self.buckets))


def _reports(counted: list[str], names: list[str]) -> pa.RecordBatch:
    columns = [[*counted, *(None for _ in names)], [*(None for _ in counted), *names]]
    return pa.record_batch([pa.array(column, pa.string()) for column in columns], names=[COUNTED, _FILE])


def _options(sink: FormatSink) -> dict[str, str]:
    return {name: value for name, value in sink.options.items() if name != "path"}


class FileDirectory(ABC):
    """Directory of one sink of a job: each micro-batch as files of its own, ``part-<micro-batch>-<number>``.

    They are written into a hidden directory; how they appear is said by `PartFiles`.

    Args:
        path: the directory, as Spark takes it.
        stage: the name of the hidden directory.
    """

    def __init__(self, path: str, stage: str) -> None:
        self._path = path.rstrip("/")
        self._stage = stage
        self._parts: PartFiles | None = None
        """The files there, from the first micro-batch on: to find out where they are is a query of Spark's."""
        self._has_committed = False
        self.owner: Ownership | None = None
        """Told by a streaming job, whose next run may begin while this one is at work."""
        self.job: str | None = None
        """Told by a streaming job: its name, which it keeps on a checkpoint of another parallelism."""
        self.timed: Callable[[int], AbstractContextManager[None]] = _untimed
        """Measures the commit of a micro-batch; told by the delivery of a job."""
        self.counted = 0
        """How many micro-batches were written here before the first one of the checkpoint."""
        self.leftovers = NO_LEFTOVERS
        """Leftovers of earlier runs; this run deletes them in its first micro-batch."""

    def begin(self, spark: SparkSession, job: str | None, counted: int, begun: int | None) -> None:
        """Look at what earlier runs have left, before this run plans a micro-batch.

        A younger run begins later, so its files are not among these, however long this run stalls before it deletes.

        Args:
            spark: the session.
            job: the name of a streaming job, which no other has.
            counted: how many micro-batches were written here before the first one of the checkpoint.
            begun: the micro-batch that an earlier run began and did not finish; None if there is none.

        Raises:
            ProgramError: if Arrow, which moves the files, does not reach where they are.
        """
        self.job, self.counted = job, counted
        look = partial(_leftovers, self._path, resolved(spark, self._path), None if begun is None else counted + begun)
        self.leftovers = there(spark, look, [Leftovers])

    def rows(self, frames: DataFrame, sink: SinkSpec) -> DataFrame:
        """The elements of the sink among frames of any, as they are written."""
        return typed_rows(frames, sink)

    @abstractmethod
    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write a micro-batch: a file for each of Spark's tasks that has rows; one without rows leaves nothing.

        Raises:
            ProgramError: if Arrow, which moves the files, does not reach where they are.
            StateError: if another run of the job has taken away what this one has written.
        """

    def _there(self, spark: SparkSession) -> PartFiles:
        if self._parts is None:
            self._parts = _parts_at(self._path, resolved(spark, self._path))
        return self._parts

    def _commit(self, parts: PartFiles, batch_id: int, kept: Mapping[str, str]) -> int:
        """Make the files of successful attempts visible; return their number.

        Raises:
            StateError: if the directory is another job's, or another run has taken over.
        """
        with self.timed(batch_id):
            return self._committed(parts, batch_id, kept)

    def _committed(self, parts: PartFiles, batch_id: int, kept: Mapping[str, str]) -> int:
        number, leftovers = self.counted + batch_id, self.leftovers
        if self.job is not None:
            parts.claim(self.job)
        if self.owner is not None:
            if not self._has_committed:  # an older run may have written until it saw that it is not the owner
                leftovers = replace(leftovers, names=frozenset(parts.names_of(number)))
            self.owner.check()  # none of these names is of a younger run: one writes after it has begun
        try:
            count = parts.commit(number, self._stage, kept, leftovers)
        except FileNotFoundError as error:
            raise self._another_run(f": {error}") from error
        except FileExistsError as error:
            raise self._another_run(f": {error}", f". {_PUT_BACK}") from error
        self._has_committed, self.leftovers = True, NO_LEFTOVERS
        return count

    def _another_run(self, saying: str = "", advice: str = "") -> StateError:
        return StateError(f"another run of this job writes to {self._path}{saying}; {ONE_RUN_ONLY}{advice}")


class DirectoryOfTasks(FileDirectory):
    """A directory whose files the tasks of the query write."""

    def __init__(self, files: FilesOfSink) -> None:
        super().__init__(files.location, files.stage)
        self._files = files

    def rows(self, frames: DataFrame, sink: SinkSpec) -> DataFrame:
        """The reports of tasks that have written the elements of the sink: of sources, or of others that get frames."""
        return frames if _FILE in frames.columns else self._files.of_frames(frames)

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write a micro-batch, whose rows are reports of tasks."""
        parts = self._there(rows.sparkSession)
        names = [row[_FILE] for row in rows.select(_FILE).collect() if row[_FILE] is not None]
        if names or self.leftovers:
            in_order = sorted(names, key=lambda name: name.rpartition("/")[0])
            self._commit(parts, batch_id, dict.fromkeys(in_order, self._files.files.ending))


class DirectoryOfSpark(FileDirectory):
    """A directory whose files Spark's writer writes.

    Args:
        path: the directory, as Spark takes it.
        file_format: one of `SPARKS_FILES`.
        options: those of Spark's writer.
        buckets: the fields whose values name subdirectories.
    """

    def __init__(self, path: str, file_format: str, options: dict[str, str], buckets: tuple[str, ...] = ()) -> None:
        super().__init__(path, new_stage())
        self._format = file_format
        self._options = options
        self._buckets = buckets
        self._is_quiet = False
        self._before: frozenset[str] = frozenset()
        """The files that the last micro-batch had in the hidden directory."""

    @staticmethod
    def of(sink: FormatSink) -> DirectoryOfSpark:
        """The directory of a sink."""
        return DirectoryOfSpark(sink.options["path"], sink.format, _options(sink), sink.partition_by)

    def write(self, rows: DataFrame, batch_id: int) -> None:
        if self._is_quiet:
            self._write_if_any(rows, batch_id)
        else:
            self._is_quiet = self._write(rows, batch_id) == 0

    def _write_if_any(self, rows: DataFrame, batch_id: int) -> None:
        """Write a micro-batch that follows one without rows: most micro-batches of windows have none.

        Spark's writer makes directories and an empty file in any case, which takes longer than to look first, and on an
        object store far longer.
        """
        rows.persist()
        try:
            self._is_quiet = rows.count() == 0
            if not self._is_quiet:
                self._write(rows, batch_id)
        finally:
            rows.unpersist()

    def _write(self, rows: DataFrame, batch_id: int) -> int:
        """Write a micro-batch, and return the number of its files."""
        filled = self._write_out_of_sight(rows)
        parts = self._there(rows.sparkSession)
        written = self._written(parts, filled)
        # Spark writes a file of the first task in any case.
        kept = {name: match["ending"] or "" for name, match in written.items() if int(match["task"]) in filled}
        count = self._commit(parts, batch_id, kept)
        self._before = frozenset(written)
        return count

    def _written(self, parts: PartFiles, filled: set[int]) -> dict[str, re.Match[str]]:
        """The files in the hidden directory; a store whose listing lags has those of the micro-batch before, or none.

        Raises:
            StateError: if there is none of a task that has written one.
        """
        for pause_s in _LOOKS_AFTER_S:
            time.sleep(pause_s)
            names = (name for name in parts.names(self._stage) if name not in self._before)
            written = {name: match for name in names if (match := _WRITTEN.fullmatch(name))}
            if filled <= {int(match["task"]) for match in written.values()}:
                return written
        raise self._another_run()

    def _write_out_of_sight(self, rows: DataFrame) -> set[int]:
        """Write all rows in one Spark job; return the numbers of the tasks that had any."""
        observation = Observation()
        numbered = rows.withColumn(_TASK, F.spark_partition_id())
        observed = numbered.observe(observation, F.collect_set(_TASK).alias("tasks")).drop(_TASK)
        options = _WHERE_NOBODY_LOOKS | self._options
        writer = observed.write.format(self._format).options(**options).partitionBy(*self._buckets).mode("overwrite")
        writer.save(f"{self._path}/{self._stage}")
        return set(observation.get["tasks"])


def _untimed(batch_id: int) -> AbstractContextManager[None]:
    return nullcontext()


def _leftovers(path: str, location: str, begun: int | None) -> Leftovers:
    return _parts_at(path, location).leftovers(begun)


def _parts_at(path: str, location: str) -> PartFiles:
    """The files of a directory, given as Spark takes it and as any library understands it.

    Raises:
        ProgramError: if Arrow cannot open it.
    """
    try:
        return PartFiles.at(location)
    except ProgramError as error:
        raise ProgramError(
            f"a file sink writes to {path}, and Arrow has to move its files when they are complete: {error}. Write "
            "with sink_to(function) there, which gets a DataFrame and the number of its micro-batch"
        ) from error
