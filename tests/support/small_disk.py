"""A small disk in memory, which a test fills."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = os.sysconf("SC_PAGE_SIZE")
"""The bytes that a file of one byte takes."""
_FILLER = "filler"


@contextmanager
def small_disk(place: Path, megabytes: int = 8) -> Iterator[Path]:
    """Mount a disk at a place within the ``with`` block; skip the test where this machine does not let it."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("to mount a disk in memory (tmpfs) needs root and the command mount")
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine lets no disk in memory be mounted: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)  # Spark may have a file open for a moment


def fill(disk: Path, pages: int = 0) -> None:
    """Fill a disk, but for some pages, with one more file."""
    filler = disk / _FILLER
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(PAGE))
        except OSError:
            size = file.tell() // PAGE * PAGE
        file.truncate(size - pages * PAGE)


def make_room(disk: Path) -> None:
    """Delete that file."""
    (disk / _FILLER).unlink()
