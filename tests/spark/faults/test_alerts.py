"""The alert rules on a job that runs: Prometheus scrapes it while it has the fault of each rule, before, and after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eventide.testing.servers import free_ports
from support.prometheus import Prometheus, alert_rules, needs_prometheus, shortened
from support.spark import troubled_job as job
from support.steps import in_steps

pytestmark = [pytest.mark.spark, pytest.mark.long, needs_prometheus, in_steps]

FACTORS = {
    "EventideIsGone": 8,
    "EventideHasEnded": 12,
    "EventideStartsAgain": 15,
    "EventideRepeatsMicroBatch": 1,
    "EventideStandsStill": 20,
    "EventideIsLate": 45,
    "EventideSplitIsSilent": 60,
    "EventideDropsElements": 60,
    "EventideHasDeadLetters": 45,
    "EventideStateGrows": 2_880,
    "EventideSinkIsSlow": 120,
    "EventideIsSlow": 120,
}
"""By what the lengths of time in each rule are divided: 15 minutes become 15 seconds, and a day 30 seconds."""
BYTES = 5_000
"""By what the billion bytes of a large state are divided."""
_PATIENCE_S = 400
_EACH_S = 0.5
_QUIET_S = 5
"""For how long no rule fires before the next fault comes."""
_SLOW_CHMOD = """#!/bin/sh
case "$*" in *.crc) ;; */offsets/*|*/commits/*) [ -e "{fault}" ] && sleep {seconds} ;; esac
exec {chmod} "$@"
"""
"""Hadoop calls chmod for each file that it makes: this one is slow in the folders of Spark's logs."""


class Feed:
    """Writes elements into the splits of the job, in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.splits = ["0", "1"]
        self.is_bad = False
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        for split in self.splits:
            (folder / split).touch()

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_EACH_S):
            now_ms = round(time.time() * 1_000)
            for split in [*self.splits]:
                found = [("k", now_ms, job.GOOD), ("fixed", now_ms, job.KEPT)]
                if self.is_bad:
                    found += [("k", now_ms - 3_600_000, job.GOOD), ("k", now_ms, job.BAD)]
                    found += [(uuid.uuid4().hex, now_ms, job.KEPT) for _ in range(500)]
                with (self._folder / split).open("a") as lines:
                    for key, ts, kind in found:
                        lines.write(json.dumps({"key": key, "ts": ts, "kind": kind}) + "\n")


@contextmanager
def troubled(place: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The process of the job."""
    for name in ("in", "faults", "bin"):
        (place / name).mkdir(parents=True)
    chmod = place / "bin" / "chmod"
    real = subprocess.run(["which", "chmod"], check=True, capture_output=True, text=True).stdout.strip()
    chmod.write_text(_SLOW_CHMOD.format(fault=place / "faults" / job.STORE_SLOW, seconds=job.SLOW_S, chmod=real))
    chmod.chmod(0o755)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PATH": os.pathsep.join([str(place / "bin"), os.environ["PATH"]]),
    }
    with (place / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, str(job.__file__), str(place / "checkpoint"), str(place), str(port)],
            stdout=said,
            stderr=said,
            start_new_session=True,
            env=environment,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Watch:
    """Waits for what Prometheus says, and for as long as the job lives."""

    def __init__(self, prometheus: Prometheus, place: Path) -> None:
        self._prometheus = prometheus
        self._place = place

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not is_so():
            firing = sorted(self._prometheus.firing())
            said = (self._place / "said").read_text()[-2_000:]
            assert time.monotonic() < deadline, f"waited for {what}; firing: {firing}; the job said: {said}"
            time.sleep(0.5)

    def until_all_is_well(self) -> None:
        """Wait until no rule fires, for a while."""

        def is_well() -> bool:
            now = time.time()
            return (
                now - began >= _QUIET_S and not self._prometheus.fired(now - _QUIET_S, now) | self._prometheus.firing()
            )

        began = time.time()
        self.until(is_well, "silence")

    def fires(self, *rules: str) -> None:
        """Wait until these rules fire, which were silent, and no other has fired meanwhile."""
        began = time.time()
        self.until(lambda: set(rules) <= self._prometheus.firing(), ", ".join(rules))
        assert self._prometheus.fired(began, time.time()) | self._prometheus.firing() == set(rules)


def test_each_rule_fires_in_its_fault_and_is_silent_before_and_after(tmp_path: Path, injected: Counter[str]) -> None:
    """The faults come one after the other; those that disturb no other rule come together."""
    rules = [shortened(rule, FACTORS[rule["alert"]], BYTES) for rule in alert_rules()]
    place = tmp_path / "job"
    [port] = free_ports(1)
    with (
        troubled(place, port) as process,
        Feed(place / "in") as feed,
        Prometheus(tmp_path / "prometheus", f"127.0.0.1:{port}", rules) as prometheus,
    ):
        watch = Watch(prometheus, place)
        fault = {name: place / "faults" / name for name in (job.HANGS, job.SINK_SLOW, job.SINK_GONE, job.STORE_SLOW)}
        watch.until(lambda: (prometheus.value("eventide_lastMicroBatch") or 0) > 2, "micro-batches")
        watch.until(lambda: prometheus.value("eventide_stateSize offset 30s") is not None, "a day of the state")
        watch.until_all_is_well()

        (place / "in" / "2").touch()  # a split that never has an element
        feed.is_bad = True
        watch.fires(
            "EventideSplitIsSilent",
            "EventideIsLate",
            "EventideDropsElements",
            "EventideHasDeadLetters",
            "EventideStateGrows",
        )
        feed.is_bad = False
        feed.splits.append("2")
        watch.until_all_is_well()

        for name, expected in (
            (job.SINK_SLOW, ["EventideSinkIsSlow"]),
            (job.STORE_SLOW, ["EventideIsSlow"]),
            (job.HANGS, ["EventideStandsStill"]),
            (job.SINK_GONE, ["EventideRepeatsMicroBatch", "EventideStartsAgain", "EventideHasEnded"]),
        ):
            fault[name].touch()
            watch.fires(*expected)
            fault[name].unlink()
            watch.until_all_is_well()
        assert prometheus.value("eventide_isRunning") == 1

        os.killpg(process.pid, signal.SIGKILL)
        watch.fires("EventideIsGone")
    injected.update({"symptoms": len(rules)})
