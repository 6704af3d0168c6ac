"""The addresses of the dashboard, and what each answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from eventide.dashboard.prometheus import CONTENT_TYPE, exposition, registry_of
from eventide.dashboard.watched import WatchedJob
from eventide.errors import EventideError

if TYPE_CHECKING:
    from starlette.requests import Request

PAGE = Path(__file__).parent / "page"

_SHOWN = 6
"""So many of the slowest splits have a line of their own."""

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def application(jobs: Callable[[], Iterable[WatchedJob]], hosts: list[str]) -> Starlette:
    """The web application of some jobs.

    Args:
        jobs: gives those that there are, the oldest first.
        hosts: the names under which a browser may ask for it; what a foreign page makes a browser ask for has another.
    """
    registry = registry_of(jobs)

    def found(request: Request) -> WatchedJob:
        number = request.path_params["number"]
        for job in jobs():
            if job.number == number:
                return job
        raise HTTPException(404, f"there is no job {number} here")

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
        job, name = found(request), request.query_params.get("name", "")
        return JSONResponse({"name": name, "metrics": job.metrics(name)})

    def why(request: Request) -> Response:
        job, name = found(request), request.query_params.get("name", "")
        return JSONResponse({"name": name, "why": job.why(name)})

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
            Route("/api/jobs/{number:int}/why", why),
            Route("/metrics", metrics),
            Mount("/page", StaticFiles(directory=PAGE)),
        ],
        exception_handlers={EventideError: _refused},
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=hosts),
            Middleware(BaseHTTPMiddleware, dispatch=_with_headers),
        ],
    )


def _refused(request: Request, error: Exception) -> Response:
    """What cannot be known now, as of a checkpoint that is being written, may be known when somebody asks again."""
    return JSONResponse({"error": str(error)}, 503)


async def _with_headers(request: Request, answer: Callable[[Request], Awaitable[Any]]) -> Any:
    response = await answer(request)
    response.headers.update(_HEADERS)
    return response
