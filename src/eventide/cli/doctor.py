"""``eventide doctor``: whether this machine has what jobs need."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from eventide.cli.answers import AsJson, answer
from eventide.cli.health import Finding, State, findings

_MARKS = {
    State.FINE: Text("ok", "green"),
    State.ABSENT: Text("-", "dim"),
    State.WRONG: Text("missing", "bold red"),
}


def doctor(
    spark: Annotated[bool, typer.Option("--spark", help="Run a small job on Spark, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what this machine has of what jobs need, what is missing, and how to get it.

    Looks at Python, Java, the libraries and their versions, those of the extras, the folder for temporary files, the
    local address that Spark listens on, processors and memory. The exit code is 1 if a job could not run; an extra that
    is not installed is no fault.

    For example:

        eventide doctor           # versions, and what is missing
        eventide doctor --spark   # and whether a job with state runs
        eventide doctor --json    # for the report of a fault
    """
    found = findings()
    if spark and all(finding.state is not State.WRONG for finding in found):
        from eventide.cli.trial import tried

        found.append(tried())
    fine = all(finding.state is not State.WRONG for finding in found)
    document = {"fine": fine, "findings": [finding.as_json() for finding in found]}
    answer(document, _table(found), as_json=as_json, fine=fine)


def _table(found: list[Finding]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for finding in found:
        said = finding.found if not finding.advice else f"{finding.found}; {finding.advice}"
        table.add_row(_MARKS[finding.state], finding.what, said)
    return table
