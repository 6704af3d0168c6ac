"""Prometheus itself, which scrapes the dashboard of a job and evaluates `examples/monitoring/alerts.yml`.

The rules wait for minutes and days. ``shortened`` divides every length of time in a rule by a factor: how long it must
hold, its ranges and offsets, and the milliseconds that a metric is compared with. Nothing else of a rule changes, and
the samples are the job's own, at the times when they were scraped.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from eventide.testing.servers import free_ports

MONITORING = Path(__file__).parents[2] / "examples" / "monitoring"
UNIT_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SECONDS = re.compile(r"(\d+)([smhd])\b")
_LONG_MS = re.compile(r"(?<![\w.])(\d{5,})(?![\w.])")
"""Milliseconds in an expression; the factor of 1,000 in ``time() * 1000`` has fewer digits."""

needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")


def alert_rules() -> list[dict[str, Any]]:
    """The alert rules of the example."""
    rules: list[dict[str, Any]] = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0]["rules"]
    return rules


def shortened(rule: Mapping[str, Any], factor: float, bytes_factor: float = 1) -> dict[str, Any]:
    """A rule whose lengths of time are divided by a factor, and whose billion bytes by another.

    >>> rule = {"alert": "A", "expr": "rate(x[15m]) > 0 and y > 900000 and z > 1e9", "for": "10m"}
    >>> shortened(rule, 60, 1000)
    {'alert': 'A', 'expr': 'rate(x[15000ms]) > 0 and y > 15000 and z > 1000000', 'for': '10000ms'}
    """

    def less(found: re.Match[str]) -> str:
        return f"{round(int(found[1]) * UNIT_S[found[2]] * 1_000 / factor)}ms"

    expression = _LONG_MS.sub(lambda found: str(round(int(found[1]) / factor)), rule["expr"])
    expression = _SECONDS.sub(less, expression).replace("1e9", str(round(1e9 / bytes_factor)))
    return {**rule, "expr": expression} | ({"for": _SECONDS.sub(less, rule["for"])} if "for" in rule else {})


class Prometheus:
    """A Prometheus with the configuration of the example, but with a scrape and an evaluation each second.

    Args:
        place: a folder for its configuration and data.
        target: the address of the dashboard, as host and port.
        rules: the alert rules.
    """

    def __init__(self, place: Path, target: str, rules: Collection[Mapping[str, Any]]) -> None:
        place.mkdir(parents=True)
        settings = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
        [job] = settings["scrape_configs"]
        job |= {"scrape_interval": "1s", "scrape_timeout": "1s", "static_configs": [{"targets": [target]}]}
        settings |= {"global": {"evaluation_interval": "1s"}, "rule_files": ["alerts.yml"]}
        (place / "prometheus.yml").write_text(yaml.safe_dump(settings))
        groups = {"groups": [{"name": "eventide", "rules": [dict(rule) for rule in rules]}]}
        (place / "alerts.yml").write_text(yaml.safe_dump(groups))
        self._place, [self._port] = place, free_ports(1)

    def __enter__(self) -> Prometheus:
        with (self._place / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={self._place / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._place / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.terminate()
        self._process.wait()

    def firing(self) -> set[str]:
        """The rules that fire now."""
        alerts = self._asked("alerts")["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def fired(self, since_s: float, until_s: float) -> set[str]:
        """The rules that fired at any second between two times by the clock."""
        query = {"query": 'ALERTS{alertstate="firing"}', "start": since_s, "end": until_s, "step": 1}
        return {one["metric"]["alertname"] for one in self._asked("query_range", query)["result"]}

    def value(self, expression: str) -> float | None:
        """The value of an expression now; None if it has none."""
        found = self._asked("query", {"query": expression})["result"]
        return float(found[0]["value"][1]) if found else None

    def _asked(self, what: str, query: Mapping[str, Any] | None = None) -> Any:
        address = f"http://127.0.0.1:{self._port}/api/v1/{what}?{urllib.parse.urlencode(query or {})}"
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(address, timeout=10) as answer:
                    return json.load(answer)["data"]
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise AssertionError((self._place / "log").read_text()[-3_000:]) from None
                time.sleep(0.2)
