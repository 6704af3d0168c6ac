"""When an asynchronous function is tried again, under PyFlink's path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.api.functions.asynchronous import (
    NO_RETRY_STRATEGY,
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
    NoRetryStrategy,
    RetryPredicate,
)

__all__ = [
    "NO_RETRY_STRATEGY",
    "ExponentialBackoffDelayRetryStrategy",
    "FixedDelayRetryStrategy",
    "NoRetryStrategy",
    "RetryPredicate",
]

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
