"""How many files there are below a folder, and how many bytes, by what they are for."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path


def taken(folder: Path, name: str) -> dict[str, float]:
    """Files and bytes of each folder within a folder, and of all."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for where, _, names in os.walk(folder):
        kind = Path(where).relative_to(folder).parts[:1]
        for one in names:
            with suppress(FileNotFoundError):  # it has just gone
                size = (Path(where) / one).stat().st_size
                for what in ("all", *kind):
                    files[what] += 1
                    sizes[what] += size
    return {f"{name}/{what}: files": files[what] for what in files} | {
        f"{name}/{what}: kB": sizes[what] / 1e3 for what in sizes
    }
