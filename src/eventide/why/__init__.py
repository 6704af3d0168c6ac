"""Explanations from the state of operators: why a watermark is where it is, and why a window does not fire.

It sees no Spark: hosts bring the evidence, and tests make it with the twin.
"""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from eventide.common.words import in_utc, length, ms_of_text
from eventide.why.advice import Finding, advice_on, notes_on
from eventide.why.evidence import Evidence
from eventide.why.keys import KeyAnswer, KeyStanding, answer_of_key
from eventide.why.report import view
from eventide.why.standing import Hold, OperatorStanding, SplitStanding, WindowStanding, panes_of, standings, windows_at

__all__ = [
    "Finding",
    "Evidence",
    "Hold",
    "KeyAnswer",
    "KeyStanding",
    "SplitStanding",
    "OperatorStanding",
    "Why",
    "WindowStanding",
    "why",
]

_UNWRAPPED = 10_000


@dataclass(frozen=True)
class Why:
    """An answer to why watermarks are where they are; its text is for people.

    Attributes:
        answer: the cause in one sentence, or that nothing is wrong.
        standings: the watermark of each operator, and the splits that hold it.
        windows: the windows that were asked for, each with its operator.
        keys: the state of each operator for the key that was asked for.
        advice: certain faults, the most important ones first.
        notes: facts that are good to know, and not faults.
        asked_ms: when it was asked for, by the clock, in milliseconds.
    """

    answer: str
    standings: tuple[OperatorStanding, ...]
    windows: tuple[tuple[OperatorStanding, WindowStanding], ...]
    keys: tuple[KeyAnswer, ...]
    advice: tuple[Finding, ...]
    notes: tuple[str, ...]
    asked_ms: int

    def __rich__(self) -> Any:
        return view(self.answer, self.standings, self.windows, self.keys, self.advice, self.notes, self.asked_ms)

    def __str__(self) -> str:
        out = io.StringIO()
        Console(file=out, width=_UNWRAPPED, markup=False, highlight=False, emoji=False, no_color=True).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON values; times are milliseconds."""
        return {
            "answer": self.answer,
            "asked_ms": self.asked_ms,
            "advice": [asdict(one) for one in self.advice],
            "notes": list(self.notes),
            "windows": [_window(standing, window) for standing, window in self.windows],
            "keys": [_key(one) for one in self.keys],
            "operators": [_operator(standing) for standing in self.standings],
        }


def why(evidence: Evidence, operator: str | None = None, at: int | str | None = None, key: str | None = None) -> Why:
    """Say why the watermarks of a job are where they are.

    Args:
        evidence: The facts that are known of the job.
        operator: The name, or the id, of the one that is asked about; all of them without.
        at: A time of events, whose windows are looked at: ISO 8601, in UTC without a zone, or milliseconds.
        key: A key as text; of several columns, with commas between: the windows in which it has something, and its
            state.

    Raises:
        ProgramError: ``at`` is not a time.
        StateError: There is no such operator; or something is kept that cannot be shown without the program.
    """
    at_ms = None if at is None else ms_of_text(str(at))
    wanted = None if operator is None else evidence.operator(operator)["name"]
    found = [one for one in standings(evidence) if wanted in {None, one.name}]
    advice = _ranked([advice for standing in found for advice in advice_on(evidence, standing)])
    notes = notes_on(evidence)
    if at_ms is not None:
        notes += [
            f"the windows of {one.name!r} are not fixed windows of event time, so they cannot be looked up by a time"
            for one in found
            if _varies(one)
        ]
    windows = [] if at_ms is None else [(one, window) for one in found for window in windows_at(evidence, one, at_ms)]
    keys = [] if key is None else [answer_of_key(evidence, one, key) for one in found]
    return Why(
        _answer(found, advice),
        tuple(found),
        tuple(windows),
        tuple(keys),
        tuple(advice),
        tuple(notes),
        evidence.asked_ms,
    )


def _varies(standing: OperatorStanding) -> bool:
    return standing.operator["windows"] is not None and panes_of(standing) is None


_ORDER = (
    "unit",
    "generator",
    "no watermarks",
    "silent split",
    "split behind",
    "late elements",
    "time zone",
    "split ahead",
    "nothing new",
    "wide bound",
)


def _ranked(advice: list[Finding]) -> list[Finding]:
    """Order advice by weight; keep advice that several operators share once."""
    once: dict[tuple[str, str], Finding] = {}
    for one in advice:
        once.setdefault((one.kind, one.remedy), one)
    return sorted(once.values(), key=lambda one: _ORDER.index(one.kind))


def _answer(found: list[OperatorStanding], advice: list[Finding]) -> str:
    if advice:
        cause = advice[0].cause
        return f"{cause[0].upper()}{cause[1:]}."
    if not found:
        return "No operator of this job waits for a watermark."
    held = [one for one in found if one.hold is not None]
    if not held:
        return "Nothing holds a watermark back."
    one = held[0]
    split = one.hold.splits[0]  # type: ignore[union-attr]
    return (
        f"Nothing is certain to be wrong: the watermark of {one.name!r} is {in_utc(one.watermark)}, that of "
        f"{split.name!r} of {split.source!r}"
        + ("." if one.newest is None else f", {length(one.newest - one.watermark)} behind the newest element.")
    )


def _operator(standing: OperatorStanding) -> dict[str, Any]:
    hold = standing.hold
    late = standing.late.behind
    return {
        "name": standing.name,
        "id": standing.operator["id"],
        "watermark_ms": standing.watermark,
        "idle": standing.idle,
        "newest_ms": standing.newest,
        "heard_ms": standing.heard,
        "elements": standing.rows,
        "splits_ended": standing.ended,
        "held_by": None
        if hold is None
        else {
            "source": hold.splits[0].source,
            "splits": [split.name for split in hold.splits],
            "through": list(hold.through),
            "since_ms": hold.since,
            "without_ms": hold.without,
        },
        "splits": [_split(split) for split in standing.splits],
        "dead_letters": dict(standing.dead_letters),
        "late": None
        if not standing.late
        else {
            "elements": late.total,
            "behind_ms": {"half": late.within(0.5), "99%": late.within(0.01), "most": late.longest_ms},
            "steps": [[until, count] for until, count in late.steps()],
            "by_split": [
                {"split": one.split, "elements": one.elements, "is_exact": one.is_exact, "most_behind_ms": one.worst}
                for one in standing.late_from
            ],
            "last": [one._asdict() for one in standing.late.last],
        },
    }


def _split(split: SplitStanding) -> dict[str, Any]:
    record = split.record
    behind = None if record is None or not record.behind.total else record.behind
    return {
        "source": split.source,
        "name": split.name,
        "watermark_ms": split.watermark,
        "status": str(split.status),
        "newest_ms": split.newest,
        "heard_ms": split.heard,
        "elements": None if record is None else record.rows,
        "behind_watermark_ms": None if record is None else record.worst,
        "out_of_order_ms": None
        if behind is None
        else {"half": behind.within(0.5), "99%": behind.within(0.01), "most": behind.longest_ms},
    }


def _key(answer: KeyAnswer) -> dict[str, Any]:
    return {
        "operator": answer.standing.name,
        "key": answer.key,
        "windows": [
            {**_window(answer.standing, one.window), "holds": one.elements, "kept": one.kept or None}
            for one in answer.windows
        ],
        "kept": [{"what": what, "value": text} for what, text in answer.kept],
    }


def _window(standing: OperatorStanding, window: WindowStanding) -> dict[str, Any]:
    return {
        "operator": standing.name,
        "start_ms": window.start,
        "end_ms": window.end,
        "phase": window.phase.name.lower(),
        "fires_at_ms": window.fires_at,
        "gone_at_ms": window.gone_at,
        "holds": window.held,
        "waits_for": [{"source": split.source, "split": split.name} for split in window.waits_for],
    }
