"""The local host of programs: runs a job to its end when it is started.

Its savepoints, and evidence on event time, are made of a checkpoint in memory. Archives of a program are unpacked into
a folder of this machine, in which functions work while a job runs.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import shutil
import sys
import tarfile
import tempfile
import threading
import time
import warnings
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from urllib.parse import unquote, urlsplit

from eventide import __version__
from eventide.common.accepted import level_of_the_program
from eventide.common.job import BatchProgress, FinishedJob, JobClient, JobExecutionResult, JobID, LastBatches
from eventide.connectors.sink import CollectSink
from eventide.errors import ProgramError, TimersLeftWarning
from eventide.local.file_sink import refuse_used_directories
from eventide.local.runner import BatchResult, LocalCheckpoint, LocalRunner, OpenedParts
from eventide.pickling.pickles import bring, loads
from eventide.plan.description import describe
from eventide.plan.job import Host, JobPlan, JobSettings, refuse_savepoint
from eventide.runtime.metrics import warning_of_timers
from eventide.runtime.python_folder import PythonFolder, new_folder
from eventide.runtime.sources.offsets import restored
from eventide.runtime.state.operators import HEAD
from eventide.savepoint import Header, SavedSource, Savepoint, StateWriter
from eventide.savepoint.fitting import check_fit
from eventide.why import Evidence, Why, why


@cache
def _importable() -> PythonFolder:
    """The folder of this process, the last on its path: as on Spark, what is installed is found before."""
    folder = new_folder()
    sys.path.append(folder)
    return PythonFolder(folder)


def _why(
    plan: JobPlan, checkpoint: LocalCheckpoint, operator: str | None, at: int | str | None, key: str | None
) -> Why:
    return why(evidence(plan, checkpoint, time.time_ns() // 1_000_000), operator, at, key)


def _begun(plan: JobPlan, settings: JobSettings) -> LocalCheckpoint | None:
    """The checkpoint that the run continues from; None if it starts without state."""
    beginning = settings.beginning
    if beginning is None:
        return None
    savepoint = Savepoint(beginning.savepoint, verify=True)
    check_fit(savepoint, plan.identity(), plan.operators, allow_non_restored=beginning.allow_non_restored_state)
    return begun_from(savepoint, plan)


class LocalHost(Host):
    """Runs jobs in this process. ``last_run`` is what the last job gave, micro-batch by micro-batch."""

    def __init__(self) -> None:
        self.last_run: list[BatchResult] = []
        self._archives = Archives()

    def add_python_file(self, path: str) -> None:
        _importable().add(path)
        importlib.invalidate_caches()

    def set_python_requirements(self, requirements: str, cache_dir: str | None) -> None:
        _importable().install(requirements, cache_dir, for_this_process=True)
        importlib.invalidate_caches()

    def add_python_archive(self, archive: str, target_dir: str) -> None:
        """Unpack an archive; while a job of this host runs, the process works in the folder that ``target_dir`` is in.

        The working directory belongs to the whole process: a relative path of another thread leads into that folder
        while the job runs. Jobs of this host may overlap; after the last one, the directory is as it was before.

        Raises:
            ProgramError: if it is not an archive on this machine.
        """
        self._archives.unpack(archive, target_dir)

    def default_parallelism(self) -> int:
        """Two, so that what depends on the number of subtasks shows."""
        return 2

    def recorded_parallelism(self, checkpoint_location: str) -> None:
        """None, because jobs of this process leave no checkpoint."""

    def savepoint(self, location: str) -> Savepoint:
        return Savepoint(location)

    def run(self, plan: JobPlan, settings: JobSettings) -> JobClient:
        """Run a job to its end: an unbounded source ends with what it has, a function when it returns.

        A job with a ``collect_limit`` is cancelled after the micro-batch that reaches it, if it has not ended before.

        Raises:
            ProgramError: if a job runs now that works in the folder of another host's archives, and this host has some.
        """
        if plan.in_batch:
            refuse_savepoint(settings, "a batch job reads everything from the beginning")
        refuse_used_directories(plan)
        started = time.monotonic()
        collecting = {sink.number for sink in plan.sinks if isinstance(sink.sink, CollectSink)}
        collected: list[Any] = []
        limit = math.inf if settings.collect_limit is None else settings.collect_limit
        batches: list[BatchResult] = []  # each of several overlapping jobs has a list of its own
        self.last_run = batches
        with tempfile.TemporaryDirectory(prefix="eventide-") as storage:
            stored = plan.with_storage(storage)
            runner = LocalRunner(
                stored,
                settings.max_rows_per_batch,
                checkpoint=_begun(plan, settings),
                available_now=settings.available_now,
            )
            with self._archives.working_directory(), closing(runner.batches()) as results:
                for batch in results:
                    batches.append(batch)
                    for number, rows in batch.elements.items():
                        if number in collecting:
                            collected += [value for value, _ in rows]
                    if len(collected) >= limit:
                        break
        left = warning_of_timers(settings.job_name, runner.metrics())
        if left is not None:
            warnings.warn(left, TimersLeftWarning, stacklevel=level_of_the_program())
        result = JobExecutionResult(JobID("local"), int((time.monotonic() - started) * 1000), runner.metrics())
        progress: LastBatches[BatchProgress] = LastBatches()
        for batch in batches:
            progress.append(batch.progress, batch.progress.num_splits)
        explain = None if plan.in_batch else partial(_why, plan, runner.checkpoint)
        return FinishedJob(result, collected, list(progress), explain)

    def read_data_frame(
        self, data_frame: object, strategy: object, split_by: object, splits: object, order_by: object
    ) -> NoReturn:
        raise ProgramError("from_data_frame needs Spark; here, use from_collection or a ScriptedSource")

    def to_data_frame(self, plan: JobPlan, settings: JobSettings) -> NoReturn:
        raise ProgramError("to_data_frame needs Spark; in the local environment use execute_and_collect()")


def take_savepoint(plan: JobPlan, checkpoint: LocalCheckpoint, location: str) -> Savepoint:
    """Write a savepoint of a local run that stands between two micro-batches, to a new directory.

    Raises:
        StateError: if there is something at the location.
    """
    writer = StateWriter(location, plan.max_parallelism)
    writer.begin()
    small = [
        row
        for (stage, subtask), values in sorted(checkpoint.state.items())
        if values
        for row in writer.write(str(stage), subtask, values)
    ]
    sources = tuple(
        SavedSource(source.name, "of eventide", str(source.type_info), checkpoint.offsets.get(source.name, {}))
        for source in plan.sources
    )
    described = json.loads(json.dumps(describe(plan)))
    versions = {"eventide": __version__}
    header = Header("local", checkpoint.batch - 1, plan.parallelism, plan.identity(), described, sources, versions)
    writer.finish(header, small)
    return Savepoint(location)


def begun_from(savepoint: Savepoint, plan: JobPlan) -> LocalCheckpoint:
    """Where a run of a plan begins with a savepoint."""
    bring(OpenedParts([], plan.stages, plan.registered_types).classes)
    checkpoint = LocalCheckpoint()
    checkpoint.offsets = {
        source.name: restored(offsets)
        for source in plan.sources
        if (offsets := savepoint.offsets_of(source.name)) is not None
    }
    checkpoint.restore = savepoint.restore
    return checkpoint


def evidence(plan: JobPlan, checkpoint: LocalCheckpoint, asked_ms: int) -> Evidence:
    """Return the evidence after the last micro-batch; ``asked_ms`` is the time by the clock, in milliseconds."""
    heads = [(subtask, values[HEAD]) for (_, subtask), values in checkpoint.state.items() if HEAD in values]

    def read(operator: str, prefix: str) -> Iterator[tuple[int, str, bytes]]:
        for (_, subtask), values in checkpoint.state.items():
            for name, content in values.items():
                if name.startswith(f"{operator}/{prefix}"):
                    yield subtask, name.removeprefix(f"{operator}/"), content

    description = json.loads(json.dumps(describe(plan)))
    return Evidence.of(description, heads, asked_ms, checkpoint.batch, read=read, loads=loads)


_ENDINGS = (".zip", ".jar", ".whl", ".egg", ".tar", ".tar.gz", ".tgz")


class Archives:
    """The archives of one host, unpacked in a folder that is deleted with the host, at the latest at exit."""

    _lock: ClassVar = threading.Lock()
    _working: ClassVar[list[Path]] = []
    """The folder of each job that runs now in a folder of archives; it is one for all: so is the working directory."""
    _before: ClassVar = ""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def unpack(self, archive: str, target_dir: str) -> None:
        """Unpack an archive into a folder of its own, in place of the one that was there under that name.

        Raises:
            ProgramError: if there is no such archive on this machine.
        """
        source = Path(unquote(urlsplit(archive).path) if archive.startswith("file:") else archive)
        if not source.is_file() or not source.name.endswith(_ENDINGS):
            raise ProgramError(
                f"add_python_archive({archive!r}): there is no archive here that the host without Spark can unpack; "
                f"name a file on this machine that ends with one of {', '.join(_ENDINGS)}"
            )
        folder = self._folder
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="eventide-archives-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        shutil.rmtree(folder / target_dir, ignore_errors=True)
        try:
            if zipfile.is_zipfile(source):
                with zipfile.ZipFile(source) as packed:
                    packed.extractall(folder / target_dir)
            else:
                with tarfile.open(source) as packed_by_tar:
                    packed_by_tar.extractall(folder / target_dir, filter="tar")
        except (tarfile.TarError, zipfile.BadZipFile, OSError) as error:
            raise ProgramError(f"add_python_archive({archive!r}): it cannot be unpacked: {error}") from error
        self._folder = folder

    @contextmanager
    def working_directory(self) -> Iterator[None]:
        """Make this process work in the folder of the archives, as PyFlink does; without archives, leave it.

        The working directory belongs to the whole process: meanwhile, a relative path of every other thread leads
        into the folder, too. Jobs of one host may overlap; the last of them restores the directory. A job of another
        host does not wait, since a function of the first job may have started it.

        Raises:
            ProgramError: if a job works in the folder of another host's archives now.
        """
        if self._folder is None:
            yield
            return
        with Archives._lock:
            if Archives._working and Archives._working[0] != self._folder:
                raise ProgramError(
                    "this job and a job that runs now have archives of two environments (add_python_archive); this "
                    "process has one working directory, so start the job after the other one has ended, or add the "
                    "archives to one environment"
                )
            if not Archives._working:
                before = os.getcwd()
                os.chdir(self._folder)
                Archives._before = before
            Archives._working.append(self._folder)
        try:
            yield
        finally:
            with Archives._lock:
                Archives._working.pop()
                if not Archives._working:
                    os.chdir(Archives._before)
