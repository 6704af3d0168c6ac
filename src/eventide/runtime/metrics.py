"""Counts of a job, by operator: eventide's own counters with Flink's names, the metrics of functions, and progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from sys import intern
from typing import Any, TypeAlias

from eventide.api.functions.output_tag import DeadLetterLimits
from eventide.common.job import BatchProgress
from eventide.errors import DataError
from eventide.metrics import MetricGroup
from eventide.metrics.metricbase import Reading, merged, value_of
from eventide.runtime.compact import as_compact_text, from_compact_text
from eventide.runtime.invoke import TaskSearch, calling
from eventide.runtime.observation.event_time_log import Lateness

RECORDS_IN = "numRecordsIn"
RECORDS_OUT = "numRecordsOut"
LATE_DROPPED = "numLateRecordsDropped"
LATE_TO_SIDE_OUTPUT = "numLateRecordsToSideOutput"
WITHOUT_WINDOW = "numRecordsWithoutWindow"
WITHOUT_TIMESTAMP = "numRecordsWithoutTimestamp"
DEAD_LETTERS = "numDeadLetters"
DEAD_LETTERS_LEFT_OUT = "numDeadLettersLeftOut"
BATCHES_IN_PYTHON = "numBatchesInPython"
PARTS_LOST = "numPartsLost"
TIMERS_LEFT = "numTimersNotFired"
ALIGNMENT_DRIFT = "watermarkAlignmentDrift"
SPLITS_HELD = "numSplitsHeld"
HELD_BY = "heldBy"

OPEN_WINDOWS = "numOpenWindows"
OPEN_SESSIONS = "numOpenSessions"
KEYS = "numKeys"
TIMERS = "numTimers"
ELEMENTS = "numElements"

OWN = frozenset(value for name, value in globals().items() if name.isupper())
"""The names that functions cannot have for theirs."""

_FEW_SPLITS = 100
"""The watermarks of more splits than these are told in compressed form: Spark keeps what tasks said many times."""

OperatorCounters: TypeAlias = dict[str, dict[str, int]]


def warning_of_timers(job_name: str, counters: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The warning at the end of a job that leaves timers of processing time; None if it leaves none."""
    left = {operator: c[TIMERS_LEFT] for operator, c in counters.items() if c.get(TIMERS_LEFT)}
    if not left:
        return None
    named = ", ".join(f"{operator!r} ({number})" for operator, number in left.items())
    return (
        f"the input of the job {job_name!r} ended before the time of {sum(left.values())} timer(s) of processing time "
        f"came, so what waited for them never comes out, as in Flink: {named}. Use windows of event time, which close "
        "when the input ends; or set_runtime_mode(RuntimeExecutionMode.BATCH), in which these timers fire at the end"
    )


class Metrics:
    """Counters of one task during one micro-batch. A ``search`` for an element that ends the process is told of calls.

    >>> metrics = Metrics()
    >>> metrics.count("window", LATE_DROPPED)
    >>> metrics.counters()
    {'window': {'numLateRecordsDropped': 1}}
    """

    def __init__(
        self, clock_ms: int = 0, limits: DeadLetterLimits | None = None, search: TaskSearch | None = None
    ) -> None:
        self._counters: Counter[tuple[str, str]] = Counter()
        self._clock_ms = clock_ms
        self._limits = limits or DeadLetterLimits()
        self._search = search
        self._last_letters: dict[str, Any] = {}
        self.lateness = Lateness()
        """How late the late elements were."""

    def count(self, operator: str, counter: str, by: int = 1) -> None:
        """Add to a counter of an operator."""
        self._counters[operator, counter] += by

    def count_in_python(self, operator: str, reason: str) -> None:
        """Count a batch of columns that an operator hands to its function in Python, and the reason."""
        self.count(operator, BATCHES_IN_PYTHON)
        self.count(operator, f"{BATCHES_IN_PYTHON}: {reason}")

    def count_dead_letters(self, operator: str, letters: Sequence[Any]) -> int:
        """Count dead letters of an operator; return how many of them, the first ones, are emitted."""
        before = self._counters[operator, DEAD_LETTERS]
        self.count(operator, DEAD_LETTERS, len(letters))
        given, stop_above = self._limits
        if stop_above is not None and letters:
            self._last_letters[operator] = letters[-1]
        allowed = len(letters) if given is None else max(0, min(len(letters), given - before))
        if allowed < len(letters):
            self.count(operator, DEAD_LETTERS_LEFT_OUT, len(letters) - allowed)
        return allowed

    def watched(
        self, operator: str, during: str, call: Callable[..., Any], *, element: int = 0, may_leave_out: bool
    ) -> Callable[..., Any]:
        """A function of an operator as the search wants it, which may leave elements out and counts them then.

        The ``element`` is the place of the element among the arguments. Without a search, it is the function itself.
        """
        if self._search is None:
            return call
        left_out = partial(self.count, operator, DEAD_LETTERS) if may_leave_out else None
        return self._search.watched(operator, during, call, element, left_out)

    @property
    def is_watched(self) -> bool:
        """Whether there is a search."""
        return self._search is not None

    def rest(self) -> None:
        """Say that the functions that were called have returned."""
        if self._search is not None:
            self._search.rest()

    def check_dead_letters(self) -> None:
        """Stop the job where an operator has more dead letters than it may have.

        Raises:
            DataError: naming the operator, and the last letter.
        """
        for operator, letter in self._last_letters.items():
            number, most = self._counters[operator, DEAD_LETTERS], self._limits.stop_above
            if most is not None and number > most:
                raise DataError(
                    f"{operator!r} had {number} dead letters in one task of a micro-batch, and the job is to stop "
                    f"above {most}; the last one: {letter.error_type}: {letter.error} ({letter.during}). Correct the "
                    "data or the program, or allow more with get_config().set_dead_letter_limits(...)"
                )

    def count_late(self, operator: str, counter: str, times: Any, watermark: int, counts: Any = None) -> None:
        """Add late elements to a counter, by their event times, or sums of several, each with its count."""
        self.count(operator, counter, len(times) if counts is None else int(sum(counts)))
        self.lateness.add(times, watermark, self._clock_ms, counts)

    def counters(self) -> OperatorCounters:
        """Return the counts, by operator and counter."""
        return add_up([{operator: {name: n}} for (operator, name), n in self._counters.items() if n])


def dead_letters_of(counters: OperatorCounters) -> OperatorCounters:
    """The dead letters among what was counted."""
    counted = (DEAD_LETTERS, DEAD_LETTERS_LEFT_OUT)
    return {
        name: {counter: of[counter] for counter in counted if counter in of}
        for name, of in counters.items()
        if DEAD_LETTERS in of
    }


def add_up(parts: list[OperatorCounters]) -> OperatorCounters:
    """Add the counters of several tasks or micro-batches."""
    total: OperatorCounters = {}
    for part in parts:
        for operator, counters in part.items():
            into = total.setdefault(operator, {})
            for name, n in counters.items():
                into[name] = into.get(name, 0) + n
    return total


class FunctionMetrics:
    """The metrics of all functions that work in the tasks of one operator, or of one source, and in its chain.

    It belongs to the description of the tasks, and travels empty. What is taken from it says what is new, so that it
    does not matter in which worker a subtask runs; a micro-batch that is run again counts once, because what the failed
    attempt counted is lost with its worker or with its output.

    >>> metrics = FunctionMetrics()
    >>> metrics.group("parse").counter("bad").inc(2)
    >>> metrics.take(subtask=0, clock_ms=0)
    [{'parse': {'bad': ['count', 2]}}]
    >>> metrics.take(subtask=0, clock_ms=0)
    []
    """

    def __init__(self) -> None:
        self._groups: dict[str, MetricGroup] = {}

    def group(self, operator: str) -> MetricGroup:
        """The group of an operator."""
        if operator not in self._groups:
            self._groups[operator] = MetricGroup(OWN)
        return self._groups[operator]

    def clear(self) -> None:
        """Start from zero again."""
        self._groups.clear()

    def take(self, subtask: int, clock_ms: int) -> list[dict[str, dict[str, Reading]]]:
        """Return the new readings by operator and name; one part, or an empty list where there are no readings.

        Raises:
            UserFunctionError: if a gauge raises.
        """
        new: dict[str, dict[str, Reading]] = {}
        for operator, group in self._groups.items():
            for name, metric in group.metrics().items():
                with calling(operator, during=f"when its metric {name!r} was read"):
                    reading = metric.take(subtask, clock_ms)
                if reading is not None:
                    new.setdefault(operator, {})[name] = reading
        return [new] if new else []

    def __reduce__(self) -> tuple[type[FunctionMetrics], tuple[()]]:
        return FunctionMetrics, ()


class JobMetrics:
    """All that tasks have said of what was counted since the job was started, as one.

    >>> metrics = JobMetrics()
    >>> metrics.add({"operators": {"parse": {RECORDS_IN: 5}}, "functions": [{"parse": {"bad": ["count", 2]}}]})
    >>> metrics.add({"operators": {"parse": {RECORDS_IN: 3}}, "functions": [{"parse": {"bad": ["count", 1]}}]})
    >>> metrics.values()
    {'parse': {'numRecordsIn': 8, 'bad': 3}}
    """

    def __init__(self) -> None:
        self._counters: OperatorCounters = {}
        self._readings: dict[str, dict[str, Reading]] = {}
        self._held: dict[str, dict[int, dict[str, int]]] = {}

    def add(self, content: Mapping[str, Any]) -> None:
        """Add what a task counted in one micro-batch: once, and after the micro-batches before it."""
        self._counters = add_up([self._counters, content["operators"]])
        for operator, subtask, held in content.get("held", ()):
            self._held.setdefault(operator, {})[subtask] = held
        for part in content.get("functions", ()):
            for operator, readings in part.items():
                into = self._readings.setdefault(operator, {})
                for name, reading in readings.items():
                    into[name] = merged(into[name], reading) if name in into else reading

    def values(self) -> dict[str, dict[str, Any]]:
        """Counters, and what the metrics of functions show, by operator and name."""
        shown: dict[str, dict[str, Any]] = {operator: dict(counters) for operator, counters in self._counters.items()}
        for operator, readings in self._readings.items():
            shown.setdefault(operator, {}).update({name: value_of(readings[name]) for name in sorted(readings)})
        return shown

    def held(self) -> OperatorCounters:
        """The amounts that each operator holds."""
        return {operator: held_together(list(of.values())) for operator, of in self._held.items()}


def held_together(subtasks: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The amounts that an operator holds: of open windows, those of the subtask that has most, of all else the sum."""
    names = dict.fromkeys(name for held in subtasks for name in held)
    counts = {name: [held.get(name, 0) for held in subtasks] for name in names}
    return {name: max(of) if name == OPEN_WINDOWS else sum(of) for name, of in counts.items()}


def told_splits(splits: Mapping[str, Mapping[str, int]]) -> Mapping[str, Mapping[str, int]] | str:
    """The watermarks of splits, by source, as a task tells them to :func:`gathered`.

    >>> many = {"orders": {str(partition): 7 for partition in range(1_000)}}
    >>> told_splits({"orders": {"0": 7}}), len(told_splits(many)) < 4_000
    ({'orders': {'0': 7}}, True)
    """
    return as_compact_text(splits) if sum(map(len, splits.values())) > _FEW_SPLITS else splits


def gathered(batch: int, contents: Sequence[Mapping[str, Any]], metrics: JobMetrics, **about: Any) -> BatchProgress:
    """The progress of a job with a micro-batch.

    Args:
        batch: its number.
        contents: the metrics of its tasks, in their order.
        metrics: those of the job so far, which take note of it.
        about: when it began, how long it took and on what, as far as the host knows: attributes of the progress.
    """
    watermarks: dict[str, int] = {}
    splits: dict[str, dict[str, int]] = {}
    for content in contents:
        metrics.add(content)
        watermarks |= content.get("watermarks", {})
        told = content.get("splits", {})
        for source, of_source in (from_compact_text(told) if isinstance(told, str) else told).items():
            # One text for the name of a split in all progress that is kept.
            splits.setdefault(source, {}).update({intern(split): ms for split, ms in of_source.items()})
    return BatchProgress(
        batch,
        metrics.values(),
        watermarks,
        splits,
        counted=add_up([content["operators"] for content in contents]),
        rows_in=sum(content.get("rows", 0) for content in contents),
        held=metrics.held(),
        **about,
    )
