"""One Spark cluster for all tests of a folder: a master and two workers of one core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.spark_cluster import SparkCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[SparkCluster]:
    """A running cluster; a test that kills a part of it starts it again."""
    with SparkCluster(memory="1g") as running:
        yield running
