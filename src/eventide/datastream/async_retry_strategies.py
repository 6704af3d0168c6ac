"""Retry strategies of asynchronous functions, under PyFlink's path."""

from __future__ import annotations

from eventide._absent import hand_out_names
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

hand_out_names(__name__)
