"""The addresses of the dashboard, and what each answers."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from eventide.dashboard.guard import OWN_HEADER, KnownHosts, is_of_the_page
from eventide.dashboard.prometheus import CONTENT_TYPE, exposition, registry_of
from eventide.dashboard.watched import WatchedJob
from eventide.errors import EventideError

if TYPE_CHECKING:
    from starlette.requests import Request

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

    def headings(request: Request) -> Response:
        return JSONResponse([job.heading() for job in jobs()])

    def description(request: Request) -> Response:
        job = found(request)
        return JSONResponse({**job.heading(), "description": job.description})

    def lines(request: Request) -> Response:
        job = found(request)
        return JSONResponse({**job.heading(), "lines": job.summary()})

    def batches(request: Request) -> Response:
        job, after = found(request), request.query_params.get("after", "-1")
        new = job.batches(int(after) if after.removeprefix("-").isdigit() else -1)
        return JSONResponse({**job.heading(), "batches": new, "slowest": job.slowest(_SHOWN) if new else None})

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
        return Response(exposition(registry), media_type=CONTENT_TYPE)

    return Starlette(
        routes=[
            Route("/", page),
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
        middleware=[
            Middleware(KnownHosts, allowed=hosts),
            Middleware(BaseHTTPMiddleware, dispatch=_with_headers),
        ],
    )


def _refused(request: Request, error: Exception) -> Response:
    """Answer that something is not known now, as of a half-written checkpoint; it may be at the next request."""
    return JSONResponse({"error": str(error)}, 503)


async def _with_headers(request: Request, answer: Callable[[Request], Awaitable[Any]]) -> Any:
    response = await answer(request)
    response.headers.update(_HEADERS)
    return response
