"""Savepoints: the state of a stopped job as rows in Parquet, for a job of another parallelism, or another program."""

from __future__ import annotations

from eventide.savepoint.directory import Header, Outline, SavedSource
from eventide.savepoint.saved import Savepoint, StateWriter

__all__ = ["Header", "Outline", "SavedSource", "Savepoint", "StateWriter"]
