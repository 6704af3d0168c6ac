"""python moto_server.py HOST PORT: moto's server, as AWS's clients expect it.

The one of ``python -m moto.server`` says twice that it waits for the body of a request, by Werkzeug and by Python's
server below it. The asynchronous client, with which Hadoop uploads files of a local disk, takes the second time for the
answer, and tries again for minutes.
"""

from __future__ import annotations

import sys

from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


class RequestHandler(MotoRequestHandler):
    """Leaves it to Werkzeug to say that the body may come."""

    def handle_expect_100(self) -> bool:
        return True


if __name__ == "__main__":
    host, port = sys.argv[1:]
    application = DomainDispatcherApplication(create_backend_app)
    run_simple(host, int(port), application, threaded=True, request_handler=RequestHandler)
