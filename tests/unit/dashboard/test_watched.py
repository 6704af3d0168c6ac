"""Values of a job for its page, and samples for Prometheus and OpenTelemetry."""

import json
import re
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

from eventide.common.job import BatchProgress, JobRestart, JobStatus, completed
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.dashboard import watched
from eventide.dashboard.server import PREFIX, exposition, registry_of
from eventide.dashboard.watched import METRICS, MOST_SPLITS, Telemetry, WatchedJob, WatchedJobs, samples
from support.watching import NASTY, T, finished, job_of_the_twin


def test_a_micro_batch_has_what_its_charts_show():
    first, second, third, end = job_of_the_twin().batches()
    assert [one["rows_in"] for one in (first, second, third, end)] == [2, 2, 2, 0]
    assert third["operators"][NASTY] == {
        "in": 2,
        "out": 1,
        "dropped": 0,
        "aside": 1,
        "dead": 0,
        "watermark": T + 25,
        "held": {"numOpenWindows": 2},
    }
    assert third["splits"] == {"count": 2, "silent": 0, "at": [T + 25, T + 25, T + 25, T + 30]}
    assert end["operators"][NASTY]["watermark"] == "end"


def test_only_what_is_new_is_given_again():
    job = job_of_the_twin()
    assert [one["batch"] for one in job.batches(after=1)] == [2, 3]
    assert job.batches(after=3) == []


def test_the_slowest_splits_have_their_whole_way():
    (slow,) = job_of_the_twin().slowest(1)
    assert slow == {"source": "script", "split": "a", "watermarks": [T - 1, T + 24, T + 25, T + 25]}


def test_of_a_job_with_many_splits_fewer_micro_batches_have_their_whole_way():
    splits = {"s": {str(n): n for n in range(10_000)}}
    job = finished([BatchProgress(batch, {"w": {}}, {"w": 5}, splits) for batch in range(40)])
    assert [one["batch"] for one in job.batches()] == [*range(20, 40)]
    assert [len(one["watermarks"]) for one in job.slowest(2)] == [20, 20]


def test_what_was_said_stands_until_something_else_is_said():
    """A micro-batch in which nothing came for an operator has nothing of it."""
    job = finished(
        [
            BatchProgress(3, {"w": {}}, {"w": 5}, {"s": {"a": MIN_MS, "b": 7}}),
            BatchProgress(4, {"w": {}}, {}, {}),
            BatchProgress(5, {"w": {}}, {"w": MAX_MS}, {"s": {"a": 9}}),
        ]
    )
    first, second, third = job.batches()
    assert [one["operators"]["w"]["watermark"] for one in (first, second, third)] == [5, 5, "end"]
    assert first["splits"] == second["splits"] == {"count": 2, "silent": 1, "at": [7, 7, 7, 7]}
    assert third["splits"] == {"count": 1, "silent": 0, "at": [9, 9, 9, 9]}, "a split that has ended is gone"
    assert job.slowest(5) == [{"source": "s", "split": "a", "watermarks": [None, None, 9]}]
    assert job.last().splits_of == {"s": {"a": 9}}


def test_thousands_of_splits_are_a_band_and_the_slowest():
    splits = {str(n): T + n for n in range(5_000)}
    job = finished([BatchProgress(0, {}, {}, {"s": splits})])
    (batch,) = job.batches()
    assert batch["splits"] == {"count": 5_000, "silent": 0, "at": [T, T + 500, T + 2_500, T + 4_999]}
    assert [one["split"] for one in job.slowest(3)] == ["0", "1", "2"]


def test_a_failure_is_told_in_words():
    failed: Future[object] = Future()
    failed.set_exception(ValueError("a bad element"))
    client = SimpleNamespace(
        get_job_status=lambda: completed(JobStatus.FAILED),
        get_job_execution_result=lambda: failed,
        get_job_id=lambda: "7",
        get_restarts=lambda: [JobRestart(3, 0, "OSError: disk", 10)],
    )
    heading = WatchedJob(1, "trips", client, {}).heading()
    assert (heading["status"], heading["failure"]) == ("failed", "ValueError: a bad element")
    assert (heading["restarts"], heading["last_restart"]) == (3, "OSError: disk")


def test_why_is_what_the_client_says():
    def client(**methods):
        return WatchedJob(1, "trips", SimpleNamespace(get_progress=list, **methods), {})

    def fails(operator):
        raise KeyError(operator)

    assert client(why=lambda operator: f"{operator} waits for split b").why("w") == "w waits for split b"
    assert client(why=fails).why("w") == "The reason could not be determined: 'w'"


def test_why_is_found_out_once_after_a_micro_batch_while_the_answer_is_fresh(monkeypatch):
    asked, known = [], [BatchProgress(0, {}, {}, {})]
    client = SimpleNamespace(
        get_progress=lambda: known, get_restarts=list, why=lambda operator: asked.append(operator) or len(asked)
    )
    job = WatchedJob(1, "trips", client, {})
    assert [job.why("w"), job.why("w"), job.why("v")] == ["1", "1", "2"]
    known.append(BatchProgress(1, {}, {}, {}))
    assert job.why("w") == "3"
    monkeypatch.setattr(watched, "_FRESH_S", 0)
    assert job.why("w") == "4"


def test_jobs_that_run_stay_and_of_those_that_ended_the_last():
    def client(status):
        return SimpleNamespace(get_job_status=lambda: completed(status))

    jobs = WatchedJobs()
    jobs.add("runs", client(JobStatus.RUNNING), {})
    for n in range(25):
        jobs.add(str(n), client(JobStatus.FINISHED), {})
    assert [job.name for job in jobs()] == ["runs", *map(str, range(5, 25))]


MONITORING = Path(__file__).parents[3] / "examples" / "monitoring"

ALL_KINDS = BatchProgress(
    7,
    {
        "w": {metric.name: 2 for metric in METRICS if metric.is_counter}
        | {"bad": 3, "size": {0: 4, 1: 6}, "calls": {"count": 8, "rate": 0.5}, "name": {0: "text"}}
    },
    {"w": T, "none yet": MIN_MS, "over": MAX_MS},
    {"s": {"a": T, "b": MIN_MS, "c": T + 5}},
    held={"w": {"numOpenWindows": 1, "numOpenSessions": 2, "numKeys": 3, "numTimers": 4, "numElements": 5}},
    rows_in=9,
    began_ms=T + 1_000,
    took_ms=500,
    spent_ms={"planning": 100, "running": 400},
    state_bytes=(10, 20),
    sink_ms={"results": 70},
    pending={"s": 40},
    pending_of={"s": {"a": 33, "c": 7, "b": 0}},
)


def values_of(*jobs, now_ms=T + 2_000):
    return {
        (one.metric.name, *(one.labels[name] for name in one.labels if name not in ("job", "job_id"))): one.value
        for one in samples(jobs, now_ms)
    }


def test_times_are_told_where_there_are_some():
    told = values_of(finished([ALL_KINDS]))
    assert {key: value for key, value in told.items() if "atermark" in key[0]} == {
        ("currentInputWatermark", "w"): T,
        ("currentOutputWatermark", "w"): T,
        ("watermarkLag", "w"): 2_000,
        ("currentWatermark", "s", "a"): T,
        ("currentWatermark", "s", "c"): T + 5,
        ("lowestSplitWatermark", "s"): T,
        ("highestSplitWatermark", "s"): T + 5,
    }
    assert (told["numSplits", "s"], told["numSilentSplits", "s"]) == (3, 1)


def test_metrics_of_functions_are_told_by_name_subtask_and_statistic():
    told = values_of(finished([ALL_KINDS]))
    assert {key[2:]: value for key, value in told.items() if key[0] == "functionMetric"} == {
        ("bad", "", ""): 3,
        ("size", "0", ""): 4,
        ("size", "1", ""): 6,
        ("calls", "", "count"): 8,
        ("calls", "", "rate"): 0.5,
    }


def test_a_great_many_splits_are_told_by_the_first_and_the_last():
    splits = {str(n): T + n for n in range(MOST_SPLITS + 1)}
    told = values_of(finished([BatchProgress(0, {}, {}, {"s": splits})]))
    assert not [key for key in told if key[0] == "currentWatermark"]
    assert told["highestSplitWatermark", "s"] - told["lowestSplitWatermark", "s"] == MOST_SPLITS


def test_elements_that_wait_are_told_by_split_unless_there_are_a_great_many():
    few, many = (
        values_of(
            finished([BatchProgress(0, {}, {}, {}, pending={"s": sum(splits.values())}, pending_of={"s": splits})])
        )
        for splits in ({"b": 9, "a": 0}, {str(n): n for n in range(MOST_SPLITS + 1)})
    )
    assert {key: value for key, value in few.items() if "ending" in key[0]} == {
        ("pendingRecords", "s"): 9,
        ("splitPendingRecords", "s", "b"): 9,
        ("splitPendingRecords", "s", "a"): 0,
        ("highestSplitPendingRecords", "s"): 9,
    }
    assert not [key for key in many if key[0] == "splitPendingRecords"]
    assert many["highestSplitPendingRecords", "s"] == MOST_SPLITS


def test_the_page_names_the_split_in_which_most_elements_wait():
    waiting = BatchProgress(
        0, {}, {}, {}, pending={"s": 9, "t": 12}, pending_of={"s": {"a": 7, "b": 2}, "t": {"c": 12}}
    )
    nothing = BatchProgress(1, {}, {}, {}, pending={"s": 0}, pending_of={"s": {"a": 0}})
    first, second = finished([waiting, nothing]).batches()
    assert (first["pending"], first["behind"]) == ({"s": 9, "t": 12}, {"source": "t", "split": "c", "records": 12})
    assert (second["pending"], second["behind"]) == ({"s": 0}, None)


def test_of_two_runs_of_a_job_the_last_one_is_told():
    """Prometheus takes the first of two samples of a series: that of the run that has ended."""
    ended, goes_on = finished([BatchProgress(3, {}, {}, {})]), finished([BatchProgress(4, {}, {}, {})])
    told = [(one.metric.name, one.value) for one in samples([ended, goes_on], T)]
    assert [value for name, value in told if name == "lastMicroBatch"] == [4]


def test_every_metric_that_is_named_can_be_told():
    assert {name for name, *_ in values_of(finished([ALL_KINDS]))} == {metric.name for metric in METRICS}


def test_prometheus_reads_what_it_is_given():
    text = exposition(
        registry_of(lambda: [job_of_the_twin(), finished([ALL_KINDS], name='a "job"\n', job_id="2")])
    ).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    late = families["eventide_numLateRecordsToSideOutput"]
    assert late.type == "counter"
    by_job = {sample.labels["job"]: (sample.labels["operator"], sample.value) for sample in late.samples}
    assert by_job == {"trips": (NASTY, 1.0), 'a "job"\n': ("w", 2.0)}
    assert families["eventide_currentInputWatermark"].type == "gauge"


def in_snake_case(told):
    return {(re.sub(r"([A-Z])", r"_\1", name).lower(), *labels): value for (name, *labels), value in told.items()}


def test_opentelemetry_gets_the_same_with_names_in_its_own_style():
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    telemetry = Telemetry.of(provider)
    assert Telemetry.of(provider) is telemetry
    job = finished([ALL_KINDS])
    telemetry.watch(job.name, job.client, {})
    (resource,) = reader.get_metrics_data().resource_metrics
    read = {
        (
            metric.name,
            *(value for name, value in point.attributes.items() if name not in ("job", "job_id")),
        ): point.value
        for metric in resource.scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    told = in_snake_case(values_of(job))
    expected = {(f"eventide.{name}", *labels): value for (name, *labels), value in told.items()}
    lag = ("eventide.watermark_lag", "w")
    assert {**read, lag: 0} == {**expected, lag: 0}
    provider.shutdown()


def test_the_example_board_uses_metrics_and_labels_that_there_are():
    board = json.loads((MONITORING / "grafana-board.json").read_text())
    targets = [target for panel in board["panels"] for target in panel["targets"]]
    asked = [target["expr"] for target in targets]
    variables = [variable["query"] for variable in board["templating"]["list"]]
    text = exposition(registry_of(lambda: [finished([ALL_KINDS])])).decode()
    families = text_string_to_metric_families(text)
    told = {sample.name: set(sample.labels) for family in families for sample in family.samples}
    names = {name for expression in [*asked, *variables] for name in re.findall(rf"{PREFIX}\w+", expression)}
    assert len(names) >= 10
    assert names <= told.keys()
    for expression in asked:
        labels = set(re.findall(r"(\w+)\s*=~?\s*\"", expression))
        (name,) = set(re.findall(rf"{PREFIX}\w+", expression))
        assert labels <= told[name], expression
    legends = " ".join(target["legendFormat"] for target in targets)
    assert set(re.findall(r"{{(\w+)}}", legends)) <= set().union(*told.values())
