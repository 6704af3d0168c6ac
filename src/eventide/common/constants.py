"""The bounds of Flink's 64-bit numbers, and so of its times."""

from eventide.common.ms import MAX_MS, MIN_MS

__all__ = ["DEFAULT_OUTPUT_TAG", "MAX_LONG_VALUE", "MIN_LONG_VALUE"]

MAX_LONG_VALUE = MAX_MS
MIN_LONG_VALUE = MIN_MS
DEFAULT_OUTPUT_TAG = ""
