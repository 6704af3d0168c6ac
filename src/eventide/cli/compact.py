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
    megabytes: Annotated[int, typer.Option(min=1, help="Target file size; larger files are left as they are.")] = 128,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether CSV files have a header.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Merge the small files that a file sink has written.

    The job may run at the same time: the files of its newest micro-batch are left alone. Readers must not, because for
    a moment rows are in two files. A streaming job that reads the directory must have read all files, and must not
    continue afterwards. Do not go back to an older copy of the checkpoint later.

    Reads Parquet, JSON, text and CSV. Rows and lines do not change, and stay in the order of micro-batches.

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
