"""Copies of files from and to a store."""

from __future__ import annotations

from pathlib import Path

from pyarrow import fs

from eventide.storage import opened


def put(local: Path, there: str) -> None:
    """Copy a file into a store, or a folder, one file after the other: sources read them from the oldest on."""
    for file in sorted(local.rglob("*.parquet")) if local.is_dir() else [local]:
        file_system, path = opened(there)
        target = f"{path}/{file.relative_to(local)}" if local.is_dir() else path
        file_system.create_dir(target.rpartition("/")[0], recursive=True)
        fs.copy_files(str(file), target, fs.LocalFileSystem(), file_system)


def got(there: str, local: Path) -> Path:
    """Copy a folder of a store to the local disk."""
    file_system, path = opened(there)
    local.mkdir()
    fs.copy_files(path, str(local), file_system, fs.LocalFileSystem())
    return local


def lines(output: Path) -> list[str]:
    """Read a sink's output."""
    return sorted(line for file in output.glob("*.txt") for line in file.read_text().splitlines())
