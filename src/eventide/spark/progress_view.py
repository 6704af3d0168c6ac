"""The progress of a job on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from eventide.common.job import BatchProgress
from eventide.common.words import summary


class ProgressView:
    """Shows how a job stands in a few lines that change in place; nothing where standard error is no terminal.

    Args:
        title: the name of the job.
        address: where its dashboard is, if it has one.
    """

    def __init__(self, title: str, address: str | None = None) -> None:
        self.title = title
        self._address = address
        console = Console(stderr=True)
        self._live: Live | None = None
        if console.is_terminal:
            # What goes to a file or another program is not to be mixed with this.
            aside = sys.stdout.isatty()
            self._live = Live(
                self._lines([]), console=console, auto_refresh=False, transient=True, redirect_stdout=aside
            )
            self._live.start(refresh=True)

    def show(self, progress: Sequence[BatchProgress]) -> None:
        """Show where the job stands with the last of some micro-batches."""
        if self._live is not None:
            with suppress(OSError, ValueError):  # that the terminal is gone is nothing to the job
                self._live.update(self._lines(progress), refresh=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._live is not None:
            self._live.stop()

    def _lines(self, progress: Sequence[BatchProgress]) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_row(Text(self.title, "bold"), Text(self._address or "", "dim"))
        for what, text in summary(progress):
            table.add_row(Text(f"  {what}", "dim"), Text(text))
        return table
