"""Samples of the job: every few seconds, from outside of it, and of each of its micro-batches, from inside."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from soak import alerts, disk, heap, processes
from soak.life import DASHBOARD, PROGRESS

SAMPLES = "samples.jsonl"
SCRAPES = "scrapes.jsonl"
_COLLECTED_EACH = 12
"""Number of samples between two collections of all garbage of the JVM, after which its heap is what lives."""
_METRICS, _BATCHES = "metrics", "api/jobs/1/batches"
"""Requests of monitoring systems and of the job's page."""
_BY_MINUTE_LEAST = ("jvm: heap after a collection, MB",)
"""Of these, what a minute has least of counts: the rest is waiting to be collected."""


class Sampler:
    """Looks at the job in a thread of its own, and writes what it sees as lines of JSON.

    Somebody who looks at the job's page is part of what is tried, so it asks for that too.

    Args:
        job: the process of the job.
        place: the folder of all that the job has.
        event_ms: gives the event time that the feed has come to.
    """

    def __init__(self, job: int, place: Path, event_ms: Callable[[], int]) -> None:
        self._event_ms = event_ms
        self._driver = psutil.Process(job)
        self._place = place
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with (self._place / SAMPLES).open("a") as lines:
            number = 0
            while not self._over.wait(alerts.EACH_S) and self._driver.is_running():
                number += 1
                try:
                    if number % _COLLECTED_EACH == 0:
                        heap.collect(processes.jvm(self._driver))
                    lines.write(json.dumps(self._sample()) + "\n")
                except (psutil.Error, OSError, subprocess.TimeoutExpired):  # it has ended, or does not answer
                    continue
                lines.flush()

    def _sample(self) -> dict[str, float]:
        found = {"at": time.time(), "load": os.getloadavg()[0], **processes.taken(self._driver)}
        found |= heap.taken(self._place, processes.jvm(self._driver))
        if "jvm: heap that it has, MB" in found:
            found["jvm: outside of the heap, MB"] = found["jvm: MB"] - found["jvm: heap that it has, MB"]
        for folder in ("checkpoint", "output"):
            found |= disk.taken(self._place / folder, folder)
        files, size = (found.get(f"checkpoint/offsets: {what}", 1) for what in ("files", "kB"))
        found["offsets of a micro-batch, kB"] = size / files
        return found | {"page, kB": self._asked_for_the_page() / 1e3}

    def _asked_for_the_page(self) -> float:
        address = self._place / DASHBOARD
        if not address.exists():
            return 0
        root = address.read_text().rstrip("/")
        metrics = self._scraped(root)
        return len(metrics) + len(_answer(f"{root}/{_BATCHES}"))

    def _scraped(self, root: str) -> bytes:
        at, event_ms = time.time(), self._event_ms()
        metrics = b""
        try:
            metrics = _answer(f"{root}/{_METRICS}")
        finally:  # a page that does not answer is a sample too
            samples = alerts.scraped(metrics.decode(), event_ms) if metrics else None
            with (self._place / SCRAPES).open("a") as lines:
                lines.write(json.dumps({"at": at, "samples": samples}) + "\n")
        return metrics


def _answer(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=10) as answer:
        content: bytes = answer.read()
    return content


def by_minute(place: Path) -> pd.DataFrame:
    """All that was seen, a row for each minute since the first micro-batch: the median of the minute, most often."""
    batches = pd.DataFrame(_lines(place / PROGRESS))
    samples = pd.DataFrame(_lines(place / SAMPLES))
    began = batches["ended_ms"].iloc[0] / 1_000 - batches["took_ms"].iloc[0] / 1_000
    minute_of_batch = ((batches["ended_ms"] / 1_000 - began) // 60).astype(int)
    minute = ((samples["at"] - began) // 60).astype(int)
    of_samples = samples.groupby(minute)
    seen = of_samples.median()
    for name in _BY_MINUTE_LEAST:
        seen[name] = of_samples[name].min()
    inside = batches.groupby(minute_of_batch).median(numeric_only=True)
    inside["micro-batches"] = batches.groupby(minute_of_batch).size()
    together = inside.join(seen, how="inner")
    together["CPU ms of a micro-batch"] = _spent(samples, minute) / together["micro-batches"] * 1_000
    together = together[together.index >= 0]
    together.index.name = "minute"
    return together.iloc[:-1] if len(together) > 1 else together  # the last one is not whole


def _spent(samples: pd.DataFrame, minute: pd.Series) -> pd.Series:
    """CPU seconds of each minute."""
    last: pd.Series = samples.groupby(minute)["CPU seconds"].last()
    return last.diff().fillna(last)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
