"""Results of a host for a scenario, brought beside Flink's."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.scenarios.programs import FIRST, Scenario, canonical

from eventide.common.ms import MIN_MS
from eventide.local.runner import BatchResult


@dataclass
class Record:
    """Results of one scenario: outputs and late ids per micro-batch, and the watermarks that its operator reached."""

    outputs: dict[int, list[str]] = field(default_factory=dict)
    late: dict[int, list[str]] = field(default_factory=dict)
    watermarks: list[int] = field(default_factory=list)

    def add_outputs(self, batch: int, rows: Iterable[tuple[Any, int | None]]) -> None:
        self.outputs.setdefault(batch, []).extend(canonical([value, timestamp]) for value, timestamp in rows)

    def add_late(self, batch: int, rows: Iterable[tuple[Any, int | None]]) -> None:
        self.late.setdefault(batch, []).extend(canonical(value["id"]) for value, _ in rows)

    def add_watermark(self, watermark: int) -> None:
        """Take the watermark at the end of a micro-batch; one that did not move is not a new one."""
        if watermark > (self.watermarks[-1] if self.watermarks else MIN_MS):
            self.watermarks.append(watermark)


def watermarks_of_all_subtasks(batch: BatchResult) -> list[int]:
    """The watermarks that the operator reached in a micro-batch of the twin: the same in each of its subtasks."""
    passed = [*batch.passed.get(FIRST, {0: []}).values()]
    assert all(watermarks == passed[0] for watermarks in passed)
    return passed[0]


def assert_as_flink(scenario: Scenario, record: Record, watermarks: list[int] | None = None) -> None:
    """The comparison that stands for "the same results as Flink"; it is never loosened.

    ``watermarks`` are those of Flink's that the host shows: all, or the last of each micro-batch.
    """
    assert list(_batches(record.outputs, scenario)) == scenario.by_batch("outputs"), scenario.name
    assert list(_batches(record.late, scenario)) == scenario.by_batch("late"), scenario.name
    expected = scenario.expected["watermarks"] if watermarks is None else watermarks
    assert record.watermarks == expected, scenario.name


def assert_as_flink_in_batch(
    scenario: Scenario, outputs: Iterable[tuple[Any, int | None]], *, without: Collection[str] = ()
) -> None:
    """The comparison for batch execution: the outputs of each key in their order, with ids, texts, l and r in theirs.

    The keys may come in any order, and so may the pairs of a join. ``without`` names what the program cannot see.
    """
    are_pairs = scenario.kind in ("window_join", "interval_join")
    found, expected = (
        {key: sorted(of_key) if are_pairs else of_key for key, of_key in _by_key(rows, without).items()}
        for rows in (outputs, zip(scenario.expected["outputs"], scenario.detail["output_ts"], strict=True))
    )
    assert found == expected, scenario.name


def _by_key(rows: Iterable[tuple[Any, int | None]], without: Collection[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value, timestamp in rows:
        shown = {name: part for name, part in value.items() if name not in without}
        found.setdefault(value["k"], []).append(json.dumps([shown, timestamp], sort_keys=True))
    return found


def _batches(found: dict[int, list[str]], scenario: Scenario) -> Iterator[list[str]]:
    assert not found or max(found) <= scenario.batches
    for batch in range(scenario.batches + 1):
        yield sorted(found.get(batch, []))
