"""Decides which requests the dashboard answers: by the host that they name, and by the page that sent them."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

OWN_HEADER = "x-eventide"
"""The page sends this with each question. A foreign page could only after a request that no dashboard allows."""


class KnownHosts:
    """Refuses requests for a host that is not the dashboard's.

    A foreign page whose name leads to this machine makes a browser ask under that name. So a host must be an
    address by its number, this machine by a name that it knows, or one that was allowed.

    Args:
        app: The application that answers the others.
        allowed: Gives the further names.
    """

    def __init__(self, app: ASGIApp, allowed: Callable[[], Collection[str]]) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http" or is_known(_named(scope), self._allowed()):
            await self._app(scope, receive, send)
        else:
            await PlainTextResponse("this is no host of the dashboard's", 400)(scope, receive, send)


def is_known(host: str, allowed: Collection[str]) -> bool:
    """Whether a Host header is of the dashboard's.

    >>> [is_known(host, ["watch"]) for host in ("127.0.0.1:8081", "[::1]", "Watch:80", "evil.example")]
    [True, True, True, False]
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    return _is_address(name) or name in {"localhost", *(one.lower().rstrip(".") for one in allowed)}


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def own_names() -> set[str]:
    """The names that this machine has for itself."""
    return {socket.gethostname()}


def is_of_the_page(request: Request) -> bool:
    """Whether a request comes from the dashboard's page, or from a program, and from no other page."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    return OWN_HEADER in request.headers and site in {"same-origin", "none"}


def _named(scope: Any) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
