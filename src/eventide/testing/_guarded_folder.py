"""A folder for servers of a test, which goes with all that runs in it, also when the process that made it is killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path


class GuardedFolder:
    """A temporary folder, with another process that deletes it and ends the servers when this process is gone.

    Attributes:
        path: The folder.
    """

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("_guard.py")), str(self.path)]
        self._guard = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
        )

    def guard(self, *processes: int) -> None:
        """Say which processes are to end with this one: these, and no others."""
        if self._guard.stdin is not None:
            with suppress(BrokenPipeError):
                self._guard.stdin.write(" ".join(map(str, dict.fromkeys(processes))) + "\n")
                self._guard.stdin.flush()

    def close(self) -> None:
        """Delete the folder; what is still guarded is killed before."""
        self._guard.communicate()  # the end of its input
        shutil.rmtree(self.path, ignore_errors=True)
