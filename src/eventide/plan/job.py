"""Plan of a job for a host: sources, stages of operators, and sinks; and how the job is to be run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

from eventide.api.functions.output_tag import DeadLetterLimits
from eventide.common.job import JobClient
from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.common.typeinfo import BasicTypeInfo, CompositeTypeInfo, TypeInformation
from eventide.connectors.sink import FormatSink, Sink
from eventide.errors import ProgramError, StateError
from eventide.plan.identity import program_identity
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.invoke import Search
from eventide.runtime.sources.task import SourceSpec
from eventide.runtime.tasks.stage import Stage
from eventide.runtime.tasks.task import TaskSpec

StrategyValues: TypeAlias = Mapping[str, int | None]
"""Values of a watermark strategy, in milliseconds; what they may be is in `eventide.plan.strategies`."""

Strategies: TypeAlias = Mapping[str, StrategyValues]
"""Values of several strategies, by name."""

NO_STRATEGIES: Strategies = {}

_OF_BUCKETS = frozenset({"STRING", "BYTE", "SHORT", "INT", "LONG", "SQL_DATE"})
"""Types of fields whose values may name directories: those of one text each."""


@dataclass(frozen=True, slots=True)
class DataFrameSourceSpec:
    """A source that is a Spark DataFrame; ``reader`` is the Spark host's own description of it.

    ``fields`` are those of its elements that anything uses; None if whole elements are.
    """

    name: str
    reader: Any
    type_info: TypeInformation
    root: ChainNode
    fields: tuple[str, ...] | None = None
    parallelism: int = field(default=1, kw_only=True)
    max_parallelism: int = field(default=1, kw_only=True)
    job_parameters: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    dead_letter_limits: DeadLetterLimits = field(default=DeadLetterLimits(), kw_only=True)
    search: Search = field(default=Search(), kw_only=True)

    def pruned(self) -> DataFrameSourceSpec:
        """Return a copy with a reader that leaves out unused columns."""
        if self.fields is None:
            return self
        reader = self.reader.with_columns(self.fields)
        return replace(self, reader=reader, type_info=reader.type_info)


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """A sink of a program; its frames are addressed to its number."""

    number: int
    name: str
    type_info: TypeInformation
    sink: Sink
    uid: str | None = None

    @property
    def codec(self) -> ElementCodec:
        """How its elements travel."""
        return ElementCodec(self.type_info)

    def check_columns(self) -> None:
        """Check that what is written as columns has some, and those that name directories.

        Raises:
            ProgramError: if the type of the elements is not declared, or has no such fields.
        """
        if self.type_info.is_pickled:
            raise ProgramError(
                f"the elements of {self.name!r} have no declared type, so they have no columns; declare "
                "output_type=Types.… where they are made"
            )
        if isinstance(self.sink, FormatSink) and self.sink.partition_by:
            self._check_buckets(self.sink.partition_by)

    def _check_buckets(self, names: tuple[str, ...]) -> None:
        row = self.type_info if isinstance(self.type_info, CompositeTypeInfo) else None
        fields = {} if row is None else dict(zip(row.field_names, row.field_types, strict=True))
        fit = {name for name, of in fields.items() if isinstance(of, BasicTypeInfo) and of.name in _OF_BUCKETS}
        # Directories "batch=…" are those of a layout that is no longer written.
        if not {*names} <= fit or len({*names}) == len(fields) or names[0] == "batch":
            raise ProgramError(
                f"the directories of {self.name!r} are named by {names!r}, and its elements are {self.type_info!r}; "
                "name them by fields that are text, whole numbers or dates, but not by all fields, nor by 'batch' first"
            )


def drops_rows(sink: Sink) -> bool:
    """Whether a sink takes rows, and drops them all: that with Spark's format ``noop``."""
    return isinstance(sink, FormatSink) and sink.format == "noop"


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The plan of a whole job, for ``StreamExecutionEnvironment.get_plan``.

    The stages form one line: a frame crosses those between where it comes from and where it is meant for, and passes
    through them untouched. So every operator runs exactly once in a micro-batch, however many consumers its
    results have, and the number of shuffles is the depth of the graph.

    With ``in_batch`` it reads all input at once, and no watermark comes before the end. ``strategies`` are the values
    of its watermark strategies, as the program declares them, and ``compiled_again`` compiles it with other ones.
    """

    sources: tuple[SourceSpec | DataFrameSourceSpec, ...]
    stages: tuple[Stage, ...]
    sinks: tuple[SinkSpec, ...]
    parallelism: int
    max_parallelism: int
    registered_types: tuple[Any, ...] = ()
    in_batch: bool = False
    strategies: Strategies = field(default_factory=dict, compare=False)
    compiled_again: Callable[[Strategies], JobPlan] | None = field(default=None, compare=False, repr=False)

    @property
    def operators(self) -> tuple[TaskSpec, ...]:
        """All that runs after a shuffle, stage by stage."""
        return tuple(task for stage in self.stages for task in stage.tasks)

    def sources_by_stage(self) -> list[SourceSpec | DataFrameSourceSpec]:
        """The sources in the order of the first stage that they have something for; those that go to sinks come last.

        In that order they are brought together, so that a host meets them in it.
        """
        return sorted(self.sources, key=lambda source: self.first_stage(source) or len(self.stages) + 1)

    def first_stage(self, source: SourceSpec | DataFrameSourceSpec) -> int | None:
        """The number of the first stage that a source has something for; None if all of it goes to sinks."""
        stage_of = {target: stage.number for stage in self.stages for target in stage.targets}
        return min((stage_of[edge.target] for edge in source.root.all_edges() if edge.target in stage_of), default=None)

    @property
    def bounded(self) -> bool:
        """Whether the input of every source of ours ends."""
        return all(source.source.is_bounded() for source in self.sources if isinstance(source, SourceSpec))

    @property
    def may_end(self) -> bool:
        """Whether the job is over when all parts of its sources have ended."""
        return all(isinstance(source, SourceSpec) and source.source.may_end() for source in self.sources)

    @property
    def needs_clock(self) -> bool:
        """Whether a stage may have to run when only the clock has gone on."""
        return any(stage.needs_clock for stage in self.stages)

    @property
    def runs_without_data(self) -> bool:
        """Whether micro-batches have to come while no data does."""
        return any(stage.runs_without_data for stage in self.stages)

    @property
    def num_splits(self) -> int:
        """How many splits its operators expect, of all sources together; without operators, how many there are."""
        if not self.stages:
            return sum(len(source.source.splits()) for source in self.sources if isinstance(source, SourceSpec))
        channels = {edge.name: edge.channels for task in self.operators for edge in task.edges if edge.is_source}
        return sum(map(len, channels.values()))

    @property
    def has_idleness(self) -> bool:
        """Whether an operator counts how long its channels are silent."""
        return any(edge.idle_after_ms is not None for task in self.operators for edge in task.edges)

    def with_storage(self, location: str | None) -> JobPlan:
        """Return a copy of the job whose sources may keep what they must remember below its checkpoint's location.

        Raises:
            ProgramError: if one of them must, and there is no location.
        """
        standing, reached_in = _below(location, "eventide-alignment"), _below(location, "eventide-reached")
        sources = tuple(
            _with_storage(source, _below(location, f"eventide-sources/{number}"), standing, reached_in)
            if isinstance(source, SourceSpec)
            else source
            for number, source in enumerate(self.sources, start=1)
        )
        stages = tuple(stage.with_storage(standing, reached_in) for stage in self.stages)
        return replace(self, sources=sources, stages=stages)

    def with_strategies(self, changed: Strategies) -> JobPlan:
        """Return a copy of the job whose watermark strategies have other values; settings of hosts come after this."""
        if not changed or self.compiled_again is None:
            return self
        common = self.sources[0]
        again = self.compiled_again(changed).with_registered_types(self.registered_types)
        clocks = [stage.needs_clock for stage in self.stages]  # for other values, which may come while the job runs
        stages = [replace(stage, keeps_clock=clock) for stage, clock in zip(again.stages, clocks, strict=True)]
        again = replace(again, stages=tuple(stages))
        return again.with_job_parameters(common.job_parameters).with_dead_letter_limits(common.dead_letter_limits)

    def with_clocks(self, began: Sequence[bool]) -> JobPlan:
        """Return a copy of the job that continues state whose stages began with the clock, or without it.

        Spark calls a stage when only the clock has gone on, or it does not, and never changes that. If there are fewer
        or more stages now, nothing is known of them.

        Raises:
            StateError: if a stage needs the clock that began without it.
        """
        if len(began) != len(self.stages):
            return self
        for stage, had_clock in zip(self.stages, began, strict=True):
            if stage.needs_clock and not had_clock:
                raise StateError(
                    f"the state of {stage.name} began without timers of processing time, and the program needs them "
                    "there now: for idleness, for windows, timers or triggers of processing time, or for a watermark "
                    "generator of yours. Spark cannot add them: write a savepoint of the checkpoint, and start this "
                    "program from it with a new checkpoint location; or undo the change"
                )
        pairs = zip(self.stages, began, strict=True)
        return replace(self, stages=tuple(replace(stage, keeps_clock=had_clock) for stage, had_clock in pairs))

    def with_job_parameters(self, job_parameters: Mapping[str, str]) -> JobPlan:
        """Return a copy of the job whose functions may ask for these parameters."""
        return self._with(job_parameters=job_parameters)

    def with_dead_letter_limits(self, limits: DeadLetterLimits) -> JobPlan:
        """Return a copy of the job whose operators have these limits of dead letters."""
        return self._with(dead_letter_limits=limits)

    def with_search(self, search: Search) -> JobPlan:
        """Return a copy of the job that looks, in one micro-batch, for an element that ends the process."""
        return self._with(search=search)

    def _with(self, **changed: Any) -> JobPlan:
        """Return a copy with attributes changed that sources and tasks have in common."""
        stages = (replace(stage, tasks=tuple(replace(t, **changed) for t in stage.tasks)) for stage in self.stages)
        return replace(self, sources=tuple(replace(s, **changed) for s in self.sources), stages=tuple(stages))

    def with_registered_types(self, registered_types: Iterable[Any]) -> JobPlan:
        """Return a copy whose data may have objects of these classes too, or of what these functions make."""
        return replace(self, registered_types=tuple(registered_types))

    def identity(self) -> dict[str, Any]:
        """The parts of the program that must stay as they are for a checkpoint to fit, as JSON values."""
        operators = {operator: one for stage in self.stages for operator, one in stage.program().items()}
        return program_identity(self.sources, operators, self.sinks, self.parallelism, self.max_parallelism)


def _with_storage(spec: SourceSpec, storage: str | None, standing: str | None, reached_in: str | None) -> SourceSpec:
    alignment = None if spec.alignment is None else replace(spec.alignment, storage=standing)
    source = spec.source.for_job(spec.name, storage, spec.job_parameters)
    return replace(spec, source=source, alignment=alignment, reached_in=reached_in)


def _below(location: str | None, place: str) -> str | None:
    return None if location is None else f"{location.rstrip('/')}/{place}"


class RuntimeExecutionMode(Enum):
    """STREAMING runs until stopped, BATCH needs bounded sources, AUTOMATIC is BATCH where all sources are bounded."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2


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
    ``beginning`` is where a job begins that has no checkpoint yet; None if it begins with nothing. Its
    savepoints that name no directory are written below ``default_savepoint_directory``. ``collect_limit`` is how many
    elements the program takes from its collecting sink before it cancels the job; None if it takes all.
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
    default_savepoint_directory: str | None = None
    collect_limit: int | None = None


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
        """The parallelism of the job that a checkpoint is of; None if there is no checkpoint yet."""

    @abstractmethod
    def savepoint(self, location: str) -> Any:
        """The savepoint at a location, with its ``header``."""

    @abstractmethod
    def run(self, plan: JobPlan, settings: JobSettings) -> JobClient:
        """Start a job."""

    @abstractmethod
    def read_data_frame(
        self, data_frame: object, strategy: Any, split_by: object, splits: object, order_by: object
    ) -> Any:
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
