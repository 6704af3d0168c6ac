"""Ports of this machine for what tests start on it."""

from __future__ import annotations

import contextlib
import socket

HOST = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def listens(port: int) -> bool:
    """Whether somebody listens at a port."""
    try:
        socket.create_connection((HOST, port), 0.2).close()
    except OSError:
        return False
    return True
