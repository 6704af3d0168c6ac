"""The Spark session of a command."""

from __future__ import annotations

import os
from typing import Any

from eventide.cli.answers import working

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def started_spark() -> Any:
    """The active session, or one for a few seconds: its JVM compiles quickly rather than well.

    Raises:
        ProgramError: if there is no Java that Spark can use.
    """
    os.environ.setdefault("JAVA_TOOL_OPTIONS", _QUICK_START)
    with working("Spark starts"):
        from eventide.spark.session import find_session

        return find_session(None, None)
