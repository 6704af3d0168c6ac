"""The verdict of the page: the same conditions as the alert rules, whose scenarios it gets too."""

import re
from pathlib import Path

import pytest
import yaml

from eventide.common.job import BatchProgress, FinishedJob, JobExecutionResult, JobID, JobRestart, JobStatus, completed
from eventide.common.ms import MIN_MS
from eventide.dashboard.runbook import runbook_page
from eventide.dashboard.server import PREFIX
from eventide.dashboard.verdict import RULES, Verdict
from eventide.dashboard.watched import WatchedJob, samples
from support.watching import T

MONITORING = Path(__file__).parents[3] / "examples" / "monitoring"
ALERTS = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0]["rules"]
SCENARIOS = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())["tests"]
MINUTE = 60_000


def series(values):
    """The samples that promtool's notation stands for; None where there is none."""
    found = []
    for part in values.split():
        times = re.fullmatch(r"(_|[\d.]+)(?:([+-][\d.]+))?(?:x(\d+))?", part)
        first, step, repeated = times[1], float(times[2] or 0), int(times[3] or 0)
        if first == "_":
            found += [None] * (repeated or 1)
        else:
            found += [float(first) + step * n for n in range(repeated + 1)]
    return found


def test_the_notation_of_promtool_is_understood():
    assert series("0x2 1+5x2 _x2 7") == [0, 0, 0, 1, 6, 11, None, None, 7]


def samples_of(scenario):
    """The values of a scenario at each of its minutes."""
    minutes = []
    for one in scenario["input_series"]:
        name, labels = re.fullmatch(r"(\w+)\{(.*)\}", one["series"]).groups()
        told = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        label = "/".join(value for key, value in told.items() if key not in ("job", "job_id", "instance"))
        for minute, value in enumerate(series(one["values"])):
            minutes += [{} for _ in range(minute + 1 - len(minutes))]
            if value is not None:
                metric = name.removeprefix(PREFIX).removesuffix("_total")
                minutes[minute].setdefault(metric, {})[label] = value
    return minutes


def minutes_of(text):
    number, unit = re.fullmatch(r"(\d+)([mh])", text).groups()
    return int(number) * (60 if unit == "h" else 1)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_it_tells_what_the_alerts_tell(scenario):
    """Where no page answers, it tells nothing: that is the one alert without a rule here."""
    verdict = Verdict()
    told = [
        {one.alert for one in verdict.look(minute * MINUTE, values)}
        for minute, values in enumerate(samples_of(scenario))
    ]
    for asked in scenario["alert_rule_test"]:
        if asked["alertname"] != "EventideIsGone":
            fires = asked["alertname"] in told[minutes_of(asked["eval_time"])]
            assert fires == ("exp_alerts" in asked), asked


def test_it_has_the_rules_sections_and_times_of_the_alerts():
    unit = {"m": MINUTE, "h": 60 * MINUTE}

    def wait_of(alert):
        # A page that is opened says at once that a job has ended.
        text = "0m" if alert["alert"] == "EventideHasEnded" else alert.get("for", "0m")
        return int(text[:-1]) * unit[text[-1]]

    expected = {
        alert["alert"]: (alert["annotations"]["runbook"], wait_of(alert))
        for alert in ALERTS
        if alert["alert"] != "EventideIsGone"
    }
    assert {rule.alert: (f"#{rule.section}", rule.for_ms) for rule in RULES} == expected
    urgent = [alert["alert"] for alert in ALERTS if alert["labels"]["severity"] == "page"]
    assert {rule.alert for rule in RULES[: len(urgent) - 1]} == {*urgent} - {"EventideIsGone"}


class Job(FinishedJob):
    """A job that runs, or has the status that it is given."""

    def __init__(self, progress, status=JobStatus.RUNNING, failed_ms=(), working_ms=0):
        super().__init__(JobExecutionResult(JobID("the id"), 5), [], progress)
        self.status, self.failed_ms, self.working_ms = status, failed_ms, working_ms

    def get_job_status(self):
        return completed(self.status)

    def get_restarts(self):
        return [JobRestart(number, ms, "OSError: disk", 10) for number, ms in enumerate(self.failed_ms, start=1)]

    def get_time_in_micro_batch(self):
        return self.working_ms


def batch(number, ended_ms, **facts):
    return BatchProgress(number, {}, {}, {}, began_ms=ended_ms - 1_000, took_ms=1_000, **facts)


def told_of(client, now_ms=T):
    return {one.metric.name: one.value for one in samples([WatchedJob(1, "trips", client, {})], now_ms)}


@pytest.mark.parametrize(
    ("failed_ms", "failures"),
    [((), 0), ((T - 9_000,), 0), ((T - 9_000, T - 4_000, T - 2_000), 2)],
    ids=["none", "of an earlier micro-batch", "of this one"],
)
def test_failures_are_counted_since_the_last_micro_batch_that_ended(failed_ms, failures):
    assert told_of(Job([batch(0, T - 5_000)], failed_ms=failed_ms))["currentMicroBatchFailures"] == failures


@pytest.mark.parametrize(
    ("client", "ms"),
    [
        (Job([batch(0, T - 50_000)]), 0),
        (Job([batch(0, T - 50_000, pending={"orders": 0})]), 0),
        (Job([batch(0, T - 50_000, pending={"orders": 7})]), 50_000),
        (Job([batch(0, T - 50_000)], working_ms=3_000), 3_000),
        (Job([batch(0, T - 50_000)], working_ms=3_000, failed_ms=[T - 60_000, T - 40_000, T - 8_000]), 40_000),
        (Job([], failed_ms=[T - 60_000]), 60_000),
        (Job([], JobStatus.FAILED, failed_ms=[T - 60_000]), 0),
    ],
    ids=[
        "nothing to do",
        "nothing waits",
        "elements wait",
        "at work",
        "fails again and again",
        "the first micro-batch fails",
        "ended",
    ],
)
def test_time_without_progress_is_counted_while_there_is_work(client, ms):
    assert told_of(client)["timeWithoutProgress"] == ms


@pytest.mark.parametrize(
    ("client", "text", "sections"),
    [
        (Job([batch(0, T)]), "All is well", []),
        (Job([]), "The first micro-batch has not ended yet", []),
        (Job([batch(0, T)], JobStatus.FINISHED), "It has finished", []),
        (Job([batch(0, T)], JobStatus.CANCELED), "It was cancelled", []),
        (Job([batch(0, T)], JobStatus.RESTARTING, failed_ms=[T + 600_000]), "It is starting again", []),
        (Job([batch(0, T)], JobStatus.FAILED), "It does not run", ["it-has-ended-or-starts-again-and-again"]),
        (
            Job([batch(0, T)], failed_ms=[T + 1, T + 2, T + 3], working_ms=660_000),
            "The same micro-batch has failed 3 times in a row; It has restarted 3 times within 15 minutes; "
            "It has finished no micro-batch for 11 min, and has work to do",
            ["a-micro-batch-fails-again-and-again", "it-has-ended-or-starts-again-and-again", "it-does-not-go-on"],
        ),
    ],
)
def test_a_page_has_one_line_that_says_whether_all_is_right(client, text, sections):
    verdict = WatchedJob(1, "trips", client, {}).verdict(T + 660_000)
    assert (verdict["text"], verdict["is_well"]) == (text, not sections)
    assert [one["section"] for one in verdict["symptoms"]] == sections


def test_dead_letters_of_the_first_micro_batch_are_told_for_a_quarter_of_an_hour():
    letters = {"totals": {"numDeadLetters": 3}}
    first = BatchProgress(0, letters, {}, {}, counted=letters, began_ms=T - 1_000, took_ms=1_000)
    job = WatchedJob(1, "trips", Job([first]), {})
    assert job.verdict(T)["text"] == "Dead letters of totals within 15 minutes: 3"
    for minute in range(1, 20):
        job.verdict(T + minute * MINUTE)
    assert job.verdict(T + 20 * MINUTE)["text"] == "All is well"


def test_what_was_counted_before_the_page_was_opened_is_not_news():
    letters = {"totals": {"numDeadLetters": 3}}
    job = WatchedJob(1, "trips", Job([BatchProgress(9, letters, {}, {}, began_ms=T, took_ms=1_000)]), {})
    assert job.verdict(T + 2_000)["text"] == "All is well"


def test_a_symptom_that_lasts_is_told_of_micro_batches_from_before_anybody_looked():
    """A page that is opened at night has not seen how it came to this."""
    silent = {"topic": {"0": MIN_MS, "1": T}}
    progress = [
        BatchProgress(n, {}, {}, silent if n == 0 else {}, began_ms=T + n * MINUTE, took_ms=1_000) for n in range(17)
    ]
    early, late = (WatchedJob(1, "trips", Job(progress[:count]), {}) for count in (10, 17))
    assert early.verdict(T + 10 * MINUTE)["text"] == "All is well"
    assert late.verdict(T + 17 * MINUTE)["text"] == (
        "Splits of topic that have never had a watermark: 1. No window fires"
    )


def test_the_sections_of_the_rules_are_those_of_the_runbook_that_the_page_serves():
    page = runbook_page()
    assert {rule.section for rule in RULES} <= set(re.findall(r'<h2 id="([^"]+)">', page))
    assert "<script" not in page
    assert page.count("<table>") == page.count("</table>") > 5
