"""Errors about a location that Python cannot open."""

import subprocess
import sys

import pytest

from eventide.errors import ProgramError
from eventide.storage import opened


def test_hdfs_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native.fsspec", None)
    monkeypatch.delitem(sys.modules, "eventide.storage.hdfs", raising=False)
    with pytest.raises(ProgramError, match=r"HDFS needs the library hdfs-native.* pip install 'eventide\[hdfs\]'"):
        opened("hdfs://namenode:8020/without-library")


def test_a_name_of_a_cluster_that_nobody_configured_is_an_error() -> None:
    with pytest.raises(ProgramError, match=r"'hdfs://nowhere/jobs': .*; name a name node with its port"):
        opened("hdfs://nowhere/jobs")


_OPENS_AND_FORKS = """
import gc, subprocess, sys
from eventide.storage import opened

opened("hdfs://127.0.0.1:9/jobs")
opened.cache_clear()
gc.collect()
subprocess.run([sys.executable, "-c", ""], preexec_fn=lambda: None, check=True)
"""


def test_a_process_that_has_opened_hdfs_can_be_forked_as_spark_does_when_it_starts() -> None:
    """In a process of its own, which a client that is given up after the fork would hold for ever."""
    subprocess.run([sys.executable, "-c", _OPENS_AND_FORKS], check=True, timeout=60)


def test_a_scheme_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(ProgramError, match="Arrow cannot open 'moon://a/b'"):
        opened("moon://a/b")
