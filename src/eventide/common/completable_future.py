"""`CompletableFuture`: what a job's client gives for what is not there yet."""

from concurrent.futures import Future as CompletableFuture

__all__ = ["CompletableFuture"]
