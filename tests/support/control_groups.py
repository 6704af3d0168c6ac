"""Control groups of the kernel that limit memory: their processes are killed when they need more."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_ROOT = Path("/sys/fs/cgroup")
_PATIENCE_S = 30


class LimitedGroup:
    """A control group, of version 1 or 2."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def limit(self, most: int) -> None:
        """Let the processes of the group have `most` bytes together, and no swap."""
        is_new = (self.folder / "memory.max").exists()
        (self.folder / ("memory.max" if is_new else "memory.limit_in_bytes")).write_text(str(most))
        swap = self.folder / ("memory.swap.max" if is_new else "memory.memsw.limit_in_bytes")
        if swap.exists():
            swap.write_text("0" if is_new else str(most))

    def killed(self) -> int:
        """The number of processes that the kernel has killed in it."""
        told = self.folder / "memory.events"
        told = told if told.exists() else self.folder / "memory.oom_control"
        return int(dict(line.split() for line in told.read_text().splitlines())["oom_kill"])

    def remove(self) -> None:
        """End what is left in it, and remove it."""
        deadline = time.monotonic() + _PATIENCE_S
        while processes := (self.folder / "cgroup.procs").read_text().split():
            assert time.monotonic() < deadline, processes
            for process in processes:
                os.kill(int(process), signal.SIGKILL)
            time.sleep(0.05)
        self.folder.rmdir()


@contextmanager
def limited_group(most: int) -> Iterator[LimitedGroup]:
    """A new group with at most `most` bytes of memory; skips the test where this user may not make one.

    A group of version 2 lies at the root, whose children may be given controllers.
    """
    version_1 = _ROOT / "memory"
    folder = (version_1 if version_1.is_dir() else _ROOT) / f"eventide-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"this user may not make a control group: {error}")
    group = LimitedGroup(folder)
    try:
        try:
            group.limit(most)
        except OSError as error:
            pytest.skip(f"this user may not limit the memory of a control group: {error}")
        yield group
    finally:
        group.remove()
