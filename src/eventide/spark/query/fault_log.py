"""Log of a worker for the case that its process ends without an exception."""

from __future__ import annotations

import faulthandler
import os
from typing import IO


class FaultLog:
    """The file to which Python's ``faulthandler`` writes at a native crash: Spark adds it to the error of the task.

    One text is kept in it, to which the traceback of a crash is appended. If Spark has named no such file, nothing is
    kept.
    """

    def __init__(self) -> None:
        folder = os.environ.get("PYTHON_FAULTHANDLER_DIR")
        self._file: IO[bytes] | None = None
        if folder is not None:
            self._file = open(os.path.join(folder, str(os.getpid())), "ab", buffering=0)  # noqa: SIM115 - for the task
            faulthandler.enable(file=self._file)

    def __call__(self, text: str) -> None:
        """Keep a text in place of the one before."""
        if self._file is not None:
            self._file.truncate(0)
            self._file.write(text.encode())
