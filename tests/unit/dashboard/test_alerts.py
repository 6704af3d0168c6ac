"""The rules for Prometheus: of metrics that there are, each with a symptom of the runbook, and fired by its fault."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from eventide.dashboard.server import PREFIX
from eventide.dashboard.watched import METRICS

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "examples" / "monitoring"
RULES = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0]["rules"]
RUNBOOK = (ROOT / "docs" / "guide" / "runbook.md").read_text()


def test_rules_are_of_metrics_that_there_are():
    names = {f"{PREFIX}{metric.name}{'_total' if metric.is_counter else ''}" for metric in METRICS}
    used = {name for rule in RULES for name in re.findall(rf"{PREFIX}\w+", rule["expr"])}
    assert used <= names


def test_each_rule_has_a_symptom_in_the_runbook():
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lower()).strip().replace(" ", "-")
        for line in re.findall(r"^## (.*)", RUNBOOK, re.M)
    }
    assert {rule["annotations"]["runbook"].removeprefix("#") for rule in RULES} <= headings
    assert {rule["alert"] for rule in RULES} - {"EventideIsGone"} == set(re.findall(r"`(Eventide\w+)`", RUNBOOK))


def test_each_rule_is_tried():
    tried = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())["tests"]
    fired = {one["alertname"] for test in tried for one in test["alert_rule_test"] if "exp_alerts" in one}
    silent = {one["alertname"] for one in tried[0]["alert_rule_test"]}
    assert fired == silent == {rule["alert"] for rule in RULES}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of Prometheus, is not installed")
def test_each_rule_fires_in_its_fault_and_is_silent_for_a_job_that_does_well():
    command = ["promtool", "test", "rules", "alerts_test.yml"]
    said = subprocess.run(command, cwd=MONITORING, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
