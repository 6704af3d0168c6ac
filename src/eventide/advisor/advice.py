"""Advice about the disorder of a stream: how large a bound, and what it costs and loses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from eventide.advisor.arrivals import ColumnRoles
from eventide.advisor.code import strategy_code
from eventide.advisor.disorder import Disorder
from eventide.advisor.notes import notes_on
from eventide.advisor.rounding import rounded_up

SHARES = (0.01, 0.001, 0.0001, 0.0)
"""The shares of elements that may be lost, for each of which a bound is found."""

_MINUTE = 60_000
_APART_MS = 30 * _MINUTE
_PRINTED = 110


@dataclass(frozen=True, slots=True)
class Choice:
    """A bound for a share that may be lost, and what comes of it. Lengths are in milliseconds.

    Attributes:
        lose: the share of elements that may be lost; 0: none of those that were seen.
        bound_ms: the bound, rounded up to a number that one would write.
        late: how many elements are behind the watermark of their split with that bound. A window has the lowest
            watermark of all splits, and loses no more than these.
        delay_ms: how old results are, compared with the newest element, on average: the bound, and the lag of the
        slowest split. late_with_one: how many elements are late with an equal bound under one watermark for all, such
        as Spark's. bound_with_one_ms: the bound that one watermark for all needs to lose no more; also the delay of its
        results.
    """

    lose: float
    bound_ms: int
    late: int
    delay_ms: int
    late_with_one: int
    bound_with_one_ms: int


@dataclass(frozen=True, slots=True)
class Early:
    """Results early and corrected later: a small bound, and a lateness that loses nothing of what was seen.

    Attributes:
        bound_ms: the bound.
        lateness_ms: the allowed lateness of the windows.
        corrections: how many elements come behind the watermark, and correct a result that was given.
    """

    bound_ms: int
    lateness_ms: int
    corrections: int


@dataclass(frozen=True)
class Advice:
    """Advice on watermarks from data: made by :func:`eventide.advisor.advise`, printed with ``print``.

    Attributes:
        disorder: what was measured.
        columns: which columns said what; the event time is ``""`` where records have it themselves.
        lose: the share of elements that may be lost with the strategy that is recommended.
        can_align: whether the splits are those of a source that can be told to wait.

    >>> import tempfile, pyarrow as pa, pyarrow.csv
    >>> from eventide.advisor import advise
    >>> path = tempfile.mkdtemp() + "/readings.csv"
    >>> pyarrow.csv.write_csv(pa.table({"ms": [1_000, 2_000, 1_400, 3_000, 4_000]}), path)
    >>> advice = advise(path, time="ms", lose=0)
    >>> advice.recommended.bound_ms, advice.recommended.late
    (600, 0)
    >>> print(advice.code)
    WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(600)).with_timestamp_assigner("ms")
    """

    disorder: Disorder
    columns: ColumnRoles
    lose: float = 0.001
    can_align: bool = True

    @property
    def has_splits(self) -> bool:
        """Whether there are several splits, so that a watermark for each is something else than one for all."""
        return len(self.disorder.splits) > 1

    @cached_property
    def choices(self) -> list[Choice]:
        """Bounds for losing 1 %, 0.1 %, 0.01 % and nothing, and what comes of each."""
        return [self.choice(share) for share in SHARES]

    @cached_property
    def recommended(self) -> Choice:
        """That for the share which may be lost."""
        return self.choice(self.lose)

    def choice(self, lose: float) -> Choice:
        """The smallest bound, rounded up, with which no more than a share is lost."""
        bound_ms = rounded_up(self.disorder.own.within(lose))
        return Choice(
            lose,
            bound_ms,
            self.disorder.own.longer_than(bound_ms),
            bound_ms + self.wait_ms,
            self.disorder.whole.longer_than(bound_ms),
            rounded_up(self.disorder.whole.within(lose)),
        )

    @cached_property
    def wait_ms(self) -> int:
        """How long results wait for the slowest split, on average: the lag of that split."""
        return round(self.disorder.slowest[1].mean_apart_ms)

    @cached_property
    def idleness_ms(self) -> int | None:
        """After how long a split should count as idle; None where the data show no silence that calls for it.

        Twice as long as all but a thousandth of the gaps between elements, and not before a split has missed twenty
        elements; where a silence is at least twice as long as that, and a minute, or a split has never spoken.
        """
        found = self.disorder
        if not self.has_splits and not found.silent:
            return None
        usual_ms = max(found.gaps.within(0.001), *(10 * split.mean_gap_ms for split in found.splits.values()), 500)
        timeout_ms = rounded_up(int(2 * usual_ms))
        return timeout_ms if found.silent or self.silence[1] >= max(2 * timeout_ms, _MINUTE) else None

    @cached_property
    def silence(self) -> tuple[str, int]:
        """The split that was silent for the longest time, and for how long.

        The end of the data is often not that of all splits at once: there, a twentieth of the whole is a silence.
        """
        splits = self.disorder.splits
        ended_ms = self.disorder.ended_ms
        least_ms = (ended_ms - min(split.begun_ms for split in splits.values())) / 20
        at_the_end = {name: ended_ms - split.heard_ms for name, split in splits.items()}
        silences = {
            name: max(split.silence_ms, at_the_end[name] if at_the_end[name] >= least_ms else 0)
            for name, split in splits.items()
        }
        return max(silences.items(), key=lambda named: named[1])

    @cached_property
    def drift_ms(self) -> int | None:
        """How far splits should run ahead of the slowest one, at most; None where they are not that far apart.

        For splits that are half an hour apart or more, and further than four bounds.
        """
        bound_ms = self.recommended.bound_ms
        if not self.has_splits or not self.can_align or self.wait_ms < max(_APART_MS, 4 * bound_ms):
            return None
        return rounded_up(max(bound_ms, _MINUTE))

    @cached_property
    def early(self) -> Early | None:
        """A bound that loses 1 %, and a lateness for these; None where that is not at least twice as early."""
        small_ms, whole_ms = self.choice(SHARES[0]).bound_ms, self.choice(0.0).bound_ms
        if whole_ms < 2 * small_ms or whole_ms == 0:
            return None
        return Early(small_ms, whole_ms - small_ms, self.disorder.own.longer_than(small_ms))

    @cached_property
    def code(self) -> str:
        """The strategy, to be pasted into a program."""
        return strategy_code(self.columns, self.recommended.bound_ms, self.idleness_ms, self.drift_ms)

    @cached_property
    def notes(self) -> list[str]:
        """Notes on faults of the data that would make any bound a bad one; empty where there are none."""
        return list(notes_on(self.disorder, self.recommended.bound_ms, self.has_splits))

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values; lengths are in milliseconds, shares between 0 and 1."""
        found = self.disorder
        return {
            "rows": found.rows,
            "without_time": found.nulls,
            "splits": len(found.splits),
            "choices": [{**asdict(choice), **self._shares(choice)} for choice in self.choices],
            "recommended": {**asdict(self.recommended), **self._shares(self.recommended)},
            "slowest_split": {"name": found.slowest[0], "behind_ms": self.wait_ms} if self.has_splits else None,
            "longest_silence": dict(zip(("split", "ms"), self.silence, strict=True)) if self.has_splits else None,
            "clock": "arrival" if found.has_clock else "event time",
            "idleness_ms": self.idleness_ms,
            "drift_ms": self.drift_ms,
            "early": None if self.early is None else asdict(self.early),
            "code": self.code,
            "notes": self.notes,
        }

    def plot(self, path: str | Path) -> None:
        """Draw completeness against the bound; the ending of the path says the format (.png, .svg, …).

        Raises:
            ProgramError: matplotlib, which comes with ``eventide[plot]``, is not installed.
        """
        from eventide.advisor.picture import draw

        draw(self, Path(path))

    def _shares(self, choice: Choice) -> dict[str, float]:
        rows = self.disorder.rows
        return {"late_share": choice.late / rows, "late_share_with_one": choice.late_with_one / rows}

    def __rich__(self) -> RenderableType:
        from eventide.advisor.view import view_of

        return view_of(self)

    def __str__(self) -> str:
        written = StringIO()
        Console(file=written, width=_PRINTED, markup=False, highlight=False, emoji=False, color_system=None).print(self)
        return "\n".join(line.rstrip() for line in written.getvalue().splitlines())
