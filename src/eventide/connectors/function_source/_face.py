"""A function of Flink 1 that stands for a source of its own: the source is read, and the function is never run."""

from __future__ import annotations

from abc import abstractmethod

from eventide.api.functions import SourceContext, SourceFunction
from eventide.api.source import Source
from eventide.common.watermark_strategy import WatermarkStrategy
from eventide.errors import ProgramError


class SourceFace(SourceFunction):
    """A source function whose `Source` ``env.add_source`` reads, with watermarks for each split."""

    @abstractmethod
    def as_source(self) -> Source:
        """Return the source."""

    @abstractmethod
    def get_watermark_strategy(self) -> WatermarkStrategy:
        """Return how its splits get timestamps and watermarks."""

    def run(self, ctx: SourceContext) -> None:
        """Refuse to run.

        Raises:
            ProgramError: Always: the source is read.
        """
        raise ProgramError(f"a {type(self).__name__} is read as a source: hand it to env.add_source(...)")

    def cancel(self) -> None:
        """Do nothing: the function never runs."""
