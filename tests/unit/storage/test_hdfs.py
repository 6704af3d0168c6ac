"""The client of HDFS as Arrow wants it."""

from io import RawIOBase

import pytest

pytest.importorskip("hdfs_native")

from eventide.storage.hdfs import _Failing


class Reader(RawIOBase):
    def read(self, size=-1):
        raise RuntimeError("DataTransferError: All DataNodes failed")


class Client:
    def read(self, path):
        return Reader()

    def list_status(self, path):
        yield path
        raise RuntimeError("the connection was closed")

    def get_file_info(self, path):
        raise FileNotFoundError(path)


def test_errors_of_no_kind_are_those_of_a_store_that_does_not_answer():
    client = _Failing(Client())
    for call in (client.read("a").read, lambda: client.list_status("a")):
        with pytest.raises(OSError, match=r"HDFS does not answer: .*(All DataNodes failed|connection was closed)"):
            call()
    with pytest.raises(FileNotFoundError):
        client.get_file_info("a")
    assert client.read("a").closed is False
