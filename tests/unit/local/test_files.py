"""Files through whole programs on the twin: as from a collection, in any portions, restarted, and monitored."""

from copy import deepcopy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.datastream import ProcessWindowFunction
from eventide.datastream.connectors import FileSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import DataError, ProgramError
from eventide.local.runner import LocalCheckpoint
from eventide.testing import local_environment
from support.twin import by_sink, plan_of, run, run_with_restarts, runner, values

EVENT = Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()])
BY_MS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ms")


class Visits(ProcessWindowFunction):
    """Gives (user, start of the window, times, watermark)."""

    def process(self, key, context, elements):
        yield key, context.window().start, [row.ms for row in elements], context.current_watermark()


def visits(stream):
    return (
        stream.key_by(lambda row: row.user, Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .process(Visits())
    )


def from_files(builder):
    return plan_of(visits(local_environment().from_source(builder.build(), BY_MS, "files")))


def events(path, *rows, ending="parquet"):
    path = path.with_suffix(f".{ending}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if ending == "csv":
        path.write_text("user,ms\n" + "".join(f"{user},{ms}\n" for user, ms in rows))
    else:
        users, times = [user for user, _ in rows], [ms for _, ms in rows]
        pq.write_table(pa.table({"user": pa.array(users, pa.string()), "ms": pa.array(times, pa.int64())}), path)


def test_a_bounded_directory_gives_what_a_collection_gives(tmp_path):
    rows = [("a", 1), ("b", 3), ("a", 12), ("a", 25), ("b", 14), ("b", 31)]
    events(tmp_path / "1", *rows[:3])
    events(tmp_path / "2", *rows[3:])
    stream = local_environment().from_collection([Row(user=user, ms=ms) for user, ms in rows], EVENT)
    expected = values(run(plan_of(visits(stream.assign_timestamps_and_watermarks(BY_MS)))))
    assert len(expected) == 6
    assert values(run(from_files(FileSource.parquet(tmp_path)))) == expected
    tuples = FileSource.parquet(tmp_path, type_info=Types.TUPLE(EVENT.field_types)).build()
    by_position = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    stream = local_environment().from_source(tuples, by_position, "files").map(lambda e: Row(user=e[0], ms=e[1]), EVENT)
    assert values(run(plan_of(visits(stream)))) == expected


@pytest.mark.parametrize("max_rows", [1, 2, 3, None])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_job_that_is_restarted_in_the_middle_gives_the_same(tmp_path, max_rows, ending):
    for number in range(3):
        first = 20 * number
        events(tmp_path / str(number), ("a", first), ("b", first + 5), ("a", first + 11), ending=ending)
    make = {"parquet": FileSource.parquet, "csv": FileSource.csv}[ending]
    expected = run(from_files(make(tmp_path)), max_rows)
    assert sorted((start, user, times) for user, start, times, _ in values(expected)) == [
        (20 * number + start, user, [20 * number + ms])
        for number in range(3)
        for user, start, ms in (("a", 0, 0), ("b", 0, 5), ("a", 10, 11))
    ]
    assert run_with_restarts(from_files(make(tmp_path)), every=1, max_rows=max_rows) == expected


def test_files_of_one_device_are_one_split_and_a_silent_device_holds_the_watermark(tmp_path):
    events(tmp_path / "x" / "1", ("a", 1), ("a", 15))
    events(tmp_path / "x" / "2", ("a", 27), ("a", 38))
    events(tmp_path / "y" / "1", ("b", 4), ("b", 16))
    builder = FileSource.parquet(tmp_path).set_split_by(lambda path: path.split("/")[-2]).set_max_files_per_batch(1)
    results = run(from_files(builder))
    assert [sorted(value[:2] for value, _ in batch[0]) for batch in results] == [
        [("a", 0), ("b", 0)],  # both had a turn: the watermark is that of y, and then y ends
        [("a", 10), ("a", 20), ("a", 30), ("b", 10)],
    ]


def test_a_watermark_stands_between_the_files_of_a_monitored_directory(tmp_path):
    plan = from_files(FileSource.parquet(tmp_path, type_info=EVENT).monitor_continuously(Duration.of_millis(0)))
    checkpoint = LocalCheckpoint()

    def step(name, *rows):
        nonlocal checkpoint
        if rows:
            events(tmp_path / name, *rows)
        one = runner(plan, checkpoint=deepcopy(checkpoint))
        found = [by_sink(plan, batch) for batch in one.batches()]
        checkpoint = one.checkpoint
        return [value[:3] for value in values(found)], one.metrics().get("TumblingEventTimeWindows.process", {}).get(
            "numLateRecordsDropped", 0
        )

    assert step("none") == ([], 0)
    assert step("1", ("a", 1), ("a", 15)) == ([("a", 0, [1])], 0)
    assert step("none") == ([], 0)
    assert step("2", ("a", 3), ("a", 14)) == ([], 1), "behind the watermark of files that are no more"
    assert step("3", ("a", 22)) == ([("a", 10, [15, 14])], 0)
    state = [value for backend in checkpoint.state.values() for name, value in backend.items() if name == "head"]
    assert state
    assert not any(b".parquet" in value for value in state), "a valve forgets files that have ended"


def test_a_bounded_source_without_files_holds_nothing_back(tmp_path):
    (tmp_path / "none").mkdir()
    events(tmp_path / "some" / "1", ("a", 1), ("a", 15))
    env = local_environment()
    both = [
        env.from_source(FileSource.parquet(tmp_path / name, type_info=EVENT).build(), BY_MS, name)
        for name in ("none", "some")
    ]
    assert [value[:2] for value in values(run(plan_of(visits(both[0].union(both[1])))))] == [("a", 0), ("a", 10)]


def test_a_bad_file_is_told_with_the_source(tmp_path):
    events(tmp_path / "1", ("a", 1), ending="csv")
    events(tmp_path / "2", ("a", "soon"), ending="csv")
    with pytest.raises(DataError, match=r"in operator 'files'.*/2\.csv: the column 'ms' cannot be read as int64"):
        run(from_files(FileSource.csv(tmp_path)))


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def some_days(folder):
    """Twelve files in two folders, of one element each."""
    for n in range(12):
        events(folder / f"day-{n % 2}" / f"{n:02}", ("a", n))


@pytest.mark.parametrize("max_files", [None, 5])
def test_files_are_deleted_when_they_have_been_read_and_the_results_are_equal(tmp_path, max_files):
    some_days(tmp_path / "in")
    builder = FileSource.parquet(tmp_path / "in").set_max_files_per_batch(max_files)
    expected = values(run(from_files(builder)))
    assert len(names(tmp_path / "in")) == 12
    assert values(run(from_files(builder.delete_when_read()))) == expected
    assert names(tmp_path / "in") == []


def test_a_file_stays_until_its_last_row_is_committed(tmp_path):
    events(tmp_path / "in" / "1", ("a", 1), ("a", 2), ("a", 3))
    plan, checkpoint = from_files(FileSource.parquet(tmp_path / "in").delete_when_read()), LocalCheckpoint()
    batches = runner(plan, max_rows=2, checkpoint=checkpoint).batches()
    next(batches)
    assert names(tmp_path / "in") == ["1.parquet"]
    batches.close()
    found = [by_sink(plan, batch) for batch in runner(plan, max_rows=2, checkpoint=checkpoint).batches()]
    assert [times for _, _, times, _ in values(found)] == [[1, 2, 3]]
    assert names(tmp_path / "in") == []


def test_files_may_be_moved_and_are_forgotten_in_the_checkpoint(tmp_path):
    some_days(tmp_path / "in")
    builder = FileSource.parquet(tmp_path / "in").monitor_continuously(Duration(0)).set_known_for(Duration(0))
    checkpoint = LocalCheckpoint()
    plan = from_files(builder.move_when_read(str(tmp_path / "read")))
    assert sum(1 for _ in runner(plan, checkpoint=checkpoint).batches()) == 1
    assert (names(tmp_path / "in"), len(names(tmp_path / "read"))) == ([], 12)
    assert names(tmp_path / "read")[0] == "day-0/00.parquet"
    events(tmp_path / "in" / "new", ("a", 100))
    assert sum(1 for _ in runner(plan, checkpoint=checkpoint).batches()) == 1
    assert list(checkpoint.offsets["files"]) == [str(tmp_path / "in" / "new.parquet")]
    with pytest.raises(ProgramError, match=r"cannot be moved to .*read: it is below .*in, where they would be found"):
        builder.move_when_read(str(tmp_path / "in" / "read"))


def test_a_file_that_was_moved_is_not_replaced_by_another_one(tmp_path):
    for folder, ms in (("a", 1), ("b", 2), ("c", 3)):
        events(tmp_path / folder / "same", ("a", ms))
    builder = FileSource.parquet(*(tmp_path / folder for folder in "abc")).move_when_read(str(tmp_path / "read"))
    run(from_files(builder))
    moved = sorted((tmp_path / "read").iterdir())
    assert sorted(pq.read_table(path)["ms"].to_pylist() for path in moved) == [[1], [2], [3]]
    assert [path.name[-13:] for path in moved if path.name != "same.parquet"] == ["-same.parquet"] * 2


def test_a_file_that_is_gone_already_is_passed_over(tmp_path):
    some_days(tmp_path / "in")
    plan, checkpoint = from_files(FileSource.parquet(tmp_path / "in").set_max_files_per_batch(11)), LocalCheckpoint()
    batches = runner(plan, checkpoint=checkpoint).batches()
    next(batches)
    batches.close()
    (tmp_path / "in" / "day-0" / "00.parquet").unlink()
    plan = from_files(FileSource.parquet(tmp_path / "in").set_max_files_per_batch(11).delete_when_read())
    assert [*runner(plan, checkpoint=checkpoint).batches()]
    assert names(tmp_path / "in") == []
