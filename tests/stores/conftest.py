"""Stores that run on this machine, in which jobs have all that they have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eventide.storage import opened, opened_store
from support.cluster.fixture import cluster
from support.stores.hdfs_server import hdfs_server
from support.stores.s3_server import s3_server, with_hadoop
from support.stores.store import Store

__all__ = ["cluster"]


@pytest.fixture(scope="module")
def s3() -> Iterator[Store]:
    """A bucket, as Arrow opens it in this process."""
    with s3_server() as store, pytest.MonkeyPatch.context() as patch:
        for name, value in store.variables.items():
            patch.setenv(name, value)
        opened_store.cache_clear()  # of a server before this one
        file_system, bucket = opened(f"{store.location}?allow_bucket_creation=true")
        file_system.create_dir(bucket)
        yield store


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A folder in HDFS."""
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as store:
        yield store


@pytest.fixture(
    scope="module",
    params=["s3", pytest.param("hdfs", marks=[pytest.mark.spark, pytest.mark.store])],
)
def store(request: pytest.FixtureRequest) -> Store:
    """Each of the stores, for what Python does in it."""
    found: Store = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def store_for_jobs(store: Store) -> Store:
    """Each of the stores, for whole jobs."""
    return with_hadoop(store) if store.location.startswith("s3a") else store
