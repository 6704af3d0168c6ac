"""Which run of a job planned a micro-batch, from a small file below the checkpoint and from Spark's logs."""

import json

import pytest

from eventide.spark.query.shared_files import Runs, begun


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
        assert len(json.loads((tmp_path / "eventide-runs" / "runs").read_text())) == 2
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
