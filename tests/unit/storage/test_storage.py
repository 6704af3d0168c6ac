"""Locations of files: what they are in any process, which file system they open, and errors where none does."""

import os
import subprocess
import sys

import pytest

from eventide.errors import ProgramError
from eventide.storage import absolute, opened


@pytest.mark.parametrize(
    ("location", "found"),
    [
        ("/in/", "/in"),
        ("file:/in", "/in"),
        ("file:///in//a%20b/", "/in/a%20b"),
        ("/in/a%20b", "/in/a%20b"),
        ("s3a://bucket/in/", "s3a://bucket/in/"),
    ],
)
def test_a_location_means_the_same_in_any_process(location, found):
    assert absolute(location) == found


def test_a_relative_path_is_that_of_this_process():
    assert absolute("in") == f"{os.getcwd()}/in"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_hadoops_names_of_a_store_open_it_too(scheme):
    file_system, path = opened(f"{scheme}://bucket/in/?region=eu-central-1")
    assert (file_system.type_name, path) == ("s3", "bucket/in")


@pytest.mark.parametrize("name", ["a%20b", "50%", "a b", "æ", "[1]", "a#1", "a:1"])
def test_in_hadoops_spelling_each_character_of_a_path_stands_for_itself(name):
    assert opened(f"s3a://bucket/{name}/in?region=eu-central-1")[1] == f"bucket/{name}/in"
    assert opened(f"file:///{name}/in")[1] == f"/{name}/in"
    assert opened(f"hdfs://127.0.0.1:9/{name}/in")[1] == f"/{name}/in"


def test_in_arrows_spelling_a_path_is_that_of_a_uri():
    assert opened("s3://bucket/a%20b?region=eu-central-1")[1] == "bucket/a b"


@pytest.mark.parametrize("location", ["/in/", "file:///in", "file:/in"])
def test_local_files_have_three_spellings(location):
    file_system, path = opened(location)
    assert (file_system.type_name, path) == ("local", "/in")


def test_what_arrow_does_not_know_is_refused():
    with pytest.raises(ProgramError, match="Arrow cannot open 'gopher://host/in': Unrecognized filesystem"):
        opened("gopher://host/in")


def test_hdfs_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native.fsspec", None)
    monkeypatch.delitem(sys.modules, "eventide.storage.hdfs", raising=False)
    with pytest.raises(
        ProgramError, match=r"HDFS needs the library hdfs-native.* pip install 'eventide-spark\[hdfs\]'"
    ):
        opened("hdfs://namenode:8020/without-library")


def test_a_name_of_a_cluster_that_is_not_configured_is_an_error() -> None:
    with pytest.raises(ProgramError, match=r"'hdfs://nowhere/jobs': .*; name a name node with its port"):
        opened("hdfs://nowhere/jobs")


_OPENS_AND_FORKS = """
import gc, subprocess, sys
from eventide.storage import opened, opened_store

opened("hdfs://127.0.0.1:9/jobs")
opened_store.cache_clear()
gc.collect()
subprocess.run([sys.executable, "-c", ""], preexec_fn=lambda: None, check=True)
"""


def test_a_process_that_has_opened_hdfs_can_be_forked_as_spark_does_when_it_starts() -> None:
    """In a process of its own, which a client that is given up after the fork would hold for ever."""
    subprocess.run([sys.executable, "-c", _OPENS_AND_FORKS], check=True, timeout=60)


def test_a_scheme_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ProgramError, match="Arrow cannot open 'moon://a/b'"):
        opened("moon://a/b")


@pytest.mark.parametrize("location", ["dbfs:/jobs/in", "viewfs:/jobs/in"])
def test_a_place_that_only_hadoop_knows_is_no_folder_beside_the_program(location, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProgramError, match=f"Arrow cannot open '{location}': it is a place that only Hadoop knows"):
        opened(location)
    assert not [*tmp_path.iterdir()]
    assert opened(f"{tmp_path}/{location}")[1] == f"{tmp_path}/{location}"


def test_a_relative_location_is_below_the_folder_that_the_program_is_in_now(tmp_path, monkeypatch):
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        monkeypatch.chdir(folder)
        assert opened("in")[1] == str(folder / "in")
