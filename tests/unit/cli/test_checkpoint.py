"""Views of a checkpoint for a person and for a program."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.cli.checkpoint import view_of
from eventide.spark.checkpoint.files import Listing
from eventide.spark.checkpoint.inspection import InspectedOperator, Inspection, MicroBatch, SourcePart, SourceState
from eventide.spark.checkpoint.state_reader import StateSize

NOW_MS = 1_000_000_000_000
PARTS = tuple(SourcePart(f"topic-{n}", 10 * n, 10 * n + 5 if n == 3 else None, ended=n == 0) for n in range(12))


def inspection() -> Inspection:
    return Inspection(
        location="/data/[jobs]/orders",
        id="4f2e",
        query="6b1c",
        created_ms=NOW_MS - 90_000_000,
        job="orders [daily]",
        format=3,
        parallelism=2,
        max_parallelism=128,
        programs=2,
        description={"sinks": [{"name": "results", "kind": "KafkaSink"}, {"name": "late", "kind": "PrintSink"}]},
        sources=(SourceState("orders", "KafkaSource", PARTS), SourceState("prices", "DataFrame", ())),
        operators=(
            InspectedOperator("a1", "per minute", 1, 2, {"window": "TumblingEventTimeWindows(size=60000, offset=0)"}),
        ),
        sinks=("results", "late"),
        directories=("/out",),
        transactions=("orders",),
        committed=MicroBatch(41, NOW_MS - 7_500, NOW_MS - 7_400, NOW_MS - 6_200),
        unfinished=MicroBatch(42, NOW_MS - 5_000, NOW_MS - 4_900, None),
        listing=Listing(1_204, {"": 45, "state": 2_000_000, "offsets": 12_000}),
        counted=10,  # by a checkpoint that this one continues
    )


def lines(sizes: list[StateSize] | None = None) -> list[str]:
    console = Console(width=1_000, file=StringIO(), markup=False)
    console.print(view_of(inspection(), sizes, NOW_MS))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_view_says_where_a_job_stands() -> None:
    assert lines() == [
        "The checkpoint /data/[jobs]/orders",
        "  job           orders [daily]",
        "  begun         2001-09-08 00:46:40 (1 d 1 h ago); Spark's query 6b1c",
        "  started with  2 programs, 2 subtasks; state in format 3",
        "  committed     micro-batch 41, at 2001-09-09 01:46:33 (6 s ago), 1.3 s after it was planned",
        "  unfinished    micro-batch 42, planned at 2001-09-09 01:46:35 (5 s ago): the job is in it, or ended in it "
        "and repeats it at its next start",
        "  size          2.0 MB in 1,204 files; of these, state: 2.0 MB",
        "",
        "Sources",
        "  orders (KafkaSource): 12 parts, 1 ended",
        "    topic-1   10",
        "    topic-2   20",
        "    topic-3   30   to 35 in the unfinished one",
        *(f"    topic-{n:<3} {10 * n}" for n in range(4, 11)),
        "    and 2 more, which --json has",
        "  prices (DataFrame): nothing planned yet",
        "",
        "Operators",
        "  stage  operator    stored as",
        "  1      per minute  a1         TumblingEventTimeWindows(size=60000, offset=0)",
        "",
        "Sinks",
        "  results (KafkaSink)",
        "  late (PrintSink)",
        "  files in /out; those of the next micro-batch begin with part-00000052-",
        "  transactions of Kafka in the group orders",
    ]


def test_of_several_micro_batches_without_a_commit_the_last_is_the_next() -> None:
    """As in a copy that was made while the job ran: Spark repeats the one that it planned last."""
    found = replace(inspection(), unfinished=MicroBatch(44, NOW_MS - 5_000, NOW_MS - 4_900, None))
    console = Console(width=1_000, file=StringIO(), markup=False)
    console.print(view_of(found, None, NOW_MS))
    assert "those of the next micro-batch begin with part-00000054-" in console.file.getvalue()


def test_state_is_shown_where_it_was_counted() -> None:
    shown = lines([StateSize(1, None, 4, 2_042), StateSize(1, "a1", 1_200, 3_500_000)])
    assert shown[shown.index("State") + 1 :][:3] == [
        "  stage  operator                  values    size",
        "  1      what its operators share       4  2.0 kB",
        "  1      per minute                 1,200  3.5 MB",
    ]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_is_no_checkpoint_is_one_message_and_no_answer(tmp_path: Path, options: list[str]) -> None:
    said = CliRunner().invoke(app, ["checkpoint", str(tmp_path / "absent"), *options])
    assert (said.exit_code, said.stdout) == (2, "")
    assert said.stderr.startswith(f"eventide: there is nothing at {tmp_path}/absent; ")
    assert said.stderr.count("\n") == 1


def test_the_json_of_a_checkpoint_is_all_that_is_known_of_it(tmp_path: Path) -> None:
    program = {"format": 3, "parallelism": 2, "max parallelism": 8, "sources": [], "sinks": [], "operators": {}}
    record: dict[str, object] = {"start": 1, "after": -1, "directories": [], "id": "c", "job": "daily"}
    record |= {"program": program, "description": {"sources": [], "sinks": []}}
    (tmp_path / "eventide").mkdir()
    (tmp_path / "eventide" / "part-0.txt").write_text(json.dumps(record))
    said = CliRunner().invoke(app, ["checkpoint", str(tmp_path), "--json"])
    assert (said.exit_code, said.stderr) == (0, "")
    document = json.loads(said.stdout)
    assert set(document) == {*Inspection.__slots__, "state"}
    assert (document["location"], document["committed"], document["state"]) == (str(tmp_path), None, None)
