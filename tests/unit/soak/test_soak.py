"""The soak's own parts that need no Spark: what it sees, what it finds, its page."""

import datetime
import json
import math
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

from eventide import __version__
from soak import alerts, disk, heap, page, processes
from soak.__main__ import about
from soak.findings import GROUPS, SPEED, Finding, Measure, findings, settled_minute
from soak.life import PROGRESS
from soak.samples import SAMPLES, by_minute


def table(minutes: int, **changed: np.ndarray) -> pd.DataFrame:
    columns = {measure.column: np.full(minutes, 50.0) for measures in GROUPS.values() for measure in measures}
    columns |= {"micro-batches": np.full(minutes, 20.0), SPEED: np.full(minutes, 1.0)} | changed
    return pd.DataFrame(columns, index=pd.RangeIndex(minutes, name="minute"))


def finding(of: pd.DataFrame, name: str) -> Finding:
    return next(one for found in findings(of).values() for one in found if one.measure.name == name)


def test_what_stays_stage_has_not_grown_and_what_rises_has() -> None:
    stage = finding(table(60), "splits")
    assert (stage.settled, stage.end, round(stage.slope, 6), stage.grown) == (50, 50, 0, False)
    rising = finding(table(60, splits=np.arange(60.0)), "splits")
    assert (rising.settled, rising.end, round(rising.slope, 6), rising.grown) == (10, 57, 60, True)


def test_what_happens_before_the_tenth_minute_does_not_count_nor_does_one_minute_after_it() -> None:
    beginning = finding(table(60, splits=np.concatenate([np.zeros(8), np.full(52, 9.0)])), "splits")
    assert not beginning.grown
    assert abs(beginning.slope) < 1e-6
    burst = table(60)
    burst.loc[58, "splits"] = 1_000
    assert not finding(burst, "splits").grown


def test_times_and_memory_are_shown_and_not_held() -> None:
    assert not finding(table(60, **{"jvm: MB": np.arange(60.0) * 100}), "JVM, resident").grown
    assert [settled_minute(minutes) for minutes in (60, 10)] == [10, 6]


def test_what_rises_by_more_than_a_megabyte_in_a_simulated_hour_has_grown() -> None:
    rising = {"jvm: heap after a collection, MB": 100 + np.arange(60.0) / 2, SPEED: np.full(60, 24.0)}  # 30 MB
    found = finding(table(60, **rising), "JVM, heap after a collection")
    assert (round(found.slope, 6), found.grown) == (1.25, True)
    slower = finding(table(60, **rising | {SPEED: np.full(60, 40.0)}), "JVM, heap after a collection")
    assert (round(slower.slope, 6), slower.grown) == (0.75, False)
    bursts = np.where(np.arange(60) % 9 == 0, 500.0, 100.0)
    assert not finding(table(60, **{"workers: MB": bursts}), "Python workers, resident, together").grown


def test_the_slopes_of_memory_files_threads_and_checkpoint_are_held() -> None:
    held = {one.name for measures in GROUPS.values() for one in measures if one.most_an_hour is not None}
    assert held == {
        "driver, resident",
        "JVM, heap after a collection",
        "Python workers, resident, together",
        "their daemons",
        "planners of sources",
        "threads of the driver",
        "threads of the JVM",
        "open files of the driver",
        "open files of the JVM",
        "open files of Python workers",
        "open files of planners",
        "size",
    }


def test_samples_and_micro_batches_of_a_minute_become_a_row(tmp_path: Path) -> None:
    began_s = 1_000
    batches = [
        {"batch": n, "ended_ms": (began_s + 1 + 10 * n) * 1_000, "took_ms": 1_000 + n % 6, "splits": n}
        for n in range(18)
    ]
    samples = [
        {"at": began_s + 5 * n, "CPU seconds": 3.0 * n, "jvm: heap after a collection, MB": 100 + n % 12}
        for n in range(36)
    ]
    for name, lines in ((PROGRESS, batches), (SAMPLES, samples)):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = by_minute(tmp_path)
    assert list(found.index) == [0, 1]  # the third minute may not be whole
    assert list(found["micro-batches"]) == [6, 6]
    assert list(found["splits"]) == [2.5, 8.5]
    assert list(found["jvm: heap after a collection, MB"]) == [100, 100]
    assert found["CPU ms of a micro-batch"].iloc[1] == pytest.approx(36_000 / 6)


def test_files_are_counted_by_the_folder_that_they_lie_in(tmp_path: Path) -> None:
    for path, size in (("offsets/0", 1_000), ("state/0/1/2.changelog", 3_000), ("metadata", 500)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x" * size)
    assert disk.taken(tmp_path, "checkpoint") == {
        "checkpoint/all: files": 3,
        "checkpoint/all: kB": 4.5,
        "checkpoint/offsets: files": 1,
        "checkpoint/offsets: kB": 1,
        "checkpoint/state: files": 1,
        "checkpoint/state: kB": 3,
    }


def test_the_log_of_a_jvm_tells_what_lives(tmp_path: Path) -> None:
    (tmp_path / "gc-7.log").write_text(
        "[0.9s][gc,metaspace] GC(0) Metaspace: 21000K(21504K)->21000K(21504K) NonClass: 1K(2K)->1K(2K)\n"
        "[0.9s][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 25M->8M(256M) 9.511ms\n"
        "[1.9s][gc,metaspace] GC(1) Metaspace: 44000K(44504K)->44000K(44504K) NonClass: 1K(2K)->1K(2K)\n"
        "[1.9s][gc          ] GC(1) Pause Young (Concurrent Start) (Metadata GC Threshold) 96M->31M(256M) 12.1ms\n"
        "[2.0s][gc          ] GC(2) Concurrent Mark Cycle 20.1ms\n"
        "[2.1s][gc          ] GC(3) Pause Full (Diagnostic Command) 90M->29M(256M) 30.0ms\n"
    )
    assert heap.taken(tmp_path, 7) == {
        "jvm: collections": 3,
        "jvm: heap after a collection, MB": 29,
        "jvm: heap that it has, MB": 256 * 2**20 / 1e6,
        "jvm: classes, MB": 44,
    }
    assert heap.taken(tmp_path, 8) == {"jvm: collections": 0}


def test_the_processes_of_a_driver_are_told_apart() -> None:
    me = psutil.Process(os.getpid())
    found = processes.taken(me)
    assert found["driver: processes"] == 1
    assert found["driver: MB"] > 10
    assert found["driver: open files"] >= 3
    assert found["CPU seconds"] > 0


def test_the_page_has_a_place_for_each_group_and_shows_it() -> None:
    text = "".join(f"<!-- soak: {name} -->\n<!-- end -->\n" for name in ["machine", *map(page.name_of, GROUPS)])
    about = {"command": "./run soak", "began": "1 May", "cores": "2", "cpu": "x", "versions": {"python": "3"}}
    shown = page.filled(text, table(60, splits=np.arange(60.0)), about)
    assert "| splits | 10 | 57 | +60 |" in shown.splitlines()
    assert "60 whole minutes and 1,200 micro-batches" in shown
    assert len(re.findall(r"^\| \| minute 10 \| minute 59 \|", shown, re.MULTILINE)) == len(GROUPS)


def test_a_number_that_cannot_be_known_is_said_so() -> None:
    assert math.isnan(finding(table(10), "splits").slope)
    assert page.cells(Finding(Measure("m", "c"), 1, 1, math.nan))[-1] == "-"


def scrapes_of_a_run(minutes: int, changed: dict[int, dict[str, float] | None]) -> str:
    """A scrape each five seconds as a line of JSON, of a job that does well but for some scrapes."""
    well = {"isRunning": 1.0, "currentMicroBatchFailures": 0.0, "timeWithoutProgress": 400.0}
    lines = []
    for step in range(minutes * 12):
        other = changed.get(step, {})
        values = None if other is None else {f'eventide_{name}{{job="a"}}': at for name, at in (well | other).items()}
        lines.append(json.dumps({"at": 1.7e9 + 5 * step, "samples": values}))
    return "\n".join(lines)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of Prometheus, is not installed")
def test_a_run_of_a_job_that_does_well_fires_no_alert_and_a_moment_of_a_fault_fires_its_own(tmp_path: Path) -> None:
    path = tmp_path / "scrapes"
    path.write_text(scrapes_of_a_run(5, {}))
    assert alerts.fired(alerts.read(path)) == {}
    path.write_text(scrapes_of_a_run(5, {step: {"currentMicroBatchFailures": 3.0} for step in (24, 25, 26)}))
    assert alerts.fired(alerts.read(path)) == {"EventideRepeatsMicroBatch": ["2m"]}
    path.write_text(scrapes_of_a_run(5, dict.fromkeys(range(12, 60))))
    assert alerts.fired(alerts.read(path)).keys() == {"EventideIsGone"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of Prometheus, is not installed")
def test_the_lag_of_a_run_is_that_of_its_event_time_and_the_end_of_micro_batches_that_of_its_clock(
    tmp_path: Path,
) -> None:
    def lines(behind_ms: int) -> str:
        told = []
        for step in range(30 * 12):
            now = 1.7e9 + 5 * step
            text = "".join(
                f'# TYPE {name} gauge\n{name}{{job_id="1"}} {value}\n'
                for name, value in (
                    ("eventide_currentInputWatermark", 5_000 * step - behind_ms),
                    ("eventide_lastMicroBatchRows", 7),
                    ("eventide_lastMicroBatchEnded", now * 1_000),
                )
            )
            told.append(json.dumps({"at": now, "samples": alerts.scraped(text, 5_000 * step)}))
        return "\n".join(told)

    path = tmp_path / "scrapes"
    path.write_text(lines(60_000))
    assert alerts.fired(alerts.read(path)) == {}
    path.write_text(lines(1_000_000))
    assert alerts.fired(alerts.read(path)).keys() == {"EventideIsLate"}


def test_a_run_is_described_by_its_command_its_versions_and_its_machine() -> None:
    described = about(["--check"], datetime.datetime(2026, 11, 3, 8, 5, tzinfo=datetime.UTC))
    assert (described["command"], described["began"]) == ("./run soak --check", "3 November 2026 at 08:05 UTC")
    assert described["versions"]["eventide"] == __version__
