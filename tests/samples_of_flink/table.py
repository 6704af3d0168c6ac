"""The samples of Flink's pages on event time: what is known of each, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventide.common import WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.testing import ScriptedSource


@dataclass(frozen=True)
class Sample:
    """A sample of a page, with what it gives, in any order.

    Attributes:
        page: where it is below docs/dev/datastream of Flink's documentation.
        heading: the one above it, and which of several it is.
        build: makes the stream of its results, in an environment; a second argument is a folder for its files.
        gives: all that comes of it.
        step_ms: how far the clock, which begins at 0, goes on whenever a micro-batch is planned.
        max_rows: how many elements of a split a micro-batch has at most; None for all.
        limit: after how many results a source without end is left.
    """

    page: str
    heading: str
    build: Callable[..., Any]
    gives: list[Any]
    step_ms: int = 0
    max_rows: int | None = None
    limit: int | None = None

    def built(self, env: StreamExecutionEnvironment, folder: Path) -> Any:
        """The stream of its results."""
        takes_folder = self.build.__code__.co_argcount == 2
        return self.build(env, folder) if takes_folder else self.build(env)


def sample(page: str, heading: str, gives: list[Any], **how: Any) -> Callable[[Callable[..., Any]], Sample]:
    """Make a sample of the function that builds it."""
    return lambda build: Sample(page, heading, build, gives, **how)


def first(element: Any) -> Any:
    return element[0]


def second(element: Any) -> Any:
    return element[1]


def scripted(env: StreamExecutionEnvironment, strategy: WatermarkStrategy, *batches: list[Any]) -> Any:
    """A source whose split "s" has these elements, batch by batch."""
    script = [[("s", element) for element in batch] for batch in batches]
    return env.from_source(ScriptedSource(["s"], script), strategy, "script")
