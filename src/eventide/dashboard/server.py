"""The server of the dashboard: a thread of its own, which no job waits for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable
from typing import Any, ClassVar

import uvicorn

from eventide.common.job import JobClient
from eventide.dashboard.app import application, own_names
from eventide.dashboard.watched import WatchedJobs

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
        self._hosts = {host, *(() if host in _ON_THIS_MACHINE else own_names()), *hosts}
        app = application(self._jobs, lambda: self._hosts)
        config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="eventide dashboard", daemon=True)
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
            known._hosts.update(hosts)
            return known

    @property
    def is_alive(self) -> bool:
        """Whether it answers."""
        return self._thread.is_alive()

    def watch(self, name: str, client: JobClient, description: dict[str, Any]) -> None:
        """Show a job, and keep it when it has ended, up to twenty of those."""
        self._jobs.add(name, client, description)

    def close(self) -> None:
        """Answer no more."""
        self._server.should_exit = True
        self._thread.join(_PATIENCE_S)
        self._socket.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def _await_start(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self._server.started:
            raise OSError(f"the server did not start within {_PATIENCE_S:.0f} seconds")
