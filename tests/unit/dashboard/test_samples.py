"""Samples for Prometheus and OpenTelemetry."""

import json
import re
from pathlib import Path

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

from eventide.common.job import BatchProgress
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.dashboard.server import PREFIX, exposition, registry_of
from eventide.dashboard.telemetry import Telemetry
from eventide.dashboard.watched import METRICS, MOST_SPLITS, samples
from support.watching import NASTY, T, finished, job_of_the_twin

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


def test_every_metric_that_is_named_can_be_told():
    assert {name for name, *_ in values_of(finished([ALL_KINDS]))} == {metric.name for metric in METRICS}


def test_prometheus_reads_what_it_is_given():
    text = exposition(registry_of(lambda: [job_of_the_twin(), finished([ALL_KINDS], name='a "job"\n')])).decode()
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
