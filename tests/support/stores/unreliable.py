"""An S3 server that fails as a distant one does: a proxy that stands between it and its clients."""

from __future__ import annotations

import http.client
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from eventide.testing.servers import HOST

_OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding"}
_PATIENCE_S = 60
_LOOKS_EVERY_S = 0.2
_LATE_S = 2
_CODES = {403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}
_ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>the proxy says so</Message></Error>"


class Fault(Enum):
    """The fate of a call."""

    DENIED = 403
    INTERNAL_ERROR = 500
    SLOW_DOWN = 503
    UNREACHED = "the connection is closed before the call has reached the server"
    REPLY_LOST = "the server has done it, and the connection is closed before the reply"
    LATE = "the reply comes after some seconds"
    SLOW = "the reply comes only after the client has asked again, or has given up"
    LISTING_LAGS = "a listing is that of the time before the last change"


class Call(NamedTuple):
    """A call: its method, its path, and the client that it is of, by its own words."""

    method: str
    path: str
    client: str

    @property
    def is_listing(self) -> bool:
        """Whether the call lists files."""
        return self.method == "GET" and "list-type" in self.path

    @property
    def is_by_arrow(self) -> bool:
        """Whether eventide itself makes it; else Spark does, through Hadoop."""
        return "aws-sdk-cpp" in self.client


class Unreliable:
    """Says of each call what becomes of it.

    ``fault_of`` is called with the number of the call, from 0, and gives a fault or None. ``calls`` has each call since
    the last :meth:`begin`; ``failed`` is the number of faults of all calls, and ``lagged`` that of the listings that
    were other than they should have been.
    """

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.calls: list[Call] = []
        self.failed = 0
        self.lagged = 0
        self._fault_of: Callable[[int], Fault | None] = lambda _: None
        self._lock = threading.Lock()
        self._asked_again = threading.Condition(self._lock)
        self._listings: dict[str, Any] = {}

    def begin(self, fault_of: Callable[[int], Fault | None] = lambda _: None) -> None:
        """Count calls anew."""
        with self._lock:
            self.calls, self._fault_of = [], fault_of

    def next_fault(self, call: Call) -> Fault | None:
        """The fault of a call that has just come."""
        with self._asked_again:
            self.calls.append(call)
            self._asked_again.notify_all()
            fault = self._fault_of(len(self.calls) - 1)
            self.failed += fault is not None
            return fault

    def wait_until_asked_again(self, call: Call, gave_up: Callable[[], bool]) -> None:
        """Wait until the same call has come again, or its client has given up."""
        deadline = time.monotonic() + _PATIENCE_S
        with self._asked_again:
            count = self.calls.count(call)
            while self.calls.count(call) == count and not gave_up() and time.monotonic() < deadline:
                self._asked_again.wait(_LOOKS_EVERY_S)

    def listing(self, path: str, answer: Any, *, lags: bool) -> Any:
        """The answer to a listing: the one before, if it lags."""
        with self._lock:
            before, self._listings[path] = self._listings.get(path, answer), answer
            self.lagged += lags and before[2] != answer[2]
            return before if lags else answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults: Unreliable

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self._chunked() if self.headers.get("Transfer-Encoding") == "chunked" else self.rfile.read(length)
        call = Call(self.command, self.path, self.headers.get("User-Agent", ""))
        fault = self.faults.next_fault(call)
        if fault is Fault.UNREACHED:
            self._hang_up()
        elif fault is not None and fault.value in _CODES:
            content = _ERROR.format(code=_CODES[fault.value]).encode()
            self._answer(fault.value, [("Content-Type", "application/xml")], content)
        else:
            status, headers, content = self._forwarded(body)
            if call.is_listing:
                lags = fault is Fault.LISTING_LAGS
                answer = self.faults.listing(self.path, (status, headers, content), lags=lags)
                status, headers, content = answer
            if fault is Fault.SLOW:
                self.faults.wait_until_asked_again(call, self._is_given_up)
            if fault is Fault.LATE:
                time.sleep(_LATE_S)
            if fault in (Fault.REPLY_LOST, Fault.SLOW):
                self._hang_up()
            else:
                self._answer(status, headers, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - names of http.server

    def _chunked(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(HOST, self.faults.upstream)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_CONNECTION}
        headers.pop("Expect", None)
        headers["Content-Length"] = str(len(body))
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in _OF_ONE_CONNECTION]
        return answer.status, kept, content

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        sizes = [value for name, value in headers if name.lower() == "content-length"]
        for name, value in headers:
            if name.lower() != "content-length":
                self.send_header(name, value)
        self.send_header("Content-Length", sizes[0] if sizes and self.command == "HEAD" else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _is_given_up(self) -> bool:
        """Whether the client has closed the connection."""
        is_there, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(is_there) and not self.connection.recv(1, socket.MSG_PEEK)
        except ConnectionResetError:
            return True

    def _hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def unreliable(upstream: int) -> Iterator[tuple[Unreliable, int]]:
    """A running proxy before a server on a port of this machine, and the port of the proxy."""
    faults = Unreliable(upstream)
    server = ThreadingHTTPServer((HOST, 0), type("Handler", (_Handler,), {"faults": faults}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield faults, server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
