"""The watermark strategy of a source, seen together with the timestamps that the source gives."""

from __future__ import annotations

from dataclasses import replace

from eventide.api.source import Source
from eventide.common.accepted import has_no_effect
from eventide.common.watermark_generators import BoundedOutOfOrderness, NoWatermarks
from eventide.common.watermark_strategy import WatermarkSpec, spec_of


def has_timestamps(strategy: WatermarkSpec) -> bool:
    """Say whether a strategy assigns timestamps."""
    return strategy.timestamp_assigner is not None or strategy.timestamp_column is not None


def strategy_in_force(given: object, source: Source, source_name: str) -> WatermarkSpec:
    """Return the strategy that a source runs with: the given one, without watermarks if nothing gives timestamps.

    A warning says that such a strategy has no effect, as it has none in Flink.

    Raises:
        ProgramError: The strategy is not a ``WatermarkStrategy``.
    """
    strategy = spec_of(given, f"the source {source_name!r}")
    has_times = has_timestamps(strategy) or source.gives_timestamps()
    if has_times or not isinstance(strategy.generator, BoundedOutOfOrderness):
        return strategy
    why = "the elements have no timestamps; event time needs with_timestamp_assigner(...)"
    has_no_effect(f"the watermark strategy of {source_name!r}", why)
    return replace(strategy, generator=NoWatermarks())
