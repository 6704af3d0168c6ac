"""The settings of a job that PyFlink programs reach through ``env.get_config()``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Self

from eventide._absent import hand_out_names
from eventide.common.accepted import accept, gives, sets, setting, switch
from eventide.common.execution_mode import ExecutionMode
from eventide.common.input_dependency_constraint import InputDependencyConstraint
from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.errors import ProgramError, check_is

__all__ = ["ExecutionConfig"]

MAX_PARALLELISM = 32_768

_PICKLED = "elements that have no declared type are pickled, and Python needs no serializers"
_BY_SPARK = "Spark stops its tasks by itself"
_COPIED = "each branch of a program has its own copy of an element where that could be seen"


class ExecutionConfig:
    """Settings of the whole job; some of PyFlink's settings are accepted without effect.

    >>> ExecutionConfig().set_auto_watermark_interval(500).get_auto_watermark_interval()
    500
    """

    PARALLELISM_DEFAULT: ClassVar[int] = -1
    """The parallelism of the host: on Spark, the number of cores."""
    PARALLELISM_UNKNOWN: ClassVar[int] = -2
    """The parallelism of PyFlink's name, without a meaning here."""

    def __init__(self) -> None:
        self._parallelism: int | None = None
        self._max_parallelism = MAX_PARALLELISM
        self._auto_watermark_interval_ms = 0
        self._auto_generated_uids = True
        self._functions_in_python = False
        self._dead_letter_limits: tuple[int | None, int | None] = (None, None)
        self._job_parameters: dict[str, str] = {}
        self._registered_types: list[Callable[..., object]] = []
        self._restart_strategy: RestartStrategyConfiguration = RestartStrategies.fall_back_restart()

    def __eq__(self, other: object) -> bool:
        """Whether the settings are equal, as PyFlink compares them."""
        return isinstance(other, ExecutionConfig) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._parallelism, self._max_parallelism, self._auto_watermark_interval_ms))

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks of each keyed operator; ``PARALLELISM_DEFAULT`` unsets it.

        Raises:
            ProgramError: if it is not a whole number from 1 to 32,768.
        """
        self._parallelism = None if parallelism == self.PARALLELISM_DEFAULT else checked_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """The parallelism that was set, or ``PARALLELISM_DEFAULT``, whose number the environment knows."""
        return self._parallelism or self.PARALLELISM_DEFAULT

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups, which is the upper limit of the parallelism; 32,768 by default.

        A high number has no cost, since state is not stored by key group. It cannot change while a checkpoint is in
        use.

        Raises:
            ProgramError: if it is not a whole number from 1 to 32,768.
        """
        self._max_parallelism = checked_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups."""
        return self._max_parallelism

    def set_functions_in_python(self, in_python: bool = True) -> Self:
        """Call functions that are added from now on with each element, never on columns.

        Results are the same; it shows whether a difference in speed comes from running on columns. Not in PyFlink.
        """
        self._functions_in_python = in_python
        return self

    def has_functions_in_python(self) -> bool:
        """Whether functions are called with each element."""
        return self._functions_in_python

    def set_dead_letter_limits(self, letters: int | None = None, stop_above: int | None = None) -> Self:
        """Limit the dead letters of each operator, in each of its tasks and each micro-batch. Not in PyFlink.

        By default, there is no limit: each element may become a letter.

        Args:
            letters: How many are emitted. Others are counted, as ``numDeadLetters`` and ``numDeadLettersLeftOut``.
            stop_above: The number above which the job stops, with a `DataError` that has the last letter. The
                micro-batch is not committed, so it is repeated when the job is restarted.

        Raises:
            ProgramError: One of them is not a whole number, 0 or more.

        >>> ExecutionConfig().set_dead_letter_limits(letters=100, stop_above=10_000).get_dead_letter_limits()
        (100, 10000)
        """
        for limit in (letters, stop_above):
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
                raise ProgramError(f"a limit of dead letters must be a number, 0 or more, or None, not {limit!r}")
        self._dead_letter_limits = letters, stop_above
        return self

    def get_dead_letter_limits(self) -> tuple[int | None, int | None]:
        """The two limits of dead letters."""
        return self._dead_letter_limits

    def set_auto_watermark_interval(self, interval: int) -> Self:
        """Set the interval of periodic watermarks, in milliseconds.

        They are emitted once per micro-batch, so this is the trigger interval of the query. With 0, the default, a
        micro-batch starts as soon as there is data and the one before is done; jobs that need the clock, and so have
        micro-batches without data, start one every 200 ms.

        Raises:
            ProgramError: if the interval is not a number of milliseconds, 0 or more.
        """
        if not isinstance(interval, int) or isinstance(interval, bool) or interval < 0:
            raise ProgramError(f"the auto watermark interval must be 0 or more milliseconds, not {interval!r}")
        self._auto_watermark_interval_ms = interval
        return self

    def get_auto_watermark_interval(self) -> int:
        """The interval in milliseconds."""
        return self._auto_watermark_interval_ms

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> Self:
        """Set whether a failed job restarts by itself, as the environment's method of this name does.

        Raises:
            ProgramError: if it is not a restart strategy.
        """
        needs = "set_restart_strategy needs a strategy of RestartStrategies"
        check_is(restart_strategy_configuration, RestartStrategyConfiguration, needs)
        self._restart_strategy = restart_strategy_configuration
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The strategy that was set; else the fallback to the options."""
        return self._restart_strategy

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, object]) -> Self:
        """Set the parameters that functions of the job read with ``get_job_parameter`` of their ``RuntimeContext``.

        Values that are not text are converted with ``str``. Earlier parameters are replaced.

        Raises:
            ProgramError: if it is not a dict, or a name in it is not text.

        >>> ExecutionConfig().set_global_job_parameters({"limit": 5}).get_global_job_parameters()
        {'limit': '5'}
        """
        parameters = global_job_parameters_dict
        if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
            raise ProgramError(f"the job parameters must be a dict whose keys are text, not {parameters!r}")
        self._job_parameters = {name: str(value) for name, value in parameters.items()}
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        """The job parameters, as text."""
        return dict(self._job_parameters)

    def enable_auto_generated_uids(self) -> Self:
        """Give operators without a uid an id that follows from the program: the default."""
        self._auto_generated_uids = True
        return self

    def disable_auto_generated_uids(self) -> Self:
        """Require a uid for every operator that keeps state."""
        self._auto_generated_uids = False
        return self

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators without a uid have an id that follows from the program."""
        return self._auto_generated_uids

    set_latency_tracking_interval, get_latency_tracking_interval = setting(
        "latency_tracking_interval", "interval", 0, "the progress of a job has the time of its batches"
    )
    set_task_cancellation_interval, get_task_cancellation_interval = setting(
        "task_cancellation_interval", "interval", 30_000, _BY_SPARK
    )
    set_task_cancellation_timeout, get_task_cancellation_timeout = setting(
        "task_cancellation_timeout", "timeout", 180_000, _BY_SPARK
    )
    set_use_snapshot_compression, is_use_snapshot_compression = setting(
        "use_snapshot_compression", "use_snapshot_compression", False, "state is compressed in any case"
    )
    set_execution_mode, get_execution_mode = setting(
        "execution_mode", "execution_mode", ExecutionMode.PIPELINED, "env.set_runtime_mode(...) says how a job runs"
    )
    set_default_input_dependency_constraint, get_default_input_dependency_constraint = setting(
        "default_input_dependency_constraint",
        "input_dependency_constraint",
        InputDependencyConstraint.ANY,
        "Spark schedules its tasks by itself",
    )
    disable_auto_type_registration = sets("disable_auto_type_registration", _PICKLED)
    is_auto_type_registration_disabled = gives("disable_auto_type_registration", False)
    enable_closure_cleaner, disable_closure_cleaner, is_closure_cleaner_enabled = switch(
        "closure_cleaner", True, "it is about functions of Java"
    )
    enable_force_kryo, disable_force_kryo, is_force_kryo_enabled = switch("force_kryo", False, _PICKLED)
    enable_force_avro, disable_force_avro, is_force_avro_enabled = switch("force_avro", False, _PICKLED)
    disable_generic_types, enable_generic_types, has_generic_types_disabled = switch(
        "generic_types_disabled", False, _PICKLED
    )
    enable_object_reuse, disable_object_reuse, is_object_reuse_enabled = switch("object_reuse", False, _COPIED)

    def register_type(self, kind: Callable[..., object]) -> Self:
        """Register a class of objects in elements or state that the program's own functions do not name.

        Only objects of classes that the program knows are loaded from a checkpoint; the guide on operations lists these
        classes. Flink, in Java: ``registerPojoType`` and its like.

        Args:
            kind: a class; or a function that makes objects when they are unpickled, as ``__reduce__`` says.

        Raises:
            ProgramError: if it is neither.

        >>> import fractions
        >>> ExecutionConfig().register_type(fractions.Fraction).registered_types
        (<class 'fractions.Fraction'>,)
        """
        if not callable(kind) or not hasattr(kind, "__qualname__"):
            raise ProgramError(f"register_type needs a class, or a function that makes objects, not {kind!r}")
        self._registered_types.append(kind)
        return self

    @property
    def registered_types(self) -> tuple[Callable[..., object], ...]:
        """The types that :meth:`register_type` was given."""
        return tuple(self._registered_types)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Empty, because there is no Kryo."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Empty, because there is neither Kryo nor a Java class."""
        return []

    get_registered_pojo_types = get_registered_kryo_types
    get_registered_types_with_kryo_serializer_classes = get_default_kryo_serializer_classes

    register_pojo_type = sets("register_pojo_type", _PICKLED, "type_class_name")
    register_kryo_type = sets("register_kryo_type", _PICKLED, "type_class_name")

    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> Self:
        """Accept the names of two Java classes without effect: there is no Kryo."""
        return accept(self, "add_default_kryo_serializer", (type_class_name, serializer_class_name), _PICKLED)

    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> Self:
        """Accept the names of two Java classes without effect: there is no Kryo."""
        return accept(self, "register_type_with_kryo_serializer", (type_class_name, serializer_class_name), _PICKLED)


def checked_parallelism(parallelism: int) -> int:
    """Return a parallelism if it is valid; raise a ProgramError otherwise."""
    if not isinstance(parallelism, int) or isinstance(parallelism, bool) or not 1 <= parallelism <= MAX_PARALLELISM:
        raise ProgramError(f"a parallelism must be a whole number from 1 to {MAX_PARALLELISM}, not {parallelism!r}")
    return parallelism


def check_parallelisms(parallelism: int | None, max_parallelism: int | None) -> None:
    """Check a parallelism and a max parallelism, each of which may be None.

    Raises:
        ProgramError: if one is out of range, or the parallelism is above the max parallelism.
    """
    given = [checked_parallelism(one) for one in (parallelism, max_parallelism) if one is not None]
    if given != sorted(given):
        raise ProgramError(
            f"the parallelism {parallelism} is above the max parallelism {max_parallelism}, which is the number of key "
            f"groups; set a parallelism of {max_parallelism} or less, or a max parallelism of {parallelism} or more"
        )


hand_out_names(__name__)
