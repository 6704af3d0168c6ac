"""The twin as a host of programs: runs a job to its end when it is started."""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
import warnings
from functools import cache, partial
from typing import Any, NoReturn

from eventide.common.accepted import level_of_the_program
from eventide.common.job import KEPT, FinishedJob, JobClient, JobExecutionResult, JobID
from eventide.connectors.sink import CollectSink
from eventide.errors import ProgramError, TimersLeftWarning
from eventide.local.archives import Archives
from eventide.local.checkpoint import begun_from, evidence
from eventide.local.file_sink import refuse_used_directories
from eventide.local.runner import BatchResult, LocalCheckpoint, LocalRunner
from eventide.plan.job import JobPlan
from eventide.plan.settings import Host, JobSettings, refuse_savepoint
from eventide.runtime.metrics import warning_of_timers
from eventide.runtime.python_folder import PythonFolder, new_folder
from eventide.savepoint import Savepoint
from eventide.savepoint.fitting import check_fit
from eventide.why import Why, why


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
    """The checkpoint that the run goes on with; None if it begins anew."""
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
        """Let functions, which run in this process, import a module, a package, or what a folder or an archive has.

        Raises:
            ProgramError: if the path is none of these.
        """
        _importable().add(path)
        importlib.invalidate_caches()

    def set_python_requirements(self, requirements: str, cache_dir: str | None) -> None:
        """Install packages for functions, beside those that this process has.

        Raises:
            ProgramError: if they cannot be installed.
        """
        _importable().install(requirements, cache_dir, for_this_process=True)
        importlib.invalidate_caches()

    def add_python_archive(self, archive: str, target_dir: str) -> None:
        """Unpack an archive; while a job of this host runs, the process works in the folder that ``target_dir`` is in.

        The working directory belongs to the whole process: a relative path of another thread leads into that folder
        while the job runs. Jobs of this host may overlap; after the last one, the directory is as it was before.

        Raises:
            ProgramError: if it is no archive on this machine.
        """
        self._archives.unpack(archive, target_dir)

    def default_parallelism(self) -> int:
        """Two, so that what depends on the number of subtasks shows."""
        return 2

    def recorded_parallelism(self, checkpoint_location: str) -> None:
        """None: jobs of this process leave no checkpoint."""

    def savepoint(self, location: str) -> Savepoint:
        return Savepoint(location)

    def run(self, plan: JobPlan, settings: JobSettings) -> JobClient:
        """Run a job to its end: an unbounded source ends with what it has, a function when it returns.

        Raises:
            ProgramError: if a job runs now that works in the folder of another host's archives, and this host has some.
        """
        if plan.in_batch:
            refuse_savepoint(settings, "a batch job reads everything from the beginning")
        refuse_used_directories(plan)
        started = time.monotonic()
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
            with self._archives.working_directory():
                batches.extend(runner.batches())
        collecting = {sink.number for sink in plan.sinks if isinstance(sink.sink, CollectSink)}
        collected = [
            value
            for batch in batches
            for number, rows in batch.elements.items()
            if number in collecting
            for value, _ in rows
        ]
        left = warning_of_timers(settings.job_name, runner.metrics())
        if left is not None:
            warnings.warn(left, TimersLeftWarning, stacklevel=level_of_the_program())
        result = JobExecutionResult(JobID("local"), int((time.monotonic() - started) * 1000), runner.metrics())
        progress = [batch.progress for batch in batches[-KEPT:]]
        explain = None if plan.in_batch else partial(_why, plan, runner.checkpoint)
        return FinishedJob(result, collected, progress, explain)

    def read_data_frame(self, data_frame: Any, strategy: Any, split_by: Any, splits: Any, order_by: Any) -> NoReturn:
        """Refused: there is no Spark here."""
        raise ProgramError("from_data_frame needs Spark; here, use from_collection or a ScriptedSource")

    def to_data_frame(self, plan: JobPlan, settings: JobSettings) -> NoReturn:
        """Refused: there is no Spark here."""
        raise ProgramError("to_data_frame needs Spark; in the local environment use execute_and_collect()")
