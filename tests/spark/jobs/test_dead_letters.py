"""Dead letters on Spark: of a source, its strategy, a function before the shuffle and one with state after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, OutputTag, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource
from eventide.datastream.state import ListStateDescriptor
from support.steps import in_steps

pytestmark = pytest.mark.spark

EVENT = Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()])
SEEN = Types.ROW_NAMED(["user", "ms", "seen"], [Types.STRING(), Types.LONG(), Types.LIST(Types.LONG())])
BY_MS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ms")
BAD = OutputTag("bad")


def no_threes(row: Row) -> Row:
    if row.ms % 10 == 3:
        raise ValueError("three")
    return row


class Remembers(KeyedProcessFunction):
    """Keeps an element, and then finds that it should not have."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: Row, ctx: Any) -> Any:
        self.seen.add(value.ms)
        if value.ms % 10 == 7:
            raise LookupError("seven")
        yield Row(user=value.user, ms=value.ms, seen=list(self.seen))


def lines(number: int) -> str:
    first = 20 * number
    good = [json.dumps({"user": "ab"[ms % 2], "ms": ms}) for ms in range(first, first + 20)]
    return "\n".join([*good[:5], "what?", *good[5:], '{"user": "nobody"}', ""])


@pytest.mark.long
@in_steps
def test_what_is_bad_comes_out_once_over_a_failure_and_the_rest_is_as_without_it(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.json").write_text(lines(number))
    found: dict[str, dict[int, list[Any]]] = {}
    fails = True

    def keep(name: str) -> Any:
        def sink(rows: Any, batch: int) -> None:
            if fails and name == "seen" and batch == 1:
                raise OSError("the disk is full")
            found.setdefault(name, {})[batch] = rows.collect()

        return sink

    def started() -> Any:
        source = FileSource.json_lines(str(folder), type_info=EVENT).set_max_files_per_batch(1).build()
        readings = env.from_source(source, BY_MS, "readings").side_output_dead_letters(BAD)
        checked = readings.map(no_threes, EVENT).name("check").side_output_dead_letters(BAD)
        by_user = checked.key_by(lambda row: row.user, Types.STRING())
        seen = by_user.process(Remembers(), SEEN).name("remember").side_output_dead_letters(BAD)
        letters = [stream.get_side_output(BAD) for stream in (readings, checked, seen)]
        seen.sink_to(keep("seen"))
        letters[0].union(*letters[1:]).sink_to(keep("letters"))
        return env.execute_async("readings")

    with pytest.raises(Exception, match="the disk is full"):
        started().get_job_execution_result().result()
    fails = False
    job = started()
    job.get_job_execution_result().result()

    rows = [(row.user, row.ms, list(row.seen)) for batch in found["seen"].values() for row in batch]
    good = [ms for ms in range(60) if ms % 10 not in (3, 7)]
    assert sorted(rows, key=lambda row: row[1]) == [
        ("ab"[ms % 2], ms, [one for one in good if one <= ms and one % 2 == ms % 2]) for ms in good
    ]
    letters = [row for batch in found["letters"].values() for row in batch]
    assert sorted((row.operator, row.error_type, row.text) for row in letters) == sorted(
        [("readings", "DataError", "what?")] * 3
        + [("timestamps and watermarks", "DataError", "Row(user='nobody', ms=None)")] * 3
        + [("check", "ValueError", str(Row(user="ab"[ms % 2], ms=ms))) for ms in range(3, 60, 10)]
        + [("remember", "LookupError", str(Row(user="ab"[ms % 2], ms=ms))) for ms in range(7, 60, 10)]
    )
    assert {(row.split.rpartition("/")[2], row.position) for row in letters if row.operator == "readings"} == {
        (f"{number}.json", 5) for number in range(3)
    }
    assert all(row.timestamp == json.loads(row.text.partition("ms=")[2][:-1]) for row in letters if row.timestamp)
    assert job.get_metrics()["check"]["numDeadLetters"] == 4, "of the two files since the restart"
    [remember] = job.why().standings
    assert remember.dead_letters["remember"] == 6, "since the state began"
