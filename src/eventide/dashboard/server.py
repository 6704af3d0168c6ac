"""The server of the dashboard: a thread of its own, which no job waits for.

``application`` has the addresses with their answers, also to Prometheus, and the requests that it refuses.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from eventide.common.job import JobClient
from eventide.dashboard.runbook import runbook_page
from eventide.dashboard.watched import METRICS, Sample, WatchedJob, WatchedJobs, samples
from eventide.errors import EventideError

if TYPE_CHECKING:
    from starlette.requests import Request


_PATIENCE_S = 10.0
_ON_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


class Dashboard:
    """A page on jobs, at an address of this machine, for as long as the process lives or until it is closed.

    Args:
        host: The address to listen at.
        port: Its port; 0 for any that is free.
        hosts: Further names under which a browser may ask for the page.

    Raises:
        OSError: if the address cannot be had.
    """

    _running: ClassVar[dict[tuple[str, int], Dashboard]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, host: str, port: int, hosts: Iterable[str] = ()) -> None:
        self._jobs = WatchedJobs()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._hosts = {host, *(() if host in _ON_THIS_MACHINE else (socket.gethostname(),)), *hosts}
        app = application(self._jobs, lambda: self._hosts)
        config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="eventide dashboard", daemon=True
        )
        self._thread.start()
        self._await_start()

    @classmethod
    def at(cls, host: str, port: int, hosts: Iterable[str] = ()) -> Dashboard:
        """The dashboard at an address, which all environments of this process share; port 0 is a free one each time.

        It answers under all names that any of them gave in ``hosts``.
        """
        with cls._opening:
            known = cls._running.get((host, port))
            if known is None or not known.is_alive:
                known = cls(host, port)
                if port:
                    cls._running[host, port] = known
            known._hosts = {*known._hosts, *hosts}  # another one: requests read it meanwhile
            return known

    @property
    def is_alive(self) -> bool:
        """Whether the server answers."""
        return self._thread.is_alive()

    def watch(self, name: str, client: JobClient, description: dict[str, Any]) -> None:
        """Show a job, and keep it when it has ended, up to twenty of those."""
        self._jobs.add(name, client, description)

    def close(self) -> None:
        """Answer no more."""
        self._server.should_exit = True
        self._thread.join(_PATIENCE_S)
        self._socket.close()

    def _await_start(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self._server.started:
            raise OSError(f"the server did not start within {_PATIENCE_S:.0f} seconds")


PAGE = Path(__file__).parent / "page"

_SHOWN = 6
"""Number of the slowest splits that have a line of their own."""

_QUESTIONS = 4
"""The number of `why` questions that are answered at one time: each reads state and occupies a thread."""

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PREFIX = "eventide_"

OWN_HEADER = "x-eventide"
"""The page sends this with each question. A foreign page could only after a request that no dashboard allows."""


def application(
    jobs: Callable[[], Iterable[WatchedJob]], hosts: Callable[[], Collection[str]] = frozenset
) -> Starlette:
    """The web application of some jobs.

    Args:
        jobs: gives those that there are, the oldest first.
        hosts: gives the names under which a browser may ask for it, beside addresses by their numbers; what a foreign
            page makes a browser ask for has another.
    """
    registry = registry_of(jobs)
    questions = threading.BoundedSemaphore(_QUESTIONS)

    def found(request: Request) -> WatchedJob:
        number = request.path_params["number"]
        for job in jobs():
            if job.number == number:
                return job
        raise HTTPException(404, f"there is no job {number} here")

    def named(request: Request, job: WatchedJob) -> str:
        name = request.query_params.get("name", "")
        if name not in job.names:
            raise HTTPException(404, "the job has no part of that name")
        return name

    def page(request: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    def runbook(request: Request) -> Response:
        return HTMLResponse(runbook_page())

    def headings(request: Request) -> Response:
        return JSONResponse([job.heading() for job in jobs()])

    def description(request: Request) -> Response:
        job = found(request)
        return JSONResponse({**job.heading(), "description": job.description})

    def lines(request: Request) -> Response:
        job = found(request)
        return JSONResponse({**job.heading(), "verdict": job.verdict(_now_ms()), "lines": job.summary()})

    def batches(request: Request) -> Response:
        job = found(request)
        try:
            after = int(request.query_params.get("after", ""))
        except ValueError:
            after = -1
        new = job.batches(after)
        slowest = job.slowest(_SHOWN) if new else None
        return JSONResponse({**job.heading(), "verdict": job.verdict(_now_ms()), "batches": new, "slowest": slowest})

    def operator(request: Request) -> Response:
        job = found(request)
        name = named(request, job)
        return JSONResponse({"name": name, "metrics": job.metrics(name)})

    def why(request: Request) -> Response:
        if not is_of_the_page(request):
            raise HTTPException(403, f"send the request from the dashboard's page, or with the header {OWN_HEADER}")
        job = found(request)
        name = named(request, job)
        if not questions.acquire(blocking=False):
            return JSONResponse({"error": "other questions are being answered; ask again in a moment"}, 503)
        try:
            return JSONResponse({"name": name, "why": job.why(name)})
        finally:
            questions.release()

    def metrics(request: Request) -> Response:
        return Response(exposition(registry), media_type=CONTENT_TYPE_LATEST)

    async def guarded(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        """Refuse a foreign host: a page whose name leads to this machine makes a browser ask under that name."""
        if is_known(request.headers.get("host", ""), hosts()):
            response = await answer(request)
        else:
            response = PlainTextResponse("the dashboard does not answer for this host", 400)
        response.headers.update(_HEADERS)
        return response

    return Starlette(
        routes=[
            Route("/", page),
            Route("/runbook", runbook),
            Route("/api/jobs", headings),
            Route("/api/jobs/{number:int}", description),
            Route("/api/jobs/{number:int}/summary", lines),
            Route("/api/jobs/{number:int}/batches", batches),
            Route("/api/jobs/{number:int}/operator", operator),
            Route("/api/jobs/{number:int}/why", why, methods=["POST"]),
            Route("/metrics", metrics),
            Mount("/page", StaticFiles(directory=PAGE)),
        ],
        exception_handlers={EventideError: _refused},
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guarded)],
    )


def registry_of(jobs: Callable[[], Iterable[WatchedJob]]) -> CollectorRegistry:
    """A registry of its own, which knows nothing but these jobs."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Jobs(jobs))
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """All that a registry has, in Prometheus' text format."""
    text: bytes = generate_latest(registry)
    return text


def is_known(host: str, allowed: Collection[str]) -> bool:
    """Whether a Host header is of the dashboard's.

    >>> [is_known(host, ["watch"]) for host in ("127.0.0.1:8081", "[::1]", "Watch:80", "evil.example")]
    [True, True, True, False]
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    return _is_address(name) or name in {"localhost", *(one.lower().rstrip(".") for one in allowed)}


def is_of_the_page(request: Request) -> bool:
    """Whether a request comes from the dashboard's page, or from a program, and from no other page."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    return OWN_HEADER in request.headers and site in {"same-origin", "none"}


def _refused(request: Request, error: Exception) -> Response:
    """Answer that something is not known now, as of a half-written checkpoint; it may be at the next request."""
    return JSONResponse({"error": str(error)}, 503)


class _Jobs:
    """Tells of all jobs when it is asked: a collector as ``prometheus_client`` wants one."""

    def __init__(self, jobs: Callable[[], Iterable[WatchedJob]]) -> None:
        self._jobs = jobs

    def collect(self) -> Iterator[Metric]:
        found: dict[str, list[Sample]] = {}
        for sample in samples(self._jobs(), _now_ms()):
            found.setdefault(sample.metric.name, []).append(sample)
        for metric in METRICS:
            if some := found.get(metric.name):
                kind = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
                family = kind(PREFIX + metric.name, metric.text, labels=list(some[0].labels))
                for sample in some:
                    family.add_metric(list(sample.labels.values()), sample.value)
                yield family


def _now_ms() -> int:
    """Return the time by the clock, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
