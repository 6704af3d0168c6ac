"""Small files below a checkpoint: how far sources have come, and which run of the job planned a micro-batch."""

import json
from functools import partial

import pyarrow as pa
import pytest

from eventide.errors import ProgramError
from eventide.runtime.sources.reached import Reached
from eventide.spark import connect
from eventide.spark.query.shared_files import AlignmentFolder, ReachedFolder, Runs, begun
from eventide.storage import Folder


def facts(watermark):
    return {"log": {"splits": {"a": watermark}}}


def test_the_last_file_counts_and_few_are_kept(tmp_path):
    folder, reader = AlignmentFolder(str(tmp_path / "alignment")), AlignmentFolder(f"file://{tmp_path}/alignment")
    assert reader.latest() == {}
    for number in range(1, 13):
        folder.write({"number": number, "sources": facts(number)})
        assert reader.latest() == facts(number)
    assert len(list((tmp_path / "alignment").iterdir())) == 3


def test_a_micro_batch_that_is_run_again_writes_the_same_place(tmp_path):
    folder = AlignmentFolder(str(tmp_path))
    for number, watermark in [(1, 10), (2, 20), (2, 20), (1, 10)]:
        folder.write({"number": number, "sources": facts(watermark)})
    assert folder.latest() == facts(20)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_last_file_says_where_operators_stand(tmp_path):
    folder, reader = ReachedFolder(str(tmp_path / "reached")), ReachedFolder(f"file://{tmp_path}/reached")
    assert reader.latest() is None
    for batch in range(7, 17):
        reached = Reached(batch, "audience", {"window": 10 * batch, "other": -1})
        folder.write(reached)
        assert reader.latest() == reached
    assert len(list((tmp_path / "reached").iterdir())) == 3


def test_a_process_that_cannot_reach_the_place_tries_it_once_and_goes_on():
    folder = ReachedFolder("nowhere://checkpoint")
    with pytest.warns(UserWarning, match="elements that might be late are sent on one by one: .*nowhere://checkpoint"):
        folder.write(Reached(1, "audience", {"window": 1}))
    assert ReachedFolder("nowhere://checkpoint").latest() is None, "it would warn again"


def test_a_place_that_cannot_be_opened_is_said(tmp_path):
    with pytest.raises(ProgramError, match="the state of sources is kept below the job's checkpoint"):
        AlignmentFolder("nowhere://checkpoint")


def test_an_attempt_that_was_thought_dead_does_not_write_into_what_another_one_writes(tmp_path, monkeypatch):
    """Two attempts of one micro-batch: the second begins to write when the first has written and not yet moved."""
    first, second = AlignmentFolder(str(tmp_path)), AlignmentFolder(str(tmp_path))
    sync, streams = Folder._sync, []

    def interrupted(folder, path):
        sync(folder, path)
        if not streams and "/." in path:
            streams.append(None)
            monkeypatch.setattr(Folder, "_sync", lambda *_: streams.append(hidden(tmp_path)) or None)
            second.write({"number": 1, "sources": facts(10)})
            monkeypatch.setattr(Folder, "_sync", sync)

    monkeypatch.setattr(Folder, "_sync", interrupted)
    first.write({"number": 1, "sources": facts(10)})
    assert len(streams[1]) == 2, "each attempt has a file of its own"
    assert (first.latest(), hidden(tmp_path)) == (facts(10), [])


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_what_attempts_have_left_that_died_is_deleted_now_and_then(tmp_path):
    (tmp_path / f".{5:020}-dead").write_text("{")
    folder = AlignmentFolder(str(tmp_path))
    for number in range(95, 101):
        folder.write({"number": number, "sources": facts(number)})
    assert hidden(tmp_path) == []


@pytest.fixture
def log(tmp_path):
    """Writes down that a micro-batch was planned at a time, or committed, as Spark does."""

    def write(name, number, content="v1\n{}"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / str(number)).write_text(content)

    return write


def planned(number, at_ms):
    return "offsets", number, f"v1\n{json.dumps({'batchTimestampMs': at_ms})}\n-"


def test_a_run_plans_every_micro_batch_where_none_was_left(tmp_path, log):
    location = str(tmp_path)
    assert begun(location, "first") == Runs("first")
    log(*planned(0, 1_000))
    log("commits", 0)
    assert begun(location, "second") == Runs("second")


def test_a_micro_batch_that_was_left_is_that_of_its_planner_however_many_runs_repeat_it(tmp_path, log):
    location = str(tmp_path)
    for run in ("too early", "planner"):
        begun(location, run)
    log(*planned(0, 1_000))
    for run in ("second", "third", "fourth"):
        assert begun(location, run) == Runs(run, "planner", 1_000)
        assert len(Folder(str(tmp_path / "eventide-runs")).read("runs", json.loads)) == 2
    log("commits", 0)
    log(*planned(1, 2_000))
    assert begun(location, "fifth") == Runs("fifth", "fourth", 2_000)


def test_a_planner_of_an_older_version_has_no_name(tmp_path, log):
    log(*planned(0, 1_000))
    runs = begun(str(tmp_path), "second")
    assert (runs.planner_of(1_000), runs.planner_of(1_001)) == (None, "second")


def test_a_run_without_a_name_leaves_its_micro_batch_without_one(tmp_path, log):
    location = str(tmp_path)
    begun(location, "first")
    log(*planned(0, 1_000))
    log("commits", 0)
    assert begun(location, None) == Runs(None)
    log(*planned(1, 2_000))
    assert begun(location, "third") == Runs("third", None, 2_000)
    assert begun(location, None) == Runs(None, None, 2_000)


def test_a_run_without_a_name_repeats_the_micro_batch_of_one_that_has_one(tmp_path, log):
    location = str(tmp_path)
    begun(location, "first")
    log(*planned(0, 1_000))
    runs = begun(location, None)
    assert (runs.planner_of(1_000), runs.planner_of(1_001)) == ("first", None)


def test_where_spark_s_log_is_not_understood_runs_are_not_told_apart_and_that_is_said(tmp_path, log):
    log("offsets", 0, "v9\n{}")
    with pytest.warns(UserWarning, match="time between two runs of the job counts as silence of its sources.*'v9'"):
        assert begun(str(tmp_path), "first") is None


def test_the_runs_come_from_a_server_of_spark_connect_as_what_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(connect, "over_connect", lambda: True)
    monkeypatch.setattr(connect, "ask_for_rows", lambda _, question, schema: pa.Table.from_batches([*question()]))
    assert connect.there(None, partial(begun, str(tmp_path), "a"), [Runs]) == Runs("a")


def test_a_run_that_may_be_refused_is_not_written_down(tmp_path, log):
    location = str(tmp_path)
    begun(location, "planner")
    log(*planned(0, 1_000))
    assert begun(location, "refused", keeps=False) == Runs("refused", "planner", 1_000)
    log("commits", 0)
    log(*planned(1, 2_000))
    assert begun(location, "second") == Runs("second", "planner", 2_000)
