"""What is said of a location that Python cannot open."""

import sys

import pytest

from eventide.datastream.connectors._storage import opened
from eventide.errors import ProgramError


def test_hdfs_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native.fsspec", None)
    monkeypatch.delitem(sys.modules, "eventide.datastream.connectors._hdfs", raising=False)
    with pytest.raises(ProgramError, match=r"HDFS needs the library hdfs-native.* pip install 'eventide\[hdfs\]'"):
        opened("hdfs://namenode:8020/without-library")


def test_a_name_of_a_cluster_that_nobody_configured_is_an_error() -> None:
    with pytest.raises(ProgramError, match=r"'hdfs://nowhere/jobs': .*; name a name node with its port"):
        opened("hdfs://nowhere/jobs")


def test_a_scheme_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(ProgramError, match="Arrow cannot open 'moon://a/b'"):
        opened("moon://a/b")
