"""`CompletableFuture`: a result of a job's client that may not be there yet."""

from concurrent.futures import Future as CompletableFuture

from eventide._absent import hand_out_names

__all__ = ["CompletableFuture"]

hand_out_names(__name__)
