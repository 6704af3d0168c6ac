"""One Spark session, and one Kafka broker, for all tests that need one."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import settings

from eventide.datastream import StreamExecutionEnvironment
from eventide.errors import ProgramError
from eventide.testing import KafkaBroker
from eventide.testing.kafka_broker import kafka_jars

# Tests run many short queries in new JVMs: the quick compiler alone makes them a third faster.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


# How long an example takes says something about the machine, not about eventide. The suite tries the same examples each
# time, so that a change fails by what it did; `./run nightly` tries many others: `--hypothesis-profile=random`.
settings.register_profile("same", deadline=None, derandomize=True, max_examples=35)
settings.register_profile("random", deadline=None, max_examples=200)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer what takes too long for every day."""
    parser.addoption("--all-scenarios", action="store_true", help="run every recorded scenario on Spark")
    parser.addoption("--kills", type=int, default=1, help="how often the job of a kill test is killed")
    parser.addoption(
        "--another-python", action="append", default=[], help="a Python with a later Spark, which goes on; one or more"
    )
    parser.addoption("--every-byte", action="store_true", help="change each byte of small files in four ways")
    parser.addoption("--seed", type=int, default=None, help="what the moments of kills follow from")


def pytest_configure(config: pytest.Config) -> None:
    """Choose a seed where none is given."""
    if config.getoption("--seed") is None:
        config.option.seed = random.randrange(10**6)


def pytest_report_header(config: pytest.Config) -> str:
    """Say which, to have the same moments again."""
    return f"kills: --kills={config.getoption('--kills')} --seed={config.getoption('--seed')}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests over Spark Connect where there are others: they need a process of their own."""
    over_connect = [item for item in items if item.get_closest_marker("connect")]
    if over_connect and len(over_connect) < len(items):
        config.hook.pytest_deselected(items=over_connect)
        items[:] = [item for item in items if not item.get_closest_marker("connect")]


@pytest.fixture
def injected(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """Counts the faults that a test injects, by kind; if it passes, they are noted for `python -m tests.faults`."""
    faults: Counter[str] = Counter()
    began, failed = time.monotonic(), request.session.testsfailed
    yield faults
    if faults and request.session.testsfailed == failed:
        from faults import Injected, add

        asked = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
        said = subprocess.run(asked, check=False, capture_output=True, text=True)
        seed, took_s = request.config.getoption("--seed"), time.monotonic() - began
        date = datetime.now(UTC).date().isoformat()
        add(Injected(request.node.nodeid, seed, dict(faults), round(took_s), said.stdout.strip(), date))


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The session that eventide itself makes."""
    from pyspark.sql import SparkSession

    StreamExecutionEnvironment.get_execution_environment()
    session = SparkSession.getActiveSession()
    assert session is not None
    yield session
    session.stop()


@pytest.fixture
def env(spark: object, tmp_path: Path) -> StreamExecutionEnvironment:
    """A fresh environment on Spark with a checkpoint of its own and two subtasks."""
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    environment.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))
    return environment


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A running broker; a test that kills it starts it again. Without one a build server must not pass."""
    try:
        jars = kafka_jars()
    except ProgramError as error:
        if os.environ.get("CI"):
            pytest.fail(f"the build server must have a Kafka broker: {error}", pytrace=False)
        pytest.skip(f"no Kafka broker can be had here: {str(error).partition(': they are needed')[0]}")
    with KafkaBroker(jars=jars, users={"wren": "right"}) as running:
        yield running
