"""The server: its answers, its permitted clients, and that no job is harmed by it."""

import builtins
import json
import re
import socket
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from eventide.common.job import FinishedJob, JobExecutionResult, JobID
from eventide.dashboard.server import PAGE, Dashboard
from eventide.dashboard.watched import WatchedJob
from eventide.errors import DashboardWarning, StateError
from eventide.testing import local_environment
from support.watching import NASTY, T, asked, job_of_the_twin, json_of, served


def test_a_job_is_described_and_followed():
    with served(job_of_the_twin()) as url:
        (heading,) = json_of(f"{url}/api/jobs")
        assert heading == {
            "number": 1,
            "name": "trips",
            "id": "the id",
            "status": "finished",
            "failure": None,
            "restarts": 0,
            "last_restart": None,
        }
        described = json_of(f"{url}/api/jobs/1")["description"]
        assert [one["name"] for one in described["operators"]] == [NASTY]
        news = json_of(f"{url}/api/jobs/1/batches?after=1")
        assert [one["batch"] for one in news["batches"]] == [2, 3]
        assert [one["split"] for one in news["slowest"]] == ["a", "b"]
        verdict = {"text": "It has finished", "is_well": True, "symptoms": []}
        nothing_new = {**heading, "verdict": verdict, "batches": [], "slowest": None}
        assert json_of(f"{url}/api/jobs/1/batches?after=3") == nothing_new
        assert json_of(f"{url}/api/jobs/1/summary")["verdict"] == verdict
        operator = json_of(f"{url}/api/jobs/1/operator?name=script")
        assert operator == {"name": "script", "metrics": {"numRecordsOut": 6}}
        _, _, text = asked(f"{url}/api/jobs/1/why?name=script", method="POST", **{"X-Eventide": "test"})
        assert json.loads(text)["why"].startswith("The reason could not be determined: a job in batch")
        assert (
            'eventide_currentWatermark{job="trips",job_id="the id",source="script",split="a"}'
            in asked(f"{url}/metrics")[2]
        )


class UnreadableJob(FinishedJob):
    """A job whose checkpoint cannot be read at this moment."""

    def get_progress(self):
        raise StateError("Spark cannot read the state")


def test_what_cannot_be_known_now_is_said_and_may_be_asked_again():
    job = WatchedJob(1, "unreadable", UnreadableJob(JobExecutionResult(JobID("the id"), 5), []), {})
    with served(job) as url:
        status, _, text = asked(f"{url}/api/jobs/1/batches")
        assert (status, json.loads(text)) == (503, {"error": "Spark cannot read the state"})


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/jobs/2", 404),
        ("/api/jobs/x", 404),
        ("/page/../app.py", 404),
        *((f"/api/jobs/1/batches?after={after}", 200) for after in ("x", "--1", "%C2%B2")),
    ],
)
def test_what_is_not_there_is_said_to_be_not_there(path, status):
    with served(job_of_the_twin()) as url:
        assert asked(url + path)[0] == status


def test_a_foreign_page_gets_nothing_through_the_users_browser():
    with served(job_of_the_twin()) as url:
        assert asked(f"{url}/api/jobs", Host="evil.example")[0] == 400
        _, headers, _ = asked(url)
        assert headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("bound", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_whatever_it_listens_at_it_knows_its_hosts(bound):
    """A foreign page may make its own name lead here, so only addresses and known names are answered."""
    try:
        dashboard = Dashboard(bound, 0, ["watch.example"])
    except OSError:
        pytest.skip("this machine has no such address")
    url = f"http://{'[::1]' if ':' in bound else '127.0.0.1'}:{dashboard.port}/api/jobs"
    try:
        assert asked(url)[0] == 200
        for host, status in {
            "evil.example": 400,
            "evil.example:80": 400,
            "": 400,
            "[": 400,
            "127.0.0.1.evil.example": 400,
            f"localhost:{dashboard.port}": 200,
            "[::1]": 200,
            "10.0.0.7": 200,
            "watch.example": 200,
        }.items():
            assert asked(url, Host=host)[0] == status, host
    finally:
        dashboard.close()


class AskedJob(FinishedJob):
    """A job whose state is read for each question."""

    def __init__(self):
        super().__init__(JobExecutionResult(JobID("the id"), 5), [])
        self.asked = []
        self.go_on = threading.Event()
        self.go_on.set()

    def why(self, operator=None, at=None, key=None):
        self.asked.append(operator)
        self.go_on.wait(20)
        return "w" * 200_000

    def get_metrics(self):
        self.asked.append("metrics")
        return {}


def of_sums(number, client):
    return WatchedJob(number, "asked", client, {"operators": [{"name": "sums"}], "sources": [], "sinks": []})


OWN = {"X-Eventide": "test"}


def test_only_the_page_asks_why_and_only_of_what_the_job_has():
    client = AskedJob()
    with served(of_sums(1, client)) as url:
        why = f"{url}/api/jobs/1/why?name="
        assert asked(f"{why}sums")[0] == 405
        assert asked(f"{why}sums", method="POST")[0] == 403
        assert asked(f"{why}sums", method="POST", **OWN, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
        assert asked(f"{why}nobody", method="POST", **OWN)[0] == 404
        assert asked(f"{url}/api/jobs/1/operator?name=nobody")[0] == 404
        assert client.asked == []
        status, _, text = asked(f"{why}sums", method="POST", **OWN)
        assert (status, len(json.loads(text)["why"])) == (200, len(f"{'w' * 100_000} … (cut off)"))
        assert client.asked == ["sums"]


def test_many_questions_keep_no_other_reader_from_the_page():
    clients = [AskedJob() for _ in range(5)]
    for client in clients:
        client.go_on.clear()
    with served(*(of_sums(number, client) for number, client in enumerate(clients, 1))) as url:
        answers = [f"{url}/api/jobs/{number}/why?name=sums" for number in range(1, 6)]
        with ThreadPoolExecutor(4) as pool:
            first = [pool.submit(asked, answer, method="POST", **OWN) for answer in answers[:4]]
            while not all(client.asked for client in clients[:4]):
                threading.Event().wait(0.01)
            assert asked(answers[4], method="POST", **OWN)[0] == 503
            assert asked(f"{url}/api/jobs")[0] == 200
            for client in clients:
                client.go_on.set()
            assert [answer.result()[0] for answer in first] == [200] * 4
        assert asked(answers[4], method="POST", **OWN)[0] == 200


def test_the_page_names_no_other_host_and_makes_no_markup_of_text():
    own = [path for path in PAGE.iterdir() if path.is_file()]
    assert {path.suffix for path in own} == {".html", ".css", ".js", ".svg"}
    for path in own:
        text = path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not re.findall(
            r"https?:|//[a-z]+\.|@import|innerHTML|insertAdjacentHTML|document\.write|eval\(", text
        ), path
    chart = (PAGE / "uplot" / "uPlot.iife.min.js").read_text()
    assert re.findall(r"https?://[^ ]+", chart) == ["https://github.com/leeoniya/uPlot"], "in the comment at its head"
    assert (PAGE / "uplot" / "LICENSE").read_text().startswith("The MIT License")


def test_environments_with_one_address_share_it():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    one, other = (local_environment().set_dashboard(port=port) for _ in range(2))
    try:
        assert one.get_dashboard_url() == other.get_dashboard_url() == f"http://127.0.0.1:{port}"
        for env in (one, other):
            env.from_collection([1]).print()
            env.execute("numbers")
        assert [job["number"] for job in json_of(f"http://127.0.0.1:{port}/api/jobs")] == [1, 2]
    finally:
        Dashboard.at("127.0.0.1", port).close()


def test_a_port_that_is_taken_is_a_warning_and_the_job_runs(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.warns(DashboardWarning, match=rf"127.0.0.1:{port} cannot be used .*; choose another with") as told:
            env = local_environment().set_dashboard(port=port)
    assert told[0].filename == __file__
    assert env.get_dashboard_url() is None
    env.from_collection([T]).print()
    env.execute()
    assert capsys.readouterr().out.strip() == str(T)


@pytest.mark.parametrize(
    ("setting", "missing", "extra"),
    [("set_dashboard", "uvicorn", "dashboard"), ("set_meter_provider", "opentelemetry", "opentelemetry")],
)
def test_a_library_that_is_missing_is_a_warning(monkeypatch, setting, missing, extra):
    def imported(name, *args, **kwargs):
        if name.startswith(("eventide.dashboard.server", "eventide.dashboard.watched")):
            raise ImportError(f"No module named {missing!r}", name=missing)
        return real(name, *args, **kwargs)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", imported)
    with pytest.warns(
        DashboardWarning, match=rf"needs '{missing}'; install it with: pip install 'eventide-spark\[{extra}\]'"
    ):
        getattr(local_environment(), setting)()


def test_a_job_that_cannot_be_shown_runs_and_gives_its_client():
    class Fails:
        def watch(self, name, client, description):
            raise ValueError("no")

    env = local_environment()
    env._watchers.append(Fails())
    env.from_collection([1]).print()
    with pytest.warns(DashboardWarning, match="the job 'sums' runs, and is not shown: ValueError: no"):
        assert env.execute_async("sums").get_job_status().done()
    env.from_collection([1]).print()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert env.execute_async("sums").get_job_status().done()
