"""One server of Spark Connect, and one session, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.datastream import StreamExecutionEnvironment
from support.connect.server import ConnectServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server that runs."""
    with ConnectServer(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def spark(server: ConnectServer) -> Iterator[SparkSession]:
    """A session on the server."""
    session = SparkSession.builder.remote(server.url).getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def env(spark: SparkSession, tmp_path: Path) -> StreamExecutionEnvironment:
    """A fresh environment on the session, with a checkpoint of its own."""
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))
    return environment
