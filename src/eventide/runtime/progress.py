"""Progress of a micro-batch, merged from the reports of its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eventide.common.job import BatchProgress
from eventide.runtime.metrics import JobMetrics, add_up


def gathered(batch: int, contents: Sequence[Mapping[str, Any]], metrics: JobMetrics, **about: Any) -> BatchProgress:
    """The progress of a job with a micro-batch.

    Args:
        batch: its number.
        contents: what its tasks said, in their order.
        metrics: those of the job so far, which take note of it.
        about: when it began, how long it took and on what, as far as the host knows: attributes of the progress.
    """
    watermarks: dict[str, int] = {}
    splits: dict[str, dict[str, int]] = {}
    for content in contents:
        metrics.add(content)
        watermarks |= content.get("watermarks", {})
        for source, of_source in content.get("splits", {}).items():
            splits.setdefault(source, {}).update(of_source)
    return BatchProgress(
        batch,
        metrics.values(),
        watermarks,
        splits,
        counted=add_up([content["operators"] for content in contents]),
        rows_in=sum(content.get("rows", 0) for content in contents),
        held=metrics.held(),
        **about,
    )
