"""``eventide watermarks``: the watermark strategies of a job, and a change of one while the job runs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.text import Text

from eventide.cli.answers import AsJson, answer, found_in, where_it_lies
from eventide.common.words import length
from eventide.errors import ProgramError

if TYPE_CHECKING:
    from eventide.plan.job import Strategies, StrategyValues
    from eventide.spark.checkpoint.strategies import StrategiesStanding

_UNITS_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_LENGTH = re.compile(r"(\d+) ?(ms|s|min|h|d)")


def watermarks(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint's directory, or its URI.", show_default=False)
    ],
    source: Annotated[
        str | None,
        typer.Option(help="The source or stream whose strategy changes, by name.", show_default=False),
    ] = None,
    out_of_orderness: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The new out-of-orderness bound, such as 30s.", show_default=False),
    ] = None,
    idle_timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The new idle timeout, such as 1min, or off.", show_default=False),
    ] = None,
    alignment_drift: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The new maximum drift in its alignment group, such as 5s, or off.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the watermark strategies of a job, or change one while the job runs.

    A running job applies a change after its current micro-batch, within seconds; a stopped job applies it at its next
    start. The watermark never goes back. A change holds until the program itself declares a different value than now,
    and is not part of savepoints. Times have a unit: ms, s, min, h or d. Neither the program nor Spark is needed.

    For example:

        eventide watermarks /data/jobs/orders
        eventide watermarks /data/jobs/orders --source orders --out-of-orderness 30s
        eventide watermarks /data/jobs/orders --source orders --idle-timeout 1min --alignment-drift off
    """
    found_in(checkpoint)  # what is not a checkpoint is said
    from eventide.spark.checkpoint.strategies import STANDING, ask_for, strategies_at

    times = [_time(text) for text in (out_of_orderness, idle_timeout, alignment_drift)]
    if source is not None:
        name = source
        where_it_lies(lambda location: ask_for(location, name, *times), checkpoint)
    elif times != [None] * len(times):
        raise ProgramError("name the source of the watermarks that are to change: --source NAME")
    found = where_it_lies(strategies_at, checkpoint, STANDING)
    answer(dataclasses.asdict(found), Group(*_view(found)), as_json=as_json)


def _time(text: str | None) -> int | str | None:
    """Return a length of time in milliseconds; off, and what was not given, as it is.

    Raises:
        ProgramError: if it is neither.
    """
    from eventide.plan.strategies import OFF

    if text is None or text == OFF:
        return text
    found = _LENGTH.fullmatch(text.strip())
    if found is None:
        raise ProgramError(
            f"{text!r} is not a length of time: write a whole number and a unit, such as 500ms, 30s or 5min"
        )
    return int(found[1]) * _UNITS_MS[found[2]]


def _view(found: StrategiesStanding) -> Iterator[Text]:
    if not found.declared:
        yield Text("The job has no watermark strategies")
    for name, declared in found.declared.items():
        yield Text(f"{name}: {_words({**declared, **found.changed.get(name, {})})}")
        if name in found.changed:
            before = {what: ms for what, ms in declared.items() if what in found.changed[name]}
            yield Text(f"  the program says {_words(before)}")
        for change in _waiting_of(found, name):
            yield Text(f"  from the next micro-batch on that begins: {_words(change[name])}")


def _waiting_of(found: StrategiesStanding, name: str) -> Iterator[Strategies]:
    return (change for change in found.waiting if name in change)


def _words(values: StrategyValues) -> str:
    from eventide.plan.strategies import BOUND, IDLE_TIMEOUT, MAX_DRIFT

    words = {BOUND: "out of order by", IDLE_TIMEOUT: "idle after", MAX_DRIFT: "aligned within"}
    off = {IDLE_TIMEOUT: "never idle by itself", MAX_DRIFT: "not aligned"}
    return ", ".join(off[what] if ms is None else f"{words[what]} {length(ms)}" for what, ms in values.items())
