"""How far reading is, shown on a terminal alone."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from eventide.common.words import count


class Watch:
    """Shows rows and files on standard error while it is open; nothing where that is no terminal.

    >>> with Watch() as watch:
    ...     watch.rows_read(5)
    >>> watch.rows
    5
    """

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("reading", total=None)
        self.rows = self._files = self._all_files = 0

    def expect(self, files: int) -> None:
        """Say how many files there are."""
        self._all_files = files
        self._progress.update(self._task, total=files if files > 1 else None)

    def rows_read(self, rows: int) -> None:
        """Say that so many more rows have been read."""
        self.rows += rows
        self._show()

    def file_read(self) -> None:
        """Say that one more file has been read."""
        self._files += 1
        self._progress.update(self._task, advance=1)
        self._show()

    def _show(self) -> None:
        files = f", {self._files:,} of {count(self._all_files, 'file')}" if self._all_files else ""
        self._progress.update(self._task, description=f"{count(self.rows, 'row')}{files}")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
