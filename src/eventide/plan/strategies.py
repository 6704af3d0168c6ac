"""Watermark strategies of a program by name: the values of each, and a copy of the program with other ones.

A strategy has the name of its source, where it is the only one directly after that; else its own. Its values are in
milliseconds: ``BOUND``, ``IDLE_TIMEOUT`` (None: no split becomes idle by itself) and ``MAX_DRIFT`` (None: its source
does not wait for the group), of which it has those that may be changed.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from eventide.common.ms import to_ms, to_positive_ms
from eventide.common.watermark_generators import BoundedOutOfOrderness
from eventide.common.watermark_strategy import WatermarkAlignment, WatermarkSpec
from eventide.errors import ProgramError
from eventide.plan.graph import (
    AssignTransformation,
    InputTransformation,
    SourceTransformation,
    Transformation,
    reachable,
    unique_names,
)
from eventide.plan.job import Strategies, StrategyValues

BOUND = "bound_ms"
IDLE_TIMEOUT = "idle_after_ms"
MAX_DRIFT = "drift_ms"

OFF = "off"
"""The word for an idle timeout, or a drift, that is switched off."""

_WORDS = {BOUND: "max out-of-orderness", IDLE_TIMEOUT: "idle timeout", MAX_DRIFT: "max allowed watermark drift"}
_WHY_NOT = {
    BOUND: "its watermarks come from a generator of yours and not from a bound, or there are none; change the "
    "program, and start it again on its checkpoint",
    IDLE_TIMEOUT: "the program declares none for it, and Spark wakes a query without data only if it did so from its "
    "first micro-batch on; add with_idleness(...), and begin with a savepoint",
    MAX_DRIFT: "the program declares no watermark alignment for it; add with_watermark_alignment(...), and start it "
    "again",
}


def declared(ends: Iterable[Transformation]) -> dict[str, dict[str, int | None]]:
    """The values that the strategies of a program have, and that may be changed while its job runs."""
    nodes = reachable(ends)
    return {name: _values(node) for name, node in _named(nodes).items()}


def with_values(ends: Sequence[Transformation], changed: Strategies) -> list[Transformation]:
    """A copy of a program in which strategies have other values; what the program does not have is passed over."""
    nodes = reachable(ends)
    values_of = {node.number: changed[name] for name, node in _named(nodes).items() if name in changed}
    copies: dict[int, Transformation] = {}
    for node in nodes:
        twin = copies[node.number] = copy.copy(node)
        twin.inputs = tuple(copies[source.number] for source in node.inputs)
        values = values_of.get(node.number, {})
        if isinstance(twin, AssignTransformation):
            twin.strategy = _changed(twin.strategy, values)
        elif isinstance(twin, SourceTransformation):
            twin.idle_timeout_ms = values.get(IDLE_TIMEOUT, twin.idle_timeout_ms)
            twin.alignment = _aligned(twin.alignment, values)
    return [copies[end.number] for end in ends]


def checked_values(
    name: str, known: Strategies, max_out_of_orderness: object, idle_timeout: object, max_drift: object
) -> dict[str, int | None]:
    """Return the new values of a strategy; None leaves a value as it is, and ``OFF`` turns it off.

    Args:
        name: the name of the strategy.
        known: the values of all strategies of the program.
        max_out_of_orderness: the bound.
        idle_timeout: how long a split may be silent, or ``OFF``.
        max_drift: how far a split may be ahead of its group, or ``OFF``.

    Raises:
        ProgramError: if there is no such strategy, it has no such value, or the value is not allowed.
    """
    if name not in known:
        names = ", ".join(map(repr, known)) or "none"
        raise ProgramError(
            f"the job has no watermark strategy of the name {name!r}; it has {names}. Give the name of its source, or, "
            "downstream of an operator, the one that name(...) gives the stream with it"
        )
    values: dict[str, int | None] = {}
    for what, value in ((BOUND, max_out_of_orderness), (IDLE_TIMEOUT, idle_timeout), (MAX_DRIFT, max_drift)):
        if value is None:
            continue
        if what not in known[name]:
            raise ProgramError(f"the {_WORDS[what]} of {name!r} cannot be changed: {_WHY_NOT[what]}")
        if value == OFF and what != BOUND:
            values[what] = None
        elif what == IDLE_TIMEOUT:
            values[what] = to_positive_ms(value, _WORDS[what])
        else:
            values[what] = to_ms(value, _WORDS[what], least=0)
    if not values:
        raise ProgramError(
            f"no new value is given for the watermark strategy of {name!r}: give a bound, a timeout or a drift"
        )
    return values


def _named(nodes: Sequence[Transformation]) -> dict[str, AssignTransformation | SourceTransformation]:
    """The nodes that have a strategy, by its name."""
    names = unique_names(nodes)
    strategies = [node for node in nodes if isinstance(node, AssignTransformation)]
    after = Counter(node.inputs[0].number for node in strategies)
    found: dict[str, AssignTransformation | SourceTransformation] = {}
    for node in nodes:
        if isinstance(node, SourceTransformation) and not after[node.number] and node.has_strategy:
            found[names[node.number]] = node
        elif isinstance(node, AssignTransformation):
            source = node.inputs[0]
            is_of_source = isinstance(source, InputTransformation) and after[source.number] == 1
            found[names[source.number if is_of_source else node.number]] = node
    return found


def _values(node: AssignTransformation | SourceTransformation) -> dict[str, int | None]:
    values: dict[str, int | None] = {}
    if isinstance(node, AssignTransformation):
        if isinstance(node.strategy.generator, BoundedOutOfOrderness):
            values[BOUND] = node.strategy.generator.bound_ms
        idle_after_ms = node.strategy.idle_timeout_ms
    else:
        idle_after_ms = node.idle_timeout_ms
    if idle_after_ms is not None:
        values[IDLE_TIMEOUT] = idle_after_ms
    if node.alignment is not None:
        values[MAX_DRIFT] = node.alignment.drift_ms
    return values


def _changed(strategy: WatermarkSpec, values: StrategyValues) -> WatermarkSpec:
    bound_ms = values.get(BOUND)
    if bound_ms is not None and isinstance(strategy.generator, BoundedOutOfOrderness):
        strategy = replace(strategy, generator=BoundedOutOfOrderness(bound_ms))
    idle_after_ms = values.get(IDLE_TIMEOUT, strategy.idle_timeout_ms)
    return replace(strategy, idle_timeout_ms=idle_after_ms, alignment=_aligned(strategy.alignment, values))


def _aligned(alignment: WatermarkAlignment | None, values: StrategyValues) -> WatermarkAlignment | None:
    if alignment is None or MAX_DRIFT not in values:
        return alignment
    return replace(alignment, drift_ms=values[MAX_DRIFT])
