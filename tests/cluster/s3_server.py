"""An S3 server on this machine, and what Arrow has to know to use it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from eventide.testing._ports import HOST, free_ports, listens


class S3:
    """A running server."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://{HOST}:{port}"
        self.variables = {
            "AWS_ACCESS_KEY_ID": "anybody",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }


@contextmanager
def s3_server() -> Iterator[S3]:
    """Moto's server in a process of its own."""
    [port] = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not listens(port):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield S3(port)
    finally:
        process.kill()
        process.wait()
