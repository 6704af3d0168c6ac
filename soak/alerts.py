"""The alert rules on a run: `promtool` evaluates examples/monitoring/alerts.yml on all that the job said meanwhile.

The samples are those of the job's ``/metrics``, scraped every five seconds, at the times when they were scraped, so the
rules have the job's own minutes. One metric is changed: event time begins in the past and goes faster than the clock,
so the lag of a watermark is taken from the event time of the feed at that moment.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

RULES = Path(__file__).parents[1] / "examples" / "monitoring" / "alerts.yml"
EACH_S = 5
"""Seconds between two samples."""
_EVALUATED_S = 15
_UP = 'up{job="eventide", instance="soak"}'
_LAG, _WATERMARK = "eventide_watermarkLag", "eventide_currentInputWatermark"
_NAME = re.compile(r"eventide_\w+")
_FIRED = re.compile(r"alertname: (\w+), time: (\w+)")


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    found: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    return found


def scraped(text: str, event_ms: float) -> dict[str, float]:
    """The samples that the rules look at, by series.

    >>> text = '''# TYPE eventide_isRunning gauge
    ... eventide_isRunning{job="a"} 1.0
    ... # TYPE eventide_numSplits gauge
    ... eventide_numSplits{job="a"} 4.0
    ... # TYPE eventide_currentInputWatermark gauge
    ... eventide_currentInputWatermark{job="a"} 7000.0
    ... '''
    >>> scraped(text, 9_000)
    {'eventide_isRunning{job="a"}': 1.0, 'eventide_watermarkLag{job="a"}': 2000.0}

    Args:
        text: the answer of the job's page at ``/metrics``.
        event_ms: the event time that the feed has come to, in milliseconds since the epoch.
    """
    wanted = {name for rule in rules() for name in _NAME.findall(rule["expr"])} - {_LAG}
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in wanted:
                found[_series(sample.name, sample.labels)] = sample.value
            if sample.name == _WATERMARK:
                found[_series(_LAG, sample.labels)] = event_ms - sample.value
    return found


def fired(scrapes: Iterable[tuple[float, Mapping[str, float] | None]]) -> dict[str, list[str]] | None:
    """Return the rules that fired in a run, each with the times after its beginning; None without `promtool`.

    Args:
        scrapes: in their order, the time of each in seconds, and its samples, or None without an answer.
    """
    if shutil.which("promtool") is None:
        return None
    known = list(scrapes)
    began = known[0][0]
    # A sample that is late or missing is not there, as in Prometheus, which then takes the one before.
    steps = {round((at - began) / EACH_S): samples for at, samples in known}
    names = {name for samples in steps.values() for name in samples or ()}
    series = [{"series": name, "values": _values(name, steps)} for name in sorted(names)]
    series.append({"series": _UP, "values": " ".join(_up(steps, step) for step in range(max(steps) + 1))})
    # Times of samples are since the epoch for promtool too, whose clock begins at 0.
    times = range(0, max(steps) * EACH_S + 1, _EVALUATED_S)
    asked = [{"eval_time": f"{second}s", "alertname": rule["alert"]} for rule in rules() for second in times]
    test = {"interval": f"{EACH_S}s", "input_series": series, "alert_rule_test": asked}
    with tempfile.TemporaryDirectory() as folder:
        document = {"rule_files": [str(RULES)], "evaluation_interval": f"{_EVALUATED_S}s", "tests": [test]}
        path = Path(folder, "test.yml")
        path.write_text(yaml.safe_dump(document))
        said = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False)
    found: dict[str, list[str]] = {}
    for alert, at in _FIRED.findall(said.stdout + said.stderr):
        found.setdefault(alert, []).append(at)
    if said.returncode != 0 and not found:
        raise RuntimeError(f"promtool could not evaluate the rules: {said.stdout}{said.stderr}")
    return found


def read(path: Path) -> list[tuple[float, dict[str, float] | None]]:
    """Read the scrapes of a run, with the clock of its samples beginning at 0, as that of `promtool` does."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    began_ms = lines[0]["at"] * 1_000
    ended = "eventide_lastMicroBatchEnded"
    return [
        (
            line["at"],
            line["samples"]
            and {
                name: value - began_ms if name.startswith(ended) else value for name, value in line["samples"].items()
            },
        )
        for line in lines
    ]


def _series(name: str, labels: Mapping[str, str]) -> str:
    texts = ", ".join(f"{label}={json.dumps(value)}" for label, value in labels.items())
    return f"{name}{{{texts}}}"


def _values(name: str, steps: Mapping[int, Mapping[str, float] | None]) -> str:
    values, was_there = [], False
    for step in range(max(steps) + 1):
        samples = steps.get(step)
        if samples is not None and name in samples:
            values.append(repr(samples[name]))
            was_there = True
        elif samples is not None and was_there:
            values.append("stale")
            was_there = False
        else:
            values.append("_")
    return " ".join(values)


def _up(steps: Mapping[int, object], step: int) -> str:
    return "_" if step not in steps else "0" if steps[step] is None else "1"
