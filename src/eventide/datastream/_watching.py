"""Observers of the jobs of an environment while they run: a page, and systems that gather metrics."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, Self

from eventide.common.accepted import level_of_the_program
from eventide.common.job import JobClient
from eventide.errors import DashboardWarning
from eventide.plan.description import describe
from eventide.plan.job import JobPlan

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider


class _Watcher(Protocol):
    def watch(self, name: str, client: JobClient, description: dict[str, Any]) -> None:
        """Follow a job."""


class Watching:
    """The part of an environment that shows its jobs; nothing here makes one fail, or wait. Not in PyFlink."""

    def __init__(self) -> None:
        self._dashboard_url: str | None = None
        self._watchers: list[_Watcher] = []

    def set_dashboard(self, port: int = 8081, host: str = "127.0.0.1", hosts: Sequence[str] = ()) -> Self:
        """Show the jobs of this environment on a page, and tell Prometheus of them at ``/metrics``.

        The page is there as long as the process is; environments with one address share it. It needs
        ``pip install eventide[dashboard]``. Without that, or if the port is taken, a
        :class:`~eventide.errors.DashboardWarning` says so, and jobs run without a page.

        Args:
            port: its port; 0 for any that is free, which :meth:`get_dashboard_url` tells.
            host: the address to listen at. Everyone who reaches it can see the page, which asks for no password: with
                another than this machine's own, let something stand before it that does.
            hosts: further names under which a browser may ask for it, such as that of a proxy. Addresses by their
                numbers, ``localhost``, ``host`` and this machine's name are known; requests for others are refused,
                so that a foreign page cannot read it through a host name that leads here.

        >>> from eventide.testing import local_environment
        >>> env = local_environment().set_dashboard(port=0)
        >>> print(env.get_dashboard_url())
        http://127.0.0.1:...
        """
        try:
            from eventide.dashboard.server import Dashboard

            dashboard = Dashboard.at(host, port, hosts)
        except ImportError as error:
            _warn(f"no dashboard: it needs {error.name!r}; install it with: pip install 'eventide[dashboard]'")
        except (OSError, OverflowError) as error:
            _warn(f"no dashboard: {host}:{port} cannot be used ({error}); choose another with set_dashboard(port=...)")
        else:
            self._dashboard_url = dashboard.url
            self._watchers.append(dashboard)
        return self

    def get_dashboard_url(self) -> str | None:
        """Where the page on this environment's jobs is; None where there is none."""
        return self._dashboard_url

    def set_meter_provider(self, meter_provider: MeterProvider | None = None) -> Self:
        """Tell OpenTelemetry of the jobs of this environment, under the names of :meth:`set_dashboard`'s metrics.

        It needs ``pip install eventide[opentelemetry]``, and warns without that. Where metrics go, and how often, is
        what the provider has been told.

        Args:
            meter_provider: the provider; by default, the one that the process has.
        """
        try:
            from eventide.dashboard.telemetry import Telemetry

            self._watchers.append(Telemetry.of(meter_provider))
        except ImportError as error:
            _warn(f"no metrics: that needs {error.name!r}; install it with: pip install 'eventide[opentelemetry]'")
        return self

    def _show(self, name: str, client: JobClient, plan: JobPlan) -> None:
        """Have a job that has started looked at."""
        if not self._watchers:
            return
        try:
            description = describe(plan)
            for watcher in self._watchers:
                watcher.watch(name, client, description)
        except Exception as error:  # the job runs, and the caller wants its client
            with suppress(DashboardWarning):  # also where warnings are errors
                _warn(f"the job {name!r} runs, and is not shown: {type(error).__name__}: {error}")


def _warn(why: str) -> None:
    warnings.warn(why, DashboardWarning, stacklevel=level_of_the_program())
