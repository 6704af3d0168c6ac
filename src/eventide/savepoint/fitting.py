"""Whether a program fits a savepoint: what has no home in it is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventide.errors import StateError
from eventide.runtime.state.operators import changes_of
from eventide.savepoint.saved import Savepoint

_DEALT_OUT = ("level", "parallelism")
"""What may be another one for an operator, because its state is dealt out anew."""

DATA_FRAME = "DataFrame"
"""The kind of a source that only Spark can begin at a position."""


def check_fit(savepoint: Savepoint, program: Mapping[str, Any], *, allow_non_restored: bool) -> None:
    """Refuse a program that does not fit a savepoint. Operators, sources and sinks that are new in it do.

    Args:
        savepoint: the savepoint.
        program: what the program is, as `eventide.plan.identity.program_identity` has it.
        allow_non_restored: whether state without an operator may be left behind, and a source at its position.

    Raises:
        StateError: naming each difference.
    """
    header, found = savepoint.header, savepoint.header.program
    changes = []
    if found["max parallelism"] != program["max parallelism"]:
        before, now = found["max parallelism"], program["max parallelism"]
        changes.append(f"the max parallelism was {before} and is now {now}, and keys are dealt out by it")
    types = {source["name"]: source["element type"] for source in program["sources"]}
    homeless = []
    for source in header.sources:
        if source.name not in types:
            homeless.append(f"the source {source.name!r} is missing in the program")
        elif source.kind == DATA_FRAME:
            homeless.append(
                f"the source {source.name!r} is a DataFrame, and only what it reads from knows how to begin at a "
                f"position: have it begin at {source.offsets}, with its options, or read it with a source of eventide's"
            )
        elif types[source.name] != source.element_type:
            changes.append(
                f"the source {source.name!r} had elements {source.element_type}, and has {types[source.name]}"
            )
    saved, planned = (_comparable(one["operators"]) for one in (found, program))
    changes += changes_of(saved, planned, may_miss=allow_non_restored)
    changes += [] if allow_non_restored else homeless
    if changes:
        raise StateError(
            f"the program does not fit the savepoint {savepoint.location}: {'; '.join(changes)}. Undo these changes; "
            "where an operator or a source is missing, from_savepoint(..., allow_non_restored_state=True) leaves its "
            "state behind"
        )


def _comparable(operators: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    return {
        operator: {what: text for what, text in one.items() if what not in _DEALT_OUT}
        for operator, one in operators.items()
    }
