"""Servers for tests on this machine: they and their data go with the process that started them, even if it is killed.

    python servers.py FOLDER

is the guard of a folder: a process that outlives the one that started it. Its standard input brings lines with the ids
of processes, of which the last line counts. The input ends however the other process ends; then the guard kills these
processes and deletes the folder. The guard runs this file alone, so that only the standard library is imported here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
_PATIENCE_S = 60


def free_ports(count: int) -> list[int]:
    """Ports at which nothing listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def listens(port: int) -> bool:
    """Whether a server listens at a port."""
    try:
        socket.create_connection((HOST, port), 0.2).close()
    except OSError:
        return False
    return True


class ServerFolder:
    """A temporary folder, and the servers whose data it has.

    Attributes:
        path: The folder.
    """

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._running: list[subprocess.Popen[bytes]] = []
        command = [sys.executable, "-I", "-S", __file__, str(self.path)]
        self._guard = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
        )
        # The end of its input has the guard end the servers: also where this folder is forgotten, and not closed.
        self._end_guard = weakref.finalize(self, self._guard.communicate)

    def start(self, name: str, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a server, whose output is appended to a log of its name; the options are those of ``Popen``."""
        with (self.path / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **options
            )
        self._running.append(process)
        self._tell_guard()
        return process

    def wait_for(self, name: str, process: subprocess.Popen[bytes], is_ready: Callable[[], bool]) -> None:
        """Wait until a server is ready.

        Raises:
            EventideError: It has ended, or a minute has passed; the message has the end of its log.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                from eventide.errors import EventideError

                raise EventideError(f"the {name} does not start. It said:\n{self.said(name)[-4000:]}")
            time.sleep(0.02)

    def said(self, name: str) -> str:
        """The log of a server."""
        log = self.path / f"{name}.log"
        return log.read_text(encoding="utf-8", errors="replace").strip() if log.exists() else ""

    def end(self, process: subprocess.Popen[bytes], *, gently: bool = False) -> None:
        """End a server, at once or gently, as an operator does, and wait until it is gone."""
        if gently:
            process.terminate()
        else:
            process.kill()
        process.wait()
        self._tell_guard()

    def close(self) -> None:
        """End all servers at once, and delete the folder."""
        for process in [*self._running]:
            self.end(process)
        self._end_guard()
        shutil.rmtree(self.path, ignore_errors=True)

    def _tell_guard(self) -> None:
        self._running = [process for process in self._running if process.poll() is None]
        if self._guard.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._guard.stdin.write(" ".join(str(process.pid) for process in self._running) + "\n")
                self._guard.stdin.flush()


def _guard(folder: str) -> None:
    line = ""
    for told in sys.stdin:
        line = told
    for process in map(int, line.split()):
        with contextlib.suppress(OSError):  # it is gone
            os.kill(process, signal.SIGKILL)
            for _ in range(100):  # it writes as long as it is there
                os.kill(process, 0)
                time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _guard(sys.argv[1])
