"""``eventide compact``: few large files in place of many small ones that a file sink has written."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from eventide.cli.answers import AsJson, answer, working


def compact(
    directory: Annotated[
        str, typer.Argument(metavar="DIRECTORY", help="The directory of a file sink, or its URI.", show_default=False)
    ],
    megabytes: Annotated[int, typer.Option(min=1, help="The size of a file that is large enough.")] = 128,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether CSV files begin with a line of names.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put the files of a file sink together, which writes some in every micro-batch.

    The job may run meanwhile: the files of the newest micro-batch are left alone. Readers may not: while a file takes
    the place of several, these are still there for a moment. A job that reads the directory as a stream must have read
    all of it, and must not go on after that. After this, do not take the job back to an older copy of its checkpoint.

    Parquet, and JSON, text and CSV; a line, or a row, stays as it is, in the order of micro-batches.

    For example:

        eventide compact /data/totals
        eventide compact s3://bucket/totals --megabytes 512
    """
    from eventide.connectors.file_system.compaction import Compaction
    from eventide.connectors.file_system.sink import PartFiles

    with working("files are put together"):
        done = Compaction(PartFiles.at(directory), megabytes * 2**20, header).run()
    text = f"{directory}: {done.before:,} part files became {done.after:,}"
    answer({"directory": directory, **dataclasses.asdict(done)}, text, as_json=as_json)
