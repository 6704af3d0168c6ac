"""Whether a job is all right: the alert rules of ``examples/monitoring/alerts.yml``, for the page.

A test evaluates both on the same series, those of ``alerts_test.yml``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from eventide.common.words import length

_MINUTE = 60_000
_HOUR, _DAY = 60 * _MINUTE, 24 * 60 * _MINUTE

MetricValues: TypeAlias = Mapping[str, Mapping[str, float]]
"""The samples of each metric, by its name, and by the labels that distinguish them, joined with "/"."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A symptom that a job has.

    Attributes:
        alert: the name of the alert rule.
        section: the section of the runbook.
        text: a sentence about the job, without a full stop.
    """

    alert: str
    section: str
    text: str


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """The samples of a job at a time by the clock, and earlier ones."""

    ms: int
    values: MetricValues
    quarter_ago: MetricValues
    day_ago: MetricValues | None

    def of(self, metric: str) -> Mapping[str, float]:
        """The samples of a metric; empty if there are none."""
        return self.values.get(metric, {})

    def sum(self, metric: str) -> float:
        """The sum of the samples of a metric."""
        return sum(self.of(metric).values())

    def increases(self, counter: str) -> dict[str, float]:
        """The increase of each sample of a counter within 15 minutes; a sample that was not there counts from 0."""
        before = self.quarter_ago.get(counter, {})
        return {label: value - before.get(label, 0) for label, value in self.of(counter).items()}


class Past:
    """Samples of the last minutes or days, at intervals.

    >>> past = Past(span_ms=100, step_ms=40)
    >>> for ms in range(0, 200, 10):
    ...     past.add(ms, {"at": {"": ms}})
    >>> past.oldest()
    (80, {'at': {'': 80}})
    """

    def __init__(self, span_ms: int, step_ms: int) -> None:
        self._span_ms = span_ms
        self._step_ms = step_ms
        self._kept: deque[tuple[int, MetricValues]] = deque()

    def add(self, ms: int, values: MetricValues) -> None:
        """Take the samples at a time, unless those taken last are as new; forget what is too old."""
        if not self._kept or ms - self._kept[-1][0] >= self._step_ms:
            self._kept.append((ms, values))
        while len(self._kept) > 1 and self._kept[1][0] <= ms - self._span_ms:
            self._kept.popleft()

    def oldest(self) -> tuple[int, MetricValues]:
        """The last samples that are at least as old as the span, with their time; the first, if none is."""
        return self._kept[0]


class Verdict:
    """Remembers since when a job has each symptom."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._quarter = Past(15 * _MINUTE, _MINUTE // 4)
        self._day = Past(_DAY, _HOUR // 4)

    def look(self, ms: int, values: MetricValues) -> list[Symptom]:
        """Return the symptoms at a time, given the samples, most urgent first: those that have lasted long enough."""
        self._quarter.add(ms, {name: values.get(name, {}) for name in _COUNTED})
        self._day.add(ms, {_STATE: values.get(_STATE, {})})
        day_ms, day_ago = self._day.oldest()
        moment = JobSnapshot(ms, values, self._quarter.oldest()[1], day_ago if ms - day_ms >= _DAY else None)
        symptoms = []
        for rule in RULES:
            text = rule.find(moment)
            if text is None:
                self._since.pop(rule.alert, None)
            elif ms - self._since.setdefault(rule.alert, ms) >= rule.for_ms:
                symptoms.append(Symptom(rule.alert, rule.section, text))
        return symptoms


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: it finds a symptom in a moment, and says what it found; the symptom must last for a time."""

    alert: str
    section: str
    find: Callable[[JobSnapshot], str | None]
    for_ms: int = 0


_COUNTED = ("numRestarts", "numRecordsIn", "numLateRecordsDropped", "numDeadLetters")
_STATE = "stateSize"
_TIME = "lastMicroBatchTime"
_SINK_TIME = "lastSinkCommitTime"


def _has_ended(now: JobSnapshot) -> str | None:
    return "It does not run" if now.of("isRunning").get("") == 0 else None


def _repeats(now: JobSnapshot) -> str | None:
    failures = now.sum("currentMicroBatchFailures")
    return f"The same micro-batch has failed {failures:.0f} times in a row" if failures > 2 else None


def _starts_again(now: JobSnapshot) -> str | None:
    restarts = sum(now.increases("numRestarts").values())
    return f"It has restarted {restarts:.0f} times within 15 minutes" if restarts > 2 else None


def _stands_still(now: JobSnapshot) -> str | None:
    ms = now.sum("timeWithoutProgress")
    return f"It has finished no micro-batch for {length(int(ms))}, and has work to do" if ms > 10 * _MINUTE else None


def _is_late(now: JobSnapshot) -> str | None:
    ended = now.of("lastMicroBatchEnded").get("", 0)
    if not now.sum("lastMicroBatchRows") or now.ms - ended >= 15 * _MINUTE:
        return None
    ms, operator = max(((ms, name) for name, ms in now.of("watermarkLag").items()), default=(0, ""))
    return f"The watermark of {operator} is {length(int(ms))} late" if ms > 15 * _MINUTE else None


def _has_silent_splits(now: JobSnapshot) -> str | None:
    number, source = max(((number, name) for name, number in now.of("numSilentSplits").items()), default=(0, ""))
    if not number:
        return None
    return f"Splits of {source} that have never had a watermark: {number:.0f}. No window fires"


def _drops_elements(now: JobSnapshot) -> str | None:
    came = now.increases("numRecordsIn")
    late = now.increases("numLateRecordsDropped")
    found = [name for name, number in late.items() if number > 0.01 * came.get(name, 0)]
    return f"More than 1% of the elements for {found[0]} are late" if found else None


def _has_dead_letters(now: JobSnapshot) -> str | None:
    letters = now.increases("numDeadLetters")
    number, operator = max(((number, name) for name, number in letters.items()), default=(0, ""))
    return f"Dead letters of {operator} within 15 minutes: {number:.0f}" if number > 0 else None


def _state_grows(now: JobSnapshot) -> str | None:
    size = now.sum(_STATE)
    before = None if now.day_ago is None else sum(now.day_ago.get(_STATE, {}).values())
    return "Its state has doubled within a day" if before is not None and size > max(1e9, 2 * before) else None


def _is_slow(now: JobSnapshot) -> str | None:
    committing = now.of(_TIME).get("committing", 0)
    return "The checkpoint's logs take most of its time" if committing > 0.5 * now.sum(_TIME) else None


def _sink_is_slow(now: JobSnapshot) -> str | None:
    ms, sink = max(((ms, name) for name, ms in now.of(_SINK_TIME).items()), default=(0, ""))
    is_slow = ms > _MINUTE / 6 and now.sum(_SINK_TIME) > 0.5 * now.sum(_TIME)
    return f"The sink {sink} takes {length(int(ms))}, and sinks take most of its time" if is_slow else None


RULES = (
    Rule("EventideHasEnded", "it-has-ended-or-starts-again-and-again", _has_ended),
    Rule("EventideRepeatsMicroBatch", "a-micro-batch-fails-again-and-again", _repeats),
    Rule("EventideStartsAgain", "it-has-ended-or-starts-again-and-again", _starts_again),
    Rule("EventideStandsStill", "it-does-not-go-on", _stands_still),
    Rule("EventideIsLate", "it-is-late", _is_late, for_ms=10 * _MINUTE),
    Rule("EventideSplitIsSilent", "windows-do-not-fire", _has_silent_splits, for_ms=15 * _MINUTE),
    Rule("EventideDropsElements", "too-many-are-late", _drops_elements, for_ms=15 * _MINUTE),
    Rule("EventideHasDeadLetters", "a-bad-element", _has_dead_letters),
    Rule("EventideStateGrows", "state-grows", _state_grows, for_ms=_HOUR),
    Rule("EventideSinkIsSlow", "a-sink-is-slow", _sink_is_slow, for_ms=30 * _MINUTE),
    Rule("EventideIsSlow", "a-sink-is-slow", _is_slow, for_ms=30 * _MINUTE),
)
"""The most urgent first."""
