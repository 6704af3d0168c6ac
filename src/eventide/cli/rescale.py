"""``eventide rescale``: a stopped job goes on under another parallelism."""

from __future__ import annotations

from typing import Annotated

import typer

from eventide.cli.answers import AsJson, answer, found_in, started_spark, working


def rescale(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint's directory, or its URI.", show_default=False)
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A new directory for the checkpoint.", show_default=False)
    ],
    parallelism: Annotated[int, typer.Option(min=1, help="That of the job from now on.", show_default=False)],
    max_parallelism: Annotated[
        int | None, typer.Option(min=1, help="How many key groups it has from now on; by default, as many as before.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a new checkpoint of that of a stopped job, for another parallelism; its sinks stay.

    Start the program with the new checkpoint: it goes on where the job stopped, into the same directories and topics,
    and nothing is lost or comes twice. The program must not set another parallelism itself. No job starts on the old
    checkpoint any more.

    For example:

        eventide rescale /data/jobs/orders /data/jobs/orders-8 --parallelism 8
    """
    found_in(checkpoint)  # what is not a checkpoint is said before Spark is started
    spark = started_spark()
    with working("Spark reads the checkpoint"):
        from eventide.spark.checkpoint.rescaling import rescale as continue_in

        saved = continue_in(spark, checkpoint, target, parallelism=parallelism, max_parallelism=max_parallelism)
    document = {
        "checkpoint": target,
        "savepoint": saved.location,
        "parallelism": parallelism,
        "max_parallelism": saved.header.program["max parallelism"],
        "batch": saved.header.batch,
    }
    view = (
        f"The checkpoint {target}: goes on after micro-batch {saved.header.batch} of {checkpoint}, with {parallelism} "
        f"subtasks\nStart the program with env.get_checkpoint_config().set_checkpoint_storage_dir({target!r})"
    )
    answer(document, view, as_json=as_json)
