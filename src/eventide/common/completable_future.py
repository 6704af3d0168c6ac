"""`CompletableFuture`: what a job's client gives for what is not there yet."""

from concurrent.futures import Future as CompletableFuture

from eventide._absent import hand_out_names

__all__ = ["CompletableFuture"]

hand_out_names(__name__)
