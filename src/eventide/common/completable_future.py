"""`CompletableFuture`: what a job's client gives for what is not there yet."""

from concurrent.futures import Future as CompletableFuture
from typing import TYPE_CHECKING

from eventide._absent import finder_of_names

__all__ = ["CompletableFuture"]


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
