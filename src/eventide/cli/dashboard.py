"""``eventide dashboard``: how running jobs stand, or a page on the job of a checkpoint."""

from __future__ import annotations

import json
import threading
import urllib.parse
import urllib.request
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eventide.cli.answers import AsJson, answer, console, found_in, started_spark
from eventide.errors import ProgramError, getting

_PATIENCE_S = 10.0


def dashboard(
    target: Annotated[
        str, typer.Argument(metavar="CHECKPOINT|URL", help="A checkpoint, or a running dashboard's URL.")
    ],
    port: Annotated[int, typer.Option(help="The port of the page; 0 for any free port.")] = 8081,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 opens the page to other machines.")] = (
        "127.0.0.1"
    ),
    as_json: AsJson = False,
) -> None:
    """Show the status of jobs on a running dashboard, or serve a dashboard for a checkpoint.

    With the URL of a dashboard (`env.set_dashboard(...)`), prints the status of each of its jobs; the exit code is 1 if
    one has failed. With a checkpoint, serves a page that follows the job wherever it runs: watermarks, splits, rows,
    late elements, open windows, micro-batches, state, and why windows wait. Spark only reads the checkpoint. Press
    Ctrl-C to stop.

    For example:

        eventide dashboard http://127.0.0.1:8081
        eventide dashboard http://127.0.0.1:8081 --json | jq '.[].status'
        eventide dashboard /data/jobs/orders --port 8090
    """
    if target.startswith(("http://", "https://")):
        jobs = _jobs_at(target)
        answer(jobs, _view(target, jobs), as_json=as_json, fine=all(job["status"] != "failed" for job in jobs))
    url = _page_on(target, host, port)
    if as_json:
        typer.echo(json.dumps({"url": url, "checkpoint": target}))
    else:
        console().print(Text(f"{url} shows the job of {target}; Ctrl-C ends it"))
    _wait()


def _wait() -> None:
    """Wait until somebody has seen enough."""
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        raise typer.Exit from None


def _page_on(location: str, host: str, port: int) -> str:
    """Serve a page on a checkpoint; return its address."""
    found = found_in(location)  # what is not a checkpoint is said before Spark is started
    try:
        from eventide.dashboard.server import Dashboard
    except ImportError as error:
        raise ProgramError(f"a page needs {error.name!r}; install it: {getting('dashboard')}") from error
    try:
        page = Dashboard(host, port)
    except OSError as error:
        raise ProgramError(f"{host}:{port} cannot be used ({error}); choose another with --port") from error
    from eventide.spark.checkpoint.recorded_job import RecordedJob

    page.watch(found.job, RecordedJob(started_spark(), location), {**found.description})
    return page.url


def _jobs_at(url: str) -> list[dict[str, Any]]:
    """How the jobs of a dashboard stand."""
    parts = urllib.parse.urlsplit(url)
    base = f"{parts.scheme}://{parts.netloc}/api/jobs"
    try:
        return [_asked(f"{base}/{job['number']}/summary") for job in _asked(base)]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ProgramError(f"{url} does not answer as an eventide dashboard: {error}") from error


def _asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=_PATIENCE_S) as found:
        return json.load(found)


def _view(url: str, jobs: list[dict[str, Any]]) -> RenderableType:
    parts: list[RenderableType] = []
    for job in jobs:
        table = Table.grid(padding=(0, 2))
        table.add_row(Text(job["name"], "bold"), Text(job["status"]))
        if verdict := job.get("verdict"):  # a page of another version may not tell
            table.add_row(Text("  verdict", "dim"), Text(verdict["text"], "" if verdict["is_well"] else "red"))
        if job["failure"]:
            table.add_row(Text("  failure"), Text(job["failure"], "red"))
        if job.get("restarts"):
            table.add_row(Text("  restarts", "dim"), Text(f"{job['restarts']}; the last after {job['last_restart']}"))
        for what, text in job["lines"]:
            table.add_row(Text(f"  {what}", "dim"), Text(text))
        parts.append(table)
    return Group(*parts) if parts else Text(f"no job has started yet at {url}")
