"""A job in the cell of a notebook: the picture, when it is drawn anew, and when the watching ends."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import Future
from types import ModuleType, SimpleNamespace

import pytest

from eventide.common.job import BatchProgress, FinishedJob, JobExecutionResult, JobID, JobStatus, completed
from eventide.common.ms import MIN_MS
from eventide.dashboard import watch
from eventide.dashboard.notebook import picture
from eventide.dashboard.watched import WatchedJob
from eventide.errors import ProgramError
from support.watching import NASTY, T, finished, job_of_the_twin

MIN = 60_000


def texts(drawn: str) -> list[str]:
    """The texts of a picture, which is well-formed."""
    return [element.text or "" for element in ET.fromstring(drawn).iter() if element.tag.endswith("text")]


def lines(drawn: str, width: str) -> list[list[tuple[float, float]]]:
    """The points of the lines of a width, without the samples in the legend."""
    found = [
        [tuple(map(float, point.split(","))) for point in element.attrib["points"].split()]
        for element in ET.fromstring(drawn).iter()
        if element.tag.endswith("polyline") and element.attrib["stroke-width"] == width
    ]
    return [points for points in found if points[0][0] < 540]


class TheNotebook:
    """The part of IPython that shows things in cells: it keeps all that was shown in one."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], raw: bool, display_id: bool) -> TheNotebook:
        assert raw
        assert display_id
        self.shown.append(data)
        return self

    def update(self, data: dict[str, str], raw: bool) -> None:
        assert raw
        self.shown.append(data)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> TheNotebook:
    """Make this process the kernel of a notebook."""
    there = TheNotebook()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=True)  # type: ignore[attr-defined]
    display.display = there.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return there


class GrowingJob(FinishedJob):
    """A job of which one micro-batch more is known whenever it is asked, and which ends with the last of them."""

    def __init__(self, progress: list[BatchProgress], ends: bool = True) -> None:
        super().__init__(JobExecutionResult(JobID("grows"), 5), [], progress)
        self._known, self._ends = 0, ends
        self._future: Future[JobExecutionResult] = Future()

    def get_progress(self) -> list[BatchProgress]:
        self._known += 1
        if self._ends and self._known == len(self._progress) and not self._future.done():
            self._future.set_result(self._result)
        return super().get_progress()[: self._known]

    def get_job_status(self) -> Future[JobStatus]:
        return completed(JobStatus.FINISHED if self._future.done() else JobStatus.RUNNING)

    def get_job_execution_result(self) -> Future[JobExecutionResult]:
        return self._future


class FailedJob(FinishedJob):
    """A job that has failed before its first micro-batch had ended."""

    def get_job_status(self) -> Future[JobStatus]:
        return completed(JobStatus.FAILED)

    def get_job_execution_result(self) -> Future[JobExecutionResult]:
        future: Future[JobExecutionResult] = Future()
        future.set_exception(ValueError("a bad <row>"))
        return future


def test_the_picture_has_splits_operators_and_late_elements_and_takes_no_name_for_markup() -> None:
    drawn = picture(job_of_the_twin())
    said = texts(drawn)
    assert {"finished", "6 rows in micro-batches 0 to 3", "a", "b", "1 to a side output"} <= {*said}
    assert any(text.startswith(NASTY[:10]) for text in said)
    assert "<script" not in drawn
    (a, b), (operator,) = lines(drawn, "1.6"), lines(drawn, "6")
    assert [len(a), len(b), len(operator)] == [4, 4, 3]  # the end is no time
    assert [y for _, y in operator] == [y for _, y in a[:3]]
    assert all(low >= high for (_, low), (_, high) in zip(a, b, strict=True))  # "y" goes down


def test_a_split_that_has_ended_keeps_its_line() -> None:
    splits = [{"a": T, "b": T + MIN}, {"a": T + MIN, "b": T + 2 * MIN}, {"b": T + 3 * MIN}]
    job = finished([BatchProgress(n, {}, {"w": T + n * MIN}, {"s": of}) for n, of in enumerate(splits)])
    drawn = picture(job)
    assert [len(points) for points in lines(drawn, "1.6")] == [2, 3]
    assert texts(drawn)[-1] != ""
    assert texts(drawn).count("the end") == 1


def test_of_many_splits_the_six_slowest_have_a_line_and_the_others_a_band() -> None:
    splits = {"s": {f"p{n:02}": T + n * MIN for n in range(40)}}
    drawn = picture(finished([BatchProgress(n, {}, {"w": T}, splits) for n in range(3)]))
    assert [text for text in texts(drawn) if re.fullmatch(r"p\d\d", text)] == [f"p{n:02}" for n in range(6)]
    assert "splits, and 34 further ahead" in texts(drawn)
    assert drawn.count("<polygon") == 1


def test_splits_that_have_not_spoken_and_jobs_without_watermarks_are_said() -> None:
    silent = texts(picture(finished([BatchProgress(0, {}, {}, {"s": {"a": MIN_MS, "b": T}})])))
    assert "none yet" in silent
    assert "No split has had a watermark yet." in texts(picture(finished([BatchProgress(0, {}, {}, {})])))
    assert "The first micro-batch has not ended yet." in texts(picture(finished([])))


def test_only_the_last_200_micro_batches_are_drawn() -> None:
    drawn = picture(finished([BatchProgress(n, {}, {"w": T + n}, {"s": {"a": T + n}}) for n in range(900)]))
    assert [len(points) for points in lines(drawn, "1.6")] == [200]
    assert {"700", "899", "0 rows in the last 200 micro-batches"} <= {*texts(drawn)}


def test_a_failure_is_in_the_picture() -> None:
    job = WatchedJob(0, "", FailedJob(JobExecutionResult(JobID("fails"), 5), []), {})
    assert texts(picture(job))[:2] == ["failed", "ValueError: a bad <row>"]


def test_a_job_is_drawn_anew_as_it_goes_on_and_the_last_picture_is_of_its_end(notebook: TheNotebook) -> None:
    progress = job_of_the_twin().client.get_progress()
    watch(GrowingJob(progress))
    first, last = notebook.shown[0], notebook.shown[-1]
    assert len(notebook.shown) > 1
    assert "job: running" in first["text/plain"]
    assert last["text/plain"].startswith("job: finished\nmicro-batch: 3, ")
    assert last["image/svg+xml"] == picture(finished(progress))


def test_a_job_that_goes_on_is_watched_for_some_seconds(notebook: TheNotebook) -> None:
    job = GrowingJob(job_of_the_twin().client.get_progress(), ends=False)
    watch(job, seconds=0)
    assert {data["text/plain"].splitlines()[0] for data in notebook.shown} == {"job: running"}


def test_to_interrupt_the_cell_ends_the_watching_alone(notebook: TheNotebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("eventide.dashboard.notebook.wait", interrupted)
    job = GrowingJob(job_of_the_twin().client.get_progress(), ends=False)
    watch(job)
    assert len(notebook.shown) == 1
    assert not job.get_job_execution_result().done()


def test_elsewhere_it_says_what_there_is_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with pytest.raises(ProgramError, match=r"this is not a notebook; use client\.get_progress"):
        watch(job_of_the_twin().client)
