"""A running job in a cell of a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

from eventide.common.job import JobClient
from eventide.dashboard.picture import picture
from eventide.dashboard.watched import WatchedJob
from eventide.errors import ProgramError

_EVERY_S = 0.5


def watch(client: JobClient, seconds: float | None = None) -> None:
    """Show a job in the cell of a notebook that calls this, and draw it anew after each micro-batch.

    The picture has the watermarks of the slowest splits and of operators, elements in and too late, and how much
    operators hold, for the last 200 micro-batches. It stays in the cell when the call returns: when the job has ended,
    failed or been cancelled, after `seconds`, or when the cell is interrupted. The job is not touched by any of that.
    That it has failed is in the picture; ``client.get_job_execution_result().result()`` raises the error.

    Flink has nothing like it. On a terminal, ``execute()`` shows where a job stands.

    Args:
        client: The job, from ``env.execute_async(...)``.
        seconds: How long to watch at most, by the clock; without it, until the job ends.

    Raises:
        ProgramError: if this is no notebook.

    >>> from eventide.testing import local_environment
    >>> env = local_environment()
    >>> letters = env.from_collection(["a", "b"]).print()
    >>> watch(env.execute_async("letters"))
    Traceback (most recent call last):
    ...
    eventide.errors.ProgramError: watch(...) draws in the cell of a notebook, and this is none; ...
    """
    display = _display_of_the_notebook()
    until = float("inf") if seconds is None else time.monotonic() + seconds
    result = client.get_job_execution_result()
    job = WatchedJob(0, "", client, {})
    drawn = _as_drawn(job)
    shown = display(drawn, raw=True, display_id=True)
    is_over = False
    try:
        while not is_over:
            wait([result], max(0.0, min(_EVERY_S, until - time.monotonic())))
            is_over = result.done() or time.monotonic() >= until  # before the last look, which sees the end then
            if drawn != (drawn := _as_drawn(job)):
                shown.update(drawn, raw=True)
    except KeyboardInterrupt:
        return


def _as_drawn(job: WatchedJob) -> dict[str, str]:
    """Return the job in the forms of which a notebook chooses one."""
    lines = [("job", job.status.value), *job.summary()]
    return {"image/svg+xml": picture(job), "text/plain": "\n".join(f"{what}: {text}" for what, text in lines)}


def _display_of_the_notebook() -> Callable[..., Any]:
    if "IPython" in sys.modules:
        from IPython import get_ipython
        from IPython.display import display

        shows: Callable[..., Any] = display
        if hasattr(get_ipython(), "kernel"):
            return shows
    raise ProgramError(
        "watch(...) draws in the cell of a notebook, and this is none; use client.get_progress() for the figures, "
        "env.set_dashboard(...) for a page, or env.execute(), which shows on a terminal where the job stands"
    )
