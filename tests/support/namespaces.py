"""Network namespaces of this machine: a server in one of them has a link of its own, which can be cut."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from eventide.errors import EventideError
from eventide.testing.servers import ServerFolder

_NOBODY = "02:00:00:00:00:01"
"""A hardware address that no device has: packets that go there are lost."""

_numbers = count()
"""Numbers of the namespaces of this process, each with four addresses of its own."""


class Namespace:
    """A network namespace, and the link between it and this machine.

    Attributes:
        address: The address of a server that runs in the namespace.
        gateway: The address of this machine, as the namespace sees it.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        short = uuid.uuid4().hex[:8]
        self._inner, self._outer = f"in-{short}", f"out-{short}"
        network, first = f"10.231.{os.getpid() % 250 + 1}", 4 * next(_numbers)
        self.gateway, self.address = f"{network}.{first + 1}", f"{network}.{first + 2}"

    @property
    def command(self) -> tuple[str, ...]:
        """The beginning of a command that runs in the namespace; the process keeps its id."""
        return ("nsenter", f"--net=/proc/{self._process}/ns/net")

    def cut(self) -> None:
        """Lose all packets, in both directions: connections hang, and are neither closed nor refused."""
        ip("neigh", "replace", self.address, "lladdr", _NOBODY, "dev", self._outer, "nud", "permanent")
        self._within("neigh", "replace", self.gateway, "lladdr", _NOBODY, "dev", self._inner, "nud", "permanent")

    def restore(self) -> None:
        """Let packets pass again."""
        ip("neigh", "del", self.address, "dev", self._outer)
        self._within("neigh", "del", self.gateway, "dev", self._inner)

    def add(self) -> None:
        """Make its link."""
        ip("link", "add", self._outer, "type", "veth", "peer", "name", self._inner, "netns", str(self._process))
        ip("addr", "add", f"{self.gateway}/30", "dev", self._outer)
        ip("link", "set", self._outer, "up")
        self._within("addr", "add", f"{self.address}/30", "dev", self._inner)
        self._within("link", "set", self._inner, "up")
        self._within("link", "set", "lo", "up")

    def _within(self, *command: str) -> None:
        run(*self.command, "ip", *command)


@contextmanager
def namespace() -> Iterator[Namespace]:
    """Make a namespace that exists within the ``with`` block; skip the test where this machine allows none.

    It is that of a process, and goes with it, however this process ends.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the command ip (iproute2)")
    folder = ServerFolder("eventide-namespace-")
    try:
        process = folder.start("namespace", "unshare", "--net", "sleep", "infinity")
        own = os.readlink("/proc/self/ns/net")
        folder.wait_for("namespace", process, lambda: os.readlink(f"/proc/{process.pid}/ns/net") != own)
        made = Namespace(process.pid)
        made.add()
    except (EventideError, subprocess.CalledProcessError) as error:
        folder.close()
        pytest.skip(f"this machine allows no network namespace: {error}")
    try:
        yield made
    finally:
        folder.close()


def listens_at(address: str, port: int) -> bool:
    """Whether a server listens at an address."""
    try:
        socket.create_connection((address, port), 0.2).close()
    except OSError:
        return False
    return True


def ip(*command: str) -> None:
    """Run the command ip."""
    run("ip", *command)


def run(*command: str) -> None:
    """Run a command, which must not fail."""
    subprocess.run(command, check=True, capture_output=True, text=True)
