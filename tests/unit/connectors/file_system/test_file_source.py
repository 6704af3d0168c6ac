"""Files that a file source finds, the order and portions of its plans, and files that come and go."""

import json
import os
import pickle
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Duration
from eventide.connectors.file_system import _planning, _source
from eventide.datastream.connectors import FileSource
from eventide.datastream.connectors.file_system import FilePathFilter
from eventide.errors import DataError, ProgramError, StateError
from eventide.runtime.sources.offsets import next_offsets, pending_records, ranges_between, source_ends
from eventide.storage import opened

ALWAYS = Duration.of_millis(0)


def lines(path, *texts, changed=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in texts))
    if changed is not None:
        os.utime(path, (changed, changed))
    return str(path)


def numbers(path, *values):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": list(values)}), path, row_group_size=3)


def test_rows_that_wait_are_counted_in_a_few_files(tmp_path, monkeypatch):
    for name in "abc":
        numbers(tmp_path / name, *range(5))
    source = FileSource.parquet(tmp_path).set_max_files_per_batch(1).build()
    end = next_offsets(source, {}, None)
    assert pending_records(source, end, is_limited=False) == {str(tmp_path / name): 5 for name in "bc"}
    monkeypatch.setattr(_source, "_FEW_FILES", 1)
    assert pending_records(source, end, is_limited=False) is None
    assert pending_records(source, next_offsets(source, end, None), is_limited=False) == {str(tmp_path / "c"): 5}


def test_rows_that_wait_in_text_are_not_known(tmp_path):
    for name in "ab":
        lines(tmp_path / name, "1", "2")
    source = FileSource.text(tmp_path).set_max_files_per_batch(1).build()
    assert pending_records(source, next_offsets(source, {}, None), is_limited=False) is None


class Run:
    """Plans and reads micro-batch by micro-batch, as a host does; offsets travel as JSON."""

    def __init__(self, source, max_rows=None):
        self.source, self.max_rows, self.offsets = source, max_rows, {}

    def batch(self):
        """The next micro-batch: by split, its rows, and whether it ended; None if there is nothing to do."""
        end = json.loads(json.dumps(next_offsets(self.source, self.offsets, self.max_rows)))
        if end == self.offsets:
            return None
        ranges = ranges_between(self.source, self.offsets, end)
        self.ended = source_ends(self.source, self.offsets, end)
        self.offsets, self.lost = end, sum(part.lost for part in ranges)
        return {part.split: (self.rows(part), part.ended) for part in ranges}

    def rows(self, part):
        batches = [b for way in part.parts for b in self.source.read(way.part, way.start, way.end)]
        return [value for batch in batches for value in batch.column(0).to_pylist()]

    def all(self):
        batches = []
        while (batch := self.batch()) is not None:
            batches.append(batch)
        return batches


def by_name(batch):
    return {os.path.basename(path): content for path, content in batch.items()}


def text(path):
    return FileSource.text(path).build()


def test_files_are_found_below_all_paths_and_hidden_ones_are_not(tmp_path, monkeypatch):
    there = [lines(tmp_path / name, "x") for name in ("a/1.txt", "a/b/2.txt", "c.txt")]
    for name in ("a/.3.txt", "a/_4.txt", "a/_b/5.txt", "a/.b/c/6.txt", "other/7.txt"):
        lines(tmp_path / name, "x")
    monkeypatch.chdir(tmp_path)
    source = FileSource.text("a/", (tmp_path / "c.txt").as_uri(), tmp_path / "a" / "b").build()
    assert sorted(source.parts({})) == sorted(there)
    assert pickle.loads(pickle.dumps(source)).parts({}) == source.parts({})


def test_hidden_is_what_is_hidden_below_the_path_not_the_path_itself(tmp_path):
    path = lines(tmp_path / "_private" / "a.txt", "x")
    assert text(tmp_path / "_private").parts({}) == [path]
    assert text(path).parts({}) == [path]


def test_a_path_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ProgramError, match=r"there is nothing at .*/gone; create the directory"):
        text(tmp_path / "gone")
    with pytest.raises(ProgramError, match="Arrow cannot open"):
        text("gopher://host/in")
    with pytest.raises(ProgramError, match="at least one path"):
        FileSource.text().build()


def test_files_are_begun_in_the_order_of_their_change_then_of_their_path(tmp_path):
    for name, changed in (("a", 30), ("b", 10), ("c", 20), ("d", 10)):
        lines(tmp_path / name, name, changed=changed)
    run = Run(FileSource.text(tmp_path).set_max_files_per_batch(1).build())
    assert [next(iter(by_name(batch))) for batch in run.all()] == ["b", "d", "c", "a"]


def test_each_file_is_a_split_that_ends_when_it_is_read(tmp_path):
    lines(tmp_path / "a", "1", "2")
    lines(tmp_path / "b", "3")
    source = text(tmp_path)
    assert source.splits() == [], "none is expected from the start"
    run = Run(source)
    assert by_name(run.batch()) == {"a": (["1", "2"], True), "b": (["3"], True)}
    assert run.ended
    assert run.batch() is None


def test_a_limit_of_rows_cuts_parquet_exactly_and_finishes_what_was_begun(tmp_path):
    numbers(tmp_path / "a", *range(7))
    numbers(tmp_path / "b", *range(10, 13))
    os.utime(tmp_path / "a", (1, 1))
    run = Run(FileSource.parquet(tmp_path).build(), max_rows=4)
    assert by_name(run.batch()) == {"a": ([0, 1, 2, 3], False)}
    os.utime(tmp_path / "a", (2**31, 2**31))
    run.source._known = None  # another process looks at the files
    assert by_name(run.batch()) == {"a": ([4, 5, 6], True), "b": ([10], False)}
    assert by_name(run.batch()) == {"b": ([11, 12], True)}
    assert run.ended
    assert run.batch() is None


def test_a_limit_of_rows_takes_whole_files_of_lines_until_it_is_reached(tmp_path):
    for name, count in (("a", 2), ("b", 0), ("c", 2), ("d", 5), ("e", 1)):
        lines(tmp_path / name, *range(count), changed=1)
    run = Run(text(tmp_path), max_rows=3)
    assert [list(by_name(batch)) for batch in run.all()] == [["a", "b", "c"], ["d"], ["e"]]


def test_a_limit_of_files_holds_beside_a_limit_of_rows(tmp_path):
    for name in "abcde":
        lines(tmp_path / name, 1, 2, changed=1)
    builder = FileSource.text(tmp_path).set_max_files_per_batch(2)
    assert [len(batch) for batch in Run(builder.build()).all()] == [2, 2, 1]
    assert [len(batch) for batch in Run(builder.build(), max_rows=1).all()] == [1] * 5
    assert [len(batch) for batch in Run(builder.build(), max_rows=99).all()] == [2, 2, 1]


def in_folders(builder):
    return builder.set_split_by(lambda path: path.split("/")[-2])


def test_files_of_one_split_are_read_in_the_order_of_their_path_and_it_ends_with_the_last(tmp_path):
    lines(tmp_path / "x" / "2", "x2", changed=1)
    lines(tmp_path / "x" / "1", "x1", changed=2)
    lines(tmp_path / "y" / "1", "y1", changed=3)
    source = in_folders(FileSource.text(tmp_path)).build()
    assert source.splits() == ["x", "y"], "these hold the watermark from the start"
    assert Run(source).all() == [{"x": (["x1", "x2"], True), "y": (["y1"], True)}]
    one_by_one = in_folders(FileSource.text(tmp_path).set_max_files_per_batch(1)).build()
    run = Run(one_by_one)
    assert run.batch() == {"x": (["x1"], False), "y": (["y1"], True)}
    assert not run.ended
    assert run.batch() == {"x": (["x2"], True)}
    assert run.ended


def test_a_limit_of_rows_is_shared_among_splits_with_names(tmp_path):
    numbers(tmp_path / "x" / "1", 1, 2, 3)
    numbers(tmp_path / "x" / "2", 4, 5)
    numbers(tmp_path / "y" / "1", 11, 12, 13, 14, 15, 16, 17)
    run = Run(in_folders(FileSource.parquet(tmp_path)).build(), max_rows=8)
    assert run.batch() == {"x": ([1, 2, 3, 4], False), "y": ([11, 12, 13, 14], False)}
    assert run.batch() == {"x": ([5], True), "y": ([15, 16, 17], True)}


def test_a_split_with_a_name_goes_on_as_long_as_its_directory_is_monitored(tmp_path):
    lines(tmp_path / "x" / "1", "x1")
    run = Run(in_folders(FileSource.text(tmp_path).monitor_continuously(ALWAYS)).build())
    assert run.batch() == {"x": (["x1"], False)}
    lines(tmp_path / "x" / "0", "x0")
    lines(tmp_path / "y" / "1", "y1")
    assert run.batch() == {"x": (["x0"], False), "y": (["y1"], False)}
    assert not run.ended


def test_a_function_that_names_no_split_is_refused(tmp_path):
    lines(tmp_path / "a", "x")
    with pytest.raises(ProgramError, match=r"must give a str, and gave 1 for '.*/a'"):
        FileSource.text(tmp_path).set_split_by(lambda path: 1).build().splits()


def test_what_comes_after_the_start_of_a_bounded_job_is_not_read_not_even_after_a_restart(tmp_path):
    lines(tmp_path / "a", "a")
    lines(tmp_path / "b", "b")
    run = Run(FileSource.text(tmp_path).set_max_files_per_batch(1).build())
    assert len(run.batch()) == 1
    lines(tmp_path / "c", "c")
    run.source = FileSource.text(tmp_path).set_max_files_per_batch(1).build()
    assert by_name(run.batch()) == {"b": (["b"], True)}
    assert run.ended
    assert run.batch() is None


@pytest.mark.parametrize("split_by", [None, lambda path: path.split("/")[-2]])
def test_a_bounded_job_over_nothing_ends_at_once(tmp_path, split_by):
    run = Run(FileSource.text(tmp_path).set_split_by(split_by).build())
    assert [rows for rows, _ in run.batch().values()] == [[]]
    assert run.ended
    lines(tmp_path / "a" / "a", "a")
    assert run.batch() is None


def test_a_monitored_directory_gives_new_files_and_never_ends(tmp_path):
    run = Run(FileSource.text(tmp_path).monitor_continuously(ALWAYS).build())
    assert not run.source.is_bounded()
    assert run.batch() is None
    lines(tmp_path / "a", "a")
    assert by_name(run.batch()) == {"a": (["a"], True)}
    assert not run.ended
    assert run.batch() is None
    lines(tmp_path / "b", "b", changed=1)
    assert by_name(run.batch()) == {"b": (["b"], True)}


def test_a_directory_is_not_listed_more_often_than_its_interval_says(tmp_path):
    now = [0.0]
    builder = FileSource.text(tmp_path).monitor_continuously(Duration.of_seconds(10))
    run = Run(FileSource(builder, clock=lambda: now[0]))
    assert run.batch() is None
    lines(tmp_path / "a", "a")
    now[0] = 9.9
    assert run.batch() is None
    now[0] = 10.0
    assert by_name(run.batch()) == {"a": (["a"], True)}


def test_a_micro_batch_is_planned_with_one_look_at_the_directory(tmp_path):
    for name in "abc":
        lines(tmp_path / name, name)
    looks = []
    builder = FileSource.text(tmp_path).monitor_continuously(ALWAYS)
    source = FileSource(builder, clock=lambda: looks.append("look") or len(looks))
    next_offsets(source, {}, 2)
    assert len(looks) == 1


def test_files_of_other_file_systems_have_uris():
    file_system, _ = opened("mock:///in")
    file_system.create_dir("in/x")
    for name, text_there in (("in/x/b.txt", "b\n"), ("in/a.txt", "a\n"), ("in/_c.txt", "c\n")):
        with file_system.open_output_stream(name) as stream:
            stream.write(text_there.encode())
    run = Run(FileSource.text("mock:///in").build())
    assert run.batch() == {"mock:///in/a.txt": (["a"], True), "mock:///in/x/b.txt": (["b"], True)}


def test_a_file_that_was_read_is_forgotten_when_it_has_been_gone_for_long_enough(tmp_path):
    now = [0.0]
    builder = FileSource.text(tmp_path).monitor_continuously(ALWAYS).set_known_for(Duration.of_seconds(60))
    run = Run(FileSource(builder, clock=lambda: now[0]))
    first = lines(tmp_path / "a", "a")
    run.batch()
    os.remove(first)
    assert run.batch() is None, "nothing to do is no reason for a micro-batch"
    second = lines(tmp_path / "b", "b")
    run.batch()
    assert list(run.offsets) == [first, second]
    now[0] = 59.9
    lines(tmp_path / "a", "a")
    assert run.batch() is None, "it is back in time, and was read"
    os.remove(first)
    assert run.batch() is None
    now[0] = 119.9
    third = lines(tmp_path / "c", "c")
    run.batch()
    assert list(run.offsets) == [second, third]


def test_what_one_listing_does_not_show_is_not_read_again_after_a_restart_either(tmp_path):
    """A listing without a file, another file that makes a micro-batch, a restart, and the file is there again."""
    (tmp_path / "in").mkdir()
    builder = FileSource.text(tmp_path / "in").monitor_continuously(ALWAYS)
    for name in "ab":
        lines(tmp_path / "in" / name, name)
    run = Run(builder.build())
    run.batch()
    (tmp_path / "in" / "a").rename(tmp_path / "aside")
    lines(tmp_path / "in" / "c", "c")
    run.batch()
    run.source = builder.build()
    assert run.batch() is None
    (tmp_path / "aside").rename(tmp_path / "in" / "a")
    assert run.batch() is None


@pytest.mark.parametrize("are_gone", [5, 6, 10])
def test_a_path_that_loses_most_of_its_files_is_an_error_and_no_answer(tmp_path, are_gone):
    for folder in ("in", "other"):
        (tmp_path / folder).mkdir()
        for n in range(10):
            lines(tmp_path / folder / f"{n}", "line")
    builder = FileSource.text(tmp_path / "in", tmp_path / "other").monitor_continuously(ALWAYS)
    run = Run(builder.build())
    run.batch()
    for n in range(are_gone):
        (tmp_path / "in" / f"{n}").rename(tmp_path / f"{n}")
    lines(tmp_path / "other" / "new", "line")
    if are_gone > 5:
        for _ in range(2):
            with pytest.raises(DataError, match=rf"{are_gone} of 10 files below .*/in are gone since the last look"):
                run.batch()
    else:
        run.batch()
    for n in range(are_gone):
        (tmp_path / f"{n}").rename(tmp_path / "in" / f"{n}")
    run.batch()
    assert len(run.offsets) == 21


@pytest.mark.parametrize(
    ("had", "are_gone", "fails"), [(1, 1, False), (2, 1, False), (2, 2, True), (9, 8, False), (9, 9, True)]
)
def test_a_path_with_few_files_that_loses_all_of_them_is_an_error_too(tmp_path, had, are_gone, fails):
    (tmp_path / "in").mkdir()
    for n in range(had):
        lines(tmp_path / "in" / f"{n}", "line")
    run = Run(FileSource.text(tmp_path / "in").monitor_continuously(ALWAYS).build())
    run.batch()
    for n in range(are_gone):
        (tmp_path / "in" / f"{n}").rename(tmp_path / f"{n}")
    if fails:
        with pytest.raises(DataError, match=rf"{are_gone} of {had} files below .*/in are gone since the last look"):
            run.batch()
    else:
        assert run.batch() is None


class Runs(Run):
    """A job that can be started again, with a folder for the memory of its source."""

    def __init__(self, builder, storage, now):
        super().__init__(None)
        self.builder, self.storage, self.now = builder, str(storage), now
        self.again()

    def again(self):
        self.source = FileSource(self.builder, clock=lambda: self.now[0]).for_job("files", self.storage)


@pytest.fixture
def ten(tmp_path):
    (tmp_path / "in").mkdir()
    return [lines(tmp_path / "in" / f"{n}", f"{n}") for n in range(10)]


def monitored(*folders):
    return FileSource.text(*folders).monitor_continuously(ALWAYS)


def test_the_time_for_which_a_file_is_gone_goes_on_between_two_runs(tmp_path):
    first = lines(tmp_path / "in" / "a", "a")
    run = Runs(monitored(tmp_path / "in").set_known_for(Duration.of_seconds(60)), tmp_path / "storage", [0.0])
    run.batch()
    os.remove(first)
    run.now[0] = 5.0
    assert run.batch() is None
    run.again()
    run.now[0] = 64.9
    second = lines(tmp_path / "in" / "b", "b")
    run.batch()
    assert list(run.offsets) == [first, second]
    run.again()
    run.now[0] = 65.0
    third = lines(tmp_path / "in" / "c", "c")
    run.batch()
    assert list(run.offsets) == [second, third]


def test_a_run_that_finds_most_files_gone_at_its_start_ends_with_an_error(tmp_path, ten):
    run = Runs(monitored(tmp_path / "in"), tmp_path / "storage", [0.0])
    run.batch()
    (tmp_path / "in").rename(tmp_path / "away")
    (tmp_path / "in").mkdir()
    run.again()
    for _ in range(2):
        with pytest.raises(DataError, match=r"10 of 10 files below .*/in are gone since the last look"):
            run.batch()
        run.again()
    (tmp_path / "in").rmdir()
    (tmp_path / "away").rename(tmp_path / "in")
    assert run.batch() is None


def test_files_that_were_gone_before_are_no_loss_for_the_next_run(tmp_path, ten):
    run = Runs(monitored(tmp_path / "in"), tmp_path / "storage", [0.0])
    run.batch()
    for several in (ten[:4], ten[4:6], ten[6:7]):
        for path in several:
            os.remove(path)
        assert run.batch() is None
        run.again()
    assert run.batch() is None


@pytest.mark.parametrize("changed", ["another path", "a filter", "a checkpoint of an older version"])
def test_a_changed_program_has_lost_no_files(tmp_path, ten, changed):
    run = Runs(monitored(tmp_path / "in"), tmp_path / "storage", [0.0])
    run.batch()
    new = lines(tmp_path / "new" / "a", "new")
    if changed == "another path":
        run.builder = monitored(tmp_path / "new")
    elif changed == "a filter":

        class OnlyNew(FilePathFilter):
            def filter_path(self, file_path):
                return not file_path.endswith("new/a")

        run.builder = monitored(tmp_path / "in", tmp_path / "new")
        run.builder.path_filter = OnlyNew()
    else:
        run.builder = monitored(tmp_path / "in", tmp_path / "new")
        shutil.rmtree(tmp_path / "storage")
        for path in ten:
            os.remove(path)
    run.again()
    run.batch()
    assert run.offsets[new]["ended"]


def test_what_cannot_be_remembered_is_said(tmp_path, ten):
    (tmp_path / "storage").write_text("no folder")
    with pytest.warns(UserWarning, match="the job does not know which files of a source are gone"):
        Runs(monitored(tmp_path / "in"), tmp_path / "storage", [0.0]).batch()


def test_a_path_may_lose_most_of_its_files_where_that_is_said(tmp_path):
    for n in range(10):
        lines(tmp_path / f"{n}", "line")
    run = Run(FileSource.text(tmp_path).monitor_continuously(ALWAYS).set_may_lose_most(True).build())
    run.batch()
    for n in range(10):
        (tmp_path / f"{n}").unlink()
    new = lines(tmp_path / "new", "line")
    run.batch()
    assert run.offsets[new]["ended"]


@pytest.mark.parametrize("duration", [60, Duration.of_seconds(-1)])
def test_how_long_files_stay_known_is_a_duration(tmp_path, duration):
    with pytest.raises(ProgramError, match="set_known_for needs a Duration"):
        FileSource.text(tmp_path).set_known_for(duration)


def test_no_file_of_a_checkpoint_leads_out_of_its_path(tmp_path):
    (tmp_path / "in").mkdir()
    lines(tmp_path / "in" / "a", "a")
    lines(tmp_path / "secret", "key")
    source = FileSource.text(tmp_path / "in").build()
    with pytest.raises(StateError, match=r"the file .* is outside"):
        list(source.read(f"{tmp_path}/in/../secret", 0, 4))


def test_a_file_that_goes_before_it_was_begun_is_counted_in_a_monitored_directory(tmp_path):
    waiting = [lines(tmp_path / name, name, changed=1) for name in "abc"]
    run = Run(FileSource.text(tmp_path).monitor_continuously(ALWAYS).set_max_files_per_batch(1).build())
    run.batch()
    os.remove(waiting[1])
    assert by_name(run.batch()) == {"c": (["c"], True), "b": ([], True)}
    assert run.lost == 1
    assert sorted(run.offsets) == [waiting[0], waiting[2]]


def test_a_run_that_stops_reads_what_is_there_and_what_was_begun(tmp_path):
    for name in "ab":
        numbers(tmp_path / name, 1, 2, 3)
    source = FileSource.parquet(tmp_path).monitor_continuously(ALWAYS).build()
    start = next_offsets(source, {}, 2)
    target = source.latest_positions()
    lines(tmp_path / "0", "new, and not even Parquet", changed=1)
    while (end := next_offsets(source, start, 2, target)) != start:
        start = end
    assert {os.path.basename(path): at["ended"] for path, at in start.items() if at["position"]} == {
        "a": True,
        "b": True,
    }


@pytest.mark.parametrize("make", [FileSource.text, FileSource.parquet])
def test_a_file_that_is_gone_when_it_is_planned_or_read_is_named(tmp_path, make):
    path = tmp_path / "a"
    numbers(path, 1, 2, 3)
    run = Run(make(path).build())
    end = next_offsets(run.source, run.offsets, None)
    path.unlink()
    with pytest.raises(DataError, match=rf"the file {path} is gone, and it is still to be read"):
        run.rows(ranges_between(run.source, run.offsets, end)[0])
    run.source._known = None
    tmp_path.joinpath("b").touch()
    with pytest.raises(ProgramError, match="there is nothing at"):
        next_offsets(run.source, run.offsets, None)
    with pytest.raises(StateError, match=rf"names the file {path}, which is under none of the paths"):
        next_offsets(text(tmp_path / "b"), {str(path): {"start": 0, "position": 0, "ended": False}}, None)


def test_a_file_that_goes_while_it_is_being_read_is_named(tmp_path):
    numbers(tmp_path / "a", 1, 2, 3)
    run = Run(FileSource.parquet(tmp_path).monitor_continuously(ALWAYS).build(), max_rows=2)
    run.batch()
    os.remove(tmp_path / "a")
    with pytest.raises(DataError, match=r"/a is gone, and it is still to be read"):
        run.batch()


@pytest.mark.parametrize("values", [(1, 2), (1, 2, 3, 4), ()])
@pytest.mark.parametrize("max_rows", [None, 2])
def test_a_file_that_has_changed_since_it_was_planned_is_named(tmp_path, values, max_rows):
    numbers(tmp_path / "a", 1, 2, 3)
    run = Run(FileSource.parquet(tmp_path).build(), max_rows)
    if max_rows is not None:
        run.batch()
    end = next_offsets(run.source, run.offsets, max_rows)
    numbers(tmp_path / "a", *values)
    with pytest.raises(DataError, match=rf"/a has changed since it was found: it had 3 rows and has {len(values)}"):
        run.rows(ranges_between(run.source, run.offsets, end)[0])


def test_a_file_of_lines_that_has_grown_since_it_was_planned_is_named(tmp_path):
    lines(tmp_path / "a", "a")
    run = Run(text(tmp_path))
    end = next_offsets(run.source, run.offsets, None)
    lines(tmp_path / "a", "a", "b")
    with pytest.raises(DataError, match=r"has changed since it was found: it had 2 bytes and has 4\. .* move it in"):
        run.rows(ranges_between(run.source, run.offsets, end)[0])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda builder: builder.monitor_continuously(10),
        lambda builder: builder.monitor_continuously(Duration.of_seconds(-1)),
        lambda builder: builder.set_max_files_per_batch(0),
        lambda builder: builder.set_max_files_per_batch(True),
    ],
)
def test_what_a_builder_cannot_take_is_refused(tmp_path, wrong):
    with pytest.raises(ProgramError):
        wrong(FileSource.text(tmp_path))


def test_a_builder_can_be_used_twice(tmp_path):
    builder = FileSource.text(tmp_path).monitor_continuously(ALWAYS)
    endless = builder.build()
    assert builder.process_static_file_set().build().is_bounded()
    assert not endless.is_bounded()


@settings(max_examples=60)
@given(
    files=st.dictionaries(
        st.tuples(st.sampled_from("xyz"), st.sampled_from("123")), st.integers(0, 9), min_size=1, max_size=7
    ),
    max_rows=st.none() | st.integers(1, 12),
    max_files=st.none() | st.integers(1, 4),
    named=st.booleans(),
    parquet=st.booleans(),
    data=st.data(),
)
def test_any_limits_give_every_row_once_and_in_the_order_of_its_split(
    tmp_path_factory, files, max_rows, max_files, named, parquet, data
):
    folder = tmp_path_factory.mktemp("files")
    expected, changed = {}, data.draw(st.permutations(range(len(files))))
    for at, ((split, name), count) in zip(changed, sorted(files.items()), strict=True):
        path = folder / split / name
        rows = [f"{split}{name}{i}" for i in range(count)]
        if parquet:
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"n": pa.array(rows, pa.string())}), path, row_group_size=4)
        else:
            lines(path, *rows)
        os.utime(path, (at, at))
        expected.setdefault(split if named else str(path), []).extend(rows)
    builder = FileSource.parquet(folder) if parquet else FileSource.text(folder)
    builder = builder.set_max_files_per_batch(max_files)
    read, ended = {}, []
    run = Run((in_folders(builder) if named else builder).build(), max_rows)
    while (batch := run.batch()) is not None:
        queues = len(expected) if named else 1
        assert max_files is None or len(batch) <= max(max_files, queues)
        if parquet and max_rows is not None:
            assert sum(len(rows) for rows, _ in batch.values()) <= max(max_rows, queues)
        for split, (rows, end) in batch.items():
            assert split not in ended
            read.setdefault(split, []).extend(rows)
            ended += [split] if end else []
        run.source = pickle.loads(pickle.dumps(run.source)) if not named else run.source
    assert read == expected
    assert sorted(ended) == sorted(expected)
    assert run.ended


UNITS = {"s": 1_000, "ms": 1, "us": 1, "ns": 1}


def stamped(path, column, kind, groups=3, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    times = pa.array(column, pa.int64()).cast(kind)
    pq.write_table(pa.table({"n": range(len(column)), "at": times}), path, row_group_size=groups, **options)


@given(
    times=st.lists(st.integers(-50, 50), max_size=12),
    unit=st.sampled_from([None, *UNITS]),
    asked=st.one_of(st.integers(-60, 60), st.sampled_from([-(2**63), 2**63 - 1])),
    statistics=st.booleans(),
)
@settings(max_examples=60)
def test_a_time_is_found_in_a_parquet_file_by_its_row_groups(tmp_path_factory, times, unit, asked, statistics):
    folder = tmp_path_factory.mktemp("files")
    kind = pa.int64() if unit is None else pa.timestamp(unit, "UTC" if unit == "us" else None)
    stamped(folder / "a.parquet", times, kind, write_statistics=statistics)
    source = FileSource.parquet(folder).build()
    [path] = source.parts({})
    per = {None: 1, "s": 1_000, "ms": 1, "us": 0.001, "ns": 0.000_001}[unit]
    later = (row for row, time in enumerate(times) if time * per >= asked + 1)
    row = next(later, None)
    end = source.latest_position(path)
    for _ in range(2):
        assert source.positions_at(asked, {path: 0}, "at") == {path: end if row is None else 2 * row}
    assert source.rows_between(path, 2, end) == len(times) - 1


def test_files_of_a_split_are_read_up_to_a_time_one_after_the_other(tmp_path):
    for name, times in {"x/1": [1, 2], "x/2": [3, 9], "x/3": [4], "y/1": [7, 8]}.items():
        stamped(tmp_path / f"{name}.parquet", times, pa.int64())
    source = in_folders(FileSource.parquet(tmp_path)).build()

    def reached(timestamp_ms):
        found = source.positions_at(timestamp_ms, dict.fromkeys(source.parts({}), 0), "at")
        return {"/".join(path.split("/")[-2:]).removesuffix(".parquet"): at for path, at in found.items()}

    assert reached(0) == {"x/1": 0, "y/1": 0}
    assert reached(3) == {"x/1": 5, "x/2": 2, "y/1": 0}
    assert reached(9) == {"x/1": 5, "x/2": 5, "x/3": 3, "y/1": 5}


def test_files_that_tell_no_time_say_so(tmp_path):
    stamped(tmp_path / "a.parquet", [1], pa.int64())
    source = FileSource.parquet(tmp_path).build()
    positions = dict.fromkeys(source.parts({}), 0)
    assert source.positions_at(5, positions) is None, "the strategy computes its times"
    assert source.positions_at(5, positions, "when") is None
    lines(tmp_path / "text" / "a.txt", "1")
    text = FileSource.text(tmp_path / "text").build()
    assert text.positions_at(5, dict.fromkeys(text.parts({}), 0), "value") is None


class Committed(Runs):
    """A job that can be started again, and that tells its source of each micro-batch that is committed."""

    def batch(self):
        before = {part: at["position"] for part, at in self.offsets.items()}
        found = super().batch()
        if found is not None:
            self.source.commit(before)  # as Spark does, when the next one is planned
        return found


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(_planning, "_FEW", 2)


def segments(tmp_path):
    return sorted((tmp_path / "storage" / "finished").glob("*"))


def test_of_many_files_that_were_read_the_offsets_have_the_last_ones_alone(tmp_path, few):
    (tmp_path / "in").mkdir()
    run, read = Committed(monitored(tmp_path / "in"), tmp_path / "storage", [0.0]), []
    for n in range(40):
        lines(tmp_path / "in" / f"{n:02}", f"{n}")
        read += [name for name, (rows, ended) in by_name(run.batch()).items()]
        assert len(run.offsets) <= 7
        if n % 7 == 3:
            run.again()
    assert read == [f"{n:02}" for n in range(40)]
    assert run.batch() is None
    assert 1 <= len(segments(tmp_path)) <= 5
    run.again()
    assert run.batch() is None
    lines(tmp_path / "in" / "new", "new")
    assert by_name(run.batch()) == {"new": (["new"], True)}


def test_no_file_is_taken_out_of_the_offsets_before_its_micro_batch_is_committed(tmp_path, few):
    (tmp_path / "in").mkdir()
    run = Runs(monitored(tmp_path / "in"), tmp_path / "storage", [0.0])
    for n in range(10):
        lines(tmp_path / "in" / f"{n}", f"{n}")
        run.batch()
    assert (len(run.offsets), segments(tmp_path)) == (10, [])


def test_the_list_of_files_forgets_those_that_are_gone_for_long_enough(tmp_path, few):
    (tmp_path / "in").mkdir()
    now = [0.0]
    builder = monitored(tmp_path / "in").set_known_for(Duration.of_seconds(60)).set_may_lose_most(True)
    run = Committed(builder, tmp_path / "storage", now)
    for n in range(10):
        lines(tmp_path / "in" / f"{n}", f"{n}")
        run.batch()
    for n in range(10):
        os.remove(tmp_path / "in" / f"{n}")
    assert run.batch() is None
    now[0] = 59.0
    lines(tmp_path / "in" / "0", "0")
    assert run.batch() is None, "it is back in time, and was read"
    os.remove(tmp_path / "in" / "0")
    assert run.batch() is None
    now[0] = 130.0
    assert run.batch() is None
    run.again()
    lines(tmp_path / "in" / "0", "0")
    assert by_name(run.batch()) == {"0": (["0"], True)}


def test_a_path_that_is_empty_at_the_start_of_a_run_is_found_though_offsets_do_not_name_its_files(tmp_path, few, ten):
    run = Committed(monitored(tmp_path / "in").set_max_files_per_batch(1), tmp_path / "storage", [0.0])
    run.all()
    lines(tmp_path / "in" / "more", "more")
    run.batch()
    for file in (tmp_path / "in").iterdir():
        file.unlink()
    run.again()
    with pytest.raises(DataError, match=r"files below .* are gone since the last look"):
        run.batch()


def test_files_of_named_splits_stay_in_the_offsets_and_those_of_the_list_are_not_read_again(tmp_path, few):
    (tmp_path / "in" / "a").mkdir(parents=True)
    run = Committed(monitored(tmp_path / "in"), tmp_path / "storage", [0.0])
    for n in range(10):
        lines(tmp_path / "in" / "a" / f"{n}", f"{n}")
        run.batch()
    known = len(run.offsets)
    run.builder = monitored(tmp_path / "in").set_split_by(lambda path: path.split("/")[-2])
    run.again()
    for n in range(10, 20):
        lines(tmp_path / "in" / "a" / f"{n}", f"{n}")
        assert [rows for rows, _ in run.batch().values()] == [[f"{n}"]]
    assert len(run.offsets) == known + 10


def test_a_list_that_cannot_be_read_is_an_error_and_no_reason_to_read_all_again(tmp_path, few):
    (tmp_path / "in").mkdir()
    run = Committed(monitored(tmp_path / "in"), tmp_path / "storage", [0.0])
    for n in range(10):
        lines(tmp_path / "in" / f"{n}", f"{n}")
        run.batch()
    segments(tmp_path)[0].write_bytes(b"half")
    run.again()
    with pytest.raises(StateError, match=r"finished/.* is not as it was written: .* which reads all files again"):
        run.batch()


@pytest.mark.parametrize("is_moved", [True, False])
@pytest.mark.parametrize("restarts", [True, False])
def test_a_file_that_gets_the_name_of_one_that_was_removed_is_another_one(tmp_path, is_moved, restarts):
    folder, read = tmp_path / "in", []
    builder = FileSource.text(folder).monitor_continuously(ALWAYS)
    builder = builder.move_when_read(str(tmp_path / "read")) if is_moved else builder.delete_when_read()

    def run_from(offsets):
        run = Run(builder.build().for_job("files", str(tmp_path / "memory")))
        run.offsets = offsets
        return run

    def go_on(run):
        for _ in range(4):
            for rows, _ in (run.batch() or {}).values():
                read.extend(rows)
            run.source.commit({part: at["position"] for part, at in run.offsets.items()})

    lines(folder / "hour.csv", "the first hour, a long line")
    run = run_from({})
    go_on(run)
    assert not [*folder.iterdir()]
    if restarts:
        run = run_from(run.offsets)
    lines(folder / "hour.csv", "the second")
    go_on(run)
    assert read == ["the first hour, a long line", "the second"]
    assert not [*folder.iterdir()]
    assert is_moved == (len([*tmp_path.glob("read/*")]) == 2)


def test_a_file_that_was_replaced_before_it_was_removed_is_not_removed_unread(tmp_path):
    folder, read = tmp_path / "in", []
    lines(folder / "a", "1", "2", changed=1)
    run = Run(FileSource.text(folder).monitor_continuously(ALWAYS).delete_when_read().build())
    read += next(iter(run.batch().values()))[0]
    lines(folder / "a", "3", changed=2)
    for _ in range(4):
        run.source.commit({part: at["position"] for part, at in run.offsets.items()})
        for rows, _ in (run.batch() or {}).values():
            read.extend(rows)
    assert read == ["1", "2", "3"]
    assert not [*folder.iterdir()]


def test_a_commit_looks_at_no_file_that_waits(tmp_path, monkeypatch):
    for number in range(9):
        numbers(tmp_path / f"{number}.parquet", number)
    run = Run(FileSource.parquet(tmp_path).set_max_files_per_batch(1).delete_when_read().build())
    run.batch()
    opened = []
    monkeypatch.setattr("eventide.connectors.file_system.files.File.info", lambda file: opened.append(file.path))
    run.source.commit({part: at["position"] for part, at in run.offsets.items()})
    assert len(opened) == 1


def test_what_a_run_that_takes_what_is_there_asks_first_changes_no_memory(tmp_path):
    """The files of earlier runs are not known then."""
    builder = FileSource.text(tmp_path / "in").monitor_continuously(ALWAYS)
    for number in range(20):
        lines(tmp_path / "in" / str(number), "x")
    memory = str(tmp_path / "memory")
    run = Run(builder.build().for_job("files", memory))
    run.all()
    for path in (tmp_path / "in").iterdir():
        path.unlink()
    before = {path: path.read_bytes() for path in (tmp_path / "memory").rglob("*") if path.is_file()}
    later = builder.build().for_job("files", memory)
    assert later.latest_positions() == {}
    assert {path: path.read_bytes() for path in (tmp_path / "memory").rglob("*") if path.is_file()} == before
    with pytest.raises(DataError, match=r"20 of 20 files below .* are gone since the last look"):
        next_offsets(later, run.offsets, None, {})


def test_a_question_mark_in_a_local_path_is_a_character(tmp_path):
    for folder in ("q?a", "q?b", "q"):
        lines(tmp_path / folder / "1.txt", folder)
    source = FileSource.text(tmp_path / "q?a", tmp_path / "q?b").build()
    assert sorted(source.parts({})) == [str(tmp_path / folder / "1.txt") for folder in ("q?a", "q?b")]


def test_two_paths_of_one_place_are_refused():
    with pytest.raises(ProgramError, match=r"s3://b/in\?region=eu and s3://b/in name the same place"):
        FileSource.text("s3://b/in?region=eu", "s3://b/in").build()


def test_a_file_that_is_empty_when_it_is_found_is_read_when_it_has_rows(tmp_path):
    (tmp_path / "a.txt").write_text("first\n")
    late = tmp_path / "b.txt"
    late.touch()
    run = Run(FileSource.text(str(tmp_path)).monitor_continuously(Duration(0)).build())
    assert [by_name(batch) for batch in run.all()] == [{"a.txt": (["first"], True)}]
    late.write_text("second\n")
    assert [by_name(batch) for batch in run.all()] == [{"b.txt": (["second"], True)}]
