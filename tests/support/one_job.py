"""Several programs as one job: on Spark that is much faster than a query for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from eventide.datastream import StreamExecutionEnvironment


def add_programs(
    env: StreamExecutionEnvironment, programs: Iterable[Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run programs that make an environment of their own, and execute it, up to there, on this environment.

    Their settings follow each other: set those of the job afterwards.
    """
    with monkeypatch.context() as patch:
        patch.setattr(StreamExecutionEnvironment, "get_execution_environment", staticmethod(lambda: env))
        patch.setattr(StreamExecutionEnvironment, "execute", lambda self, job_name=None: None)
        for program in programs:
            program()
