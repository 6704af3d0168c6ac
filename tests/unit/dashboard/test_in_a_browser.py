"""The page as somebody sees it: in Chromium, which shows nothing on this screen."""

from __future__ import annotations

import re
import shutil
import threading
import time

import pytest
from playwright.sync_api import expect, sync_playwright

from eventide.common.job import FinishedJob, JobExecutionResult, JobID, JobRestart, JobStatus, completed
from eventide.dashboard.watched import WatchedJob
from eventide.errors import StateError
from support.watching import NASTY, job_of_the_twin, served

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser):
    """Opens an address in a browser of some kind; nothing may go wrong there, and nothing come from elsewhere."""
    wrong, contexts = [], []

    def heard(said):
        if (
            said.type == "error" and "ERR_CONNECTION" not in said.text
        ):  # a page may ask once more than there is a server
            wrong.append(said.text)

    def open_page(url, before=lambda page: None, **kind):
        contexts.append(browser.new_context(**kind))
        page = contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", heard)
        page.on("request", lambda asked: None if asked.url.startswith(url) else wrong.append(asked.url))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        before(page)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


class GrowingJob(FinishedJob):
    """A job of which more and more micro-batches are known."""

    def __init__(self, progress):
        super().__init__(JobExecutionResult(JobID("grows"), 5), [], progress)
        self.known = 1
        self.trouble = None

    def get_progress(self):
        if self.trouble is not None:
            raise self.trouble
        return super().get_progress()[: self.known]


def tile(page, what):
    return page.locator(".tile", has_text=what).locator("b")


def test_it_shows_operators_watermarks_and_late_elements_and_takes_no_name_for_markup(opened):
    with served(job_of_the_twin(f"trips {NASTY}")) as url:
        page = opened(url)
        expect(page.locator("h1")).to_have_text(f"trips {NASTY}")
        expect(page.locator("#status")).to_have_text("finished")
        expect(page.locator("#graph .operator")).to_have_count(4)
        expect(page.locator("#graph path")).to_have_count(3)
        window = page.locator("#graph .operator", has_text=NASTY)
        expect(window).to_contain_text("6 in")
        expect(window).to_contain_text("1 late")
        expect(tile(page, "late")).to_have_text("1")
        expect(tile(page, "watermark")).to_have_text("the end")
        expect(page.locator("#splits .u-legend")).to_contain_text("a (script)")
        expect(page.locator(".uplot")).to_have_count(6)
        expect(page.locator("#state")).to_have_text("This job has no state store.")


def test_a_click_or_the_keyboard_opens_an_operators_details(opened):
    with served(job_of_the_twin()) as url:
        page = opened(url)
        page.locator("#graph .operator", has_text=NASTY).click()
        details = page.locator("#details")
        expect(details).to_contain_text("TumblingEventTimeWindows(size=10, offset=0)")
        expect(details).to_contain_text("numLateRecordsToSideOutput")
        expect(details).to_contain_text("monotonous timestamps")
        page.locator("#graph .operator", has_text="ScriptedSource").focus()
        page.keyboard.press("Enter")
        expect(details.locator("h3")).to_have_text("script")
        expect(details).to_contain_text("a, b")


class ExplainedJob(FinishedJob):
    """A job that says why."""

    def why(self, operator=None, at=None, key=None):
        return f"{operator} waits.\nWhat to do: see.\n    split  newest\n    p0     never\n\nAlso: nothing."


def test_why_is_wrapped_and_its_tables_keep_their_lines(opened):
    twin = job_of_the_twin()
    client = ExplainedJob(JobExecutionResult(JobID("the id"), 5), [], twin.client.get_progress())
    with served(WatchedJob(1, "explained", client, twin.description)) as url:
        page = opened(url)
        page.locator("#graph .operator", has_text=NASTY).click()
        expect(page.locator(".why pre")).to_have_count(3)
        expect(page.locator(".why pre.text").first).to_have_text(f"{NASTY} waits.\nWhat to do: see.")
        expect(page.locator(".why pre.table")).to_have_css("white-space", "pre")
        expect(page.locator(".why pre.table")).to_contain_text("p0     never", use_inner_text=True)


def test_it_follows_each_micro_batch(opened):
    twin = job_of_the_twin()
    client = GrowingJob(twin.client.get_progress())
    with served(WatchedJob(1, "grows", client, twin.description)) as url:
        page = opened(url)
        expect(tile(page, "micro-batch")).to_have_text(re.compile("^0, "))
        expect(tile(page, "watermark")).to_have_text("2023-11-14 22:13:19")
        client.known = 3
        expect(tile(page, "micro-batch")).to_have_text(re.compile("^2, "))
        expect(tile(page, "watermark")).to_have_text("2023-11-14 22:13:20")


def test_of_several_jobs_the_last_is_shown_and_each_can_be_chosen(opened):
    with served(job_of_the_twin("first"), job_of_the_twin("second")) as url:
        page = opened(url)
        expect(page.locator("h1")).to_have_text("second")
        page.locator("#jobs").select_option("1")
        expect(page.locator("h1")).to_have_text("first")


class SlowJob(FinishedJob):
    """A job whose micro-batches are not known at once."""

    def __init__(self, progress):
        super().__init__(JobExecutionResult(JobID("slow"), 5), [], progress)
        self.asked, self.go_on = threading.Event(), threading.Event()

    def get_progress(self):
        self.asked.set()
        self.go_on.wait(20)
        return super().get_progress()


def test_what_comes_late_of_a_job_is_not_shown_with_another(opened):
    first = job_of_the_twin("first")
    slow = SlowJob(first.client.get_progress()[:1])
    with served(first, WatchedJob(2, "second", slow, first.description)) as url:
        page = opened(url)
        assert slow.asked.wait(20)
        page.locator("#jobs").select_option("1")
        expect(page.locator("h1")).to_have_text("first")
        slow.go_on.set()
        with page.expect_response(re.compile("jobs/1/batches")):
            pass
        expect(page.locator("#graph .operator", has_text=NASTY)).to_contain_text(re.compile(r"\b6 in\b"))
        expect(tile(page, "micro-batch")).to_have_text(re.compile("^3, "))


def test_a_job_whose_description_comes_late_is_not_shown_in_place_of_the_chosen_one(opened):
    held = []

    def hold(route):
        held.append(route)

    with served(job_of_the_twin("first"), job_of_the_twin("second")) as url:
        page = opened(url, before=lambda page: page.route(re.compile("jobs/2$"), hold))
        page.locator("#jobs").select_option("1")
        expect(page.locator("h1")).to_have_text("first")
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        held[0].continue_()
        with page.expect_response(re.compile("jobs/1/batches")):
            pass
        assert not [url for url in asked if "jobs/2" in url]


def test_it_says_when_there_is_no_answer_any_more(browser):
    with served(job_of_the_twin()) as url:
        page = browser.new_page()
        page.goto(url)
        expect(page.locator("#status")).to_have_text("finished")
    expect(page.locator("#message")).to_contain_text("Nobody answers here any more", timeout=20_000)
    page.close()


def test_it_says_what_cannot_be_known_now_and_goes_on_when_it_can(browser):
    progress = job_of_the_twin().client.get_progress()
    client = GrowingJob(progress)
    with served(WatchedJob(1, "grows", client, {"sources": [], "operators": [], "edges": [], "sinks": []})) as url:
        page = browser.new_page()
        page.goto(url)
        expect(tile(page, "micro-batch")).to_have_text(re.compile("^0, "))
        client.trouble = StateError("Spark cannot read the state")
        expect(page.locator("#message")).to_contain_text("the last that was known. (Spark cannot read the state)")
        client.trouble, client.known = None, 3
        expect(tile(page, "micro-batch")).to_have_text(re.compile("^2, "), timeout=20_000)
        expect(page.locator("#message")).to_be_hidden()
        page.close()


def test_it_fits_a_phone(opened):
    with served(job_of_the_twin("a job with a name that is longer than any phone is wide, " * 3)) as url:
        page = opened(url, viewport={"width": 360, "height": 740}, is_mobile=True)
        expect(page.locator(".uplot")).to_have_count(6)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize(("scheme", "is_dark"), [("dark", True), ("light", False)])
def test_it_is_dark_where_the_reader_wants_that(opened, scheme, is_dark):
    with served(job_of_the_twin()) as url:
        page = opened(url, color_scheme=scheme)
        paper, ink = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        light = [sum(map(int, re.findall(r"\d+", color)[:3])) for color in (paper, ink)]
        assert (light[0] < light[1]) is is_dark


class RunningJob(FinishedJob):
    """A job that runs, and whose micro-batch has failed some times."""

    def __init__(self, progress):
        super().__init__(JobExecutionResult(JobID("runs"), 5), [], progress)
        self.failures = []

    def get_job_status(self):
        return completed(JobStatus.RUNNING)

    def get_restarts(self):
        return self.failures


def test_its_first_line_says_whether_all_is_right_and_leads_to_the_runbook(opened):
    twin = job_of_the_twin()
    client = RunningJob(twin.client.get_progress())
    with served(WatchedJob(1, "runs", client, twin.description)) as url:
        page = opened(url)
        expect(page.locator("#verdict")).to_have_text("All is well")
        expect(page.locator("#verdict")).to_have_class("well")
        now_ms = time.time_ns() // 1_000_000
        client.failures = [JobRestart(number, now_ms + 60_000, "OSError: disk", 10) for number in (1, 2, 3)]
        link = page.locator("#verdict a").first
        expect(link).to_have_text("The same micro-batch has failed 3 times in a row")
        with page.context.expect_page() as found:
            link.click()
        expect(found.value.locator("h2:target")).to_have_text("A micro-batch fails again and again")
