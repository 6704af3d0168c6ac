"""How a job is to be run, as far as the program says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from eventide.common.job import JobClient
from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.errors import ProgramError
from eventide.plan.execution_mode import RuntimeExecutionMode
from eventide.plan.job import JobPlan


@dataclass(frozen=True, slots=True)
class SavepointRestoreSettings:
    """A savepoint that a job begins with.

    Attributes:
        savepoint: its location.
        allow_non_restored_state: whether some of it may be left behind.
        placed: the DataFrames whose readers the program has had begin where they stood, by the names of their sources.
    """

    savepoint: str
    allow_non_restored_state: bool = False
    placed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class JobSettings:
    """The settings of one execution.

    ``trigger_interval_ms`` is the time from one micro-batch to the next (0: no pause). ``available_now`` ends the job
    when it has handled what was there at its start; a job with bounded sources alone ends so in any case.
    ``dashboard_url`` is where its progress can be seen. ``restart_strategy`` says what follows when it has failed.
    ``beginning`` is where a job begins that has no checkpoint yet; None if it begins with nothing.
    """

    job_name: str
    runtime_mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING
    checkpoint_location: str | None = None
    trigger_interval_ms: int = 0
    available_now: bool = False
    max_rows_per_batch: int | None = None
    dashboard_url: str | None = None
    restart_strategy: RestartStrategyConfiguration = field(default_factory=RestartStrategies.no_restart)
    beginning: SavepointRestoreSettings | None = None


def refuse_savepoint(settings: JobSettings, why: str) -> None:
    """Refuse a job that cannot begin with a savepoint, if it should.

    Raises:
        ProgramError: saying why it cannot.
    """
    if settings.beginning is not None:
        raise ProgramError(f"the job cannot begin with the savepoint {settings.beginning.savepoint}: {why}")


class Host(ABC):
    """Runner of a plan: Spark, or this process."""

    @abstractmethod
    def default_parallelism(self) -> int:
        """The parallelism of a program that does not set one."""

    @abstractmethod
    def recorded_parallelism(self, checkpoint_location: str) -> int | None:
        """The parallelism of the job that a checkpoint is of; None where there is no checkpoint yet."""

    @abstractmethod
    def savepoint(self, location: str) -> Any:
        """The savepoint at a location, with its ``header``."""

    @abstractmethod
    def run(self, plan: JobPlan, settings: JobSettings) -> JobClient:
        """Start a job."""

    @abstractmethod
    def read_data_frame(self, data_frame: Any, strategy: Any, split_by: Any, splits: Any, order_by: Any) -> Any:
        """Describe a Spark DataFrame as a source, with ``type_info`` and ``known_splits()``."""

    @abstractmethod
    def to_data_frame(self, plan: JobPlan, settings: JobSettings) -> Any:
        """The DataFrame of a plan with one sink."""

    # Preparations for functions on their workers; a host that needs none keeps the empty method.

    def add_python_file(self, path: str) -> None:
        """Let functions import a module, a package, or what a folder or an archive has of them."""

    def set_python_requirements(self, requirements: str, cache_dir: str | None) -> None:
        """Install packages for functions."""

    def add_python_archive(self, archive: str, target_dir: str) -> None:
        """Unpack an archive where functions run."""

    def set_python_executable(self, program: str) -> None:
        """Choose the interpreter that runs functions."""
