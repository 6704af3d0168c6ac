"""HDFS as Arrow wants a file system: by the client hdfs-native, which needs neither Java nor a library of Hadoop's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from io import RawIOBase
from typing import Any
from urllib.parse import urlsplit

from hdfs_native.fsspec import HdfsFileSystem
from pyarrow.fs import FSSpecHandler, PyFileSystem

_MS_PER_S = 1_000


class _Failing:
    """A part of the client whose errors of no kind are an ``OSError``, as those of any store that does not answer.

    So is that of a reader whose file is replaced and deleted while it reads.
    """

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return partial(self._call, found) if callable(found) else found

    @staticmethod
    def _call(method: Callable[..., Any], *args: object, **options: object) -> Any:
        try:
            result = method(*args, **options)
            result = list(result) if isinstance(result, Iterator) and not isinstance(result, RawIOBase) else result
        except RuntimeError as error:
            raise OSError(f"HDFS does not answer: {error}") from error
        return _Failing(result) if isinstance(result, RawIOBase) else result


class _Hdfs(HdfsFileSystem):
    """Gives the time of a file's last change under Arrow's name and in Arrow's unit; a moved file replaces another."""

    cachable = False  # fsspec drops what it keeps in a process that was forked, where a client never ends: see _client

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.client: Any = _Failing(self.client)

    def info(self, path: str, **options: object) -> dict[str, Any]:
        return _timed(super().info(path, **options))

    def ls(self, path: str, detail: bool = True, **options: object) -> list[Any]:
        found = [_timed(entry) for entry in super().ls(path, True, **options) if isinstance(entry, dict)]
        return found if detail else [entry["name"] for entry in found]

    def mv(self, path1: str, path2: str, **_: object) -> None:
        super().mv(path1, path2, overwrite=True)


@cache
def _client(host: str | None, port: int | None) -> _Hdfs:
    """The client of a name node, of which a process has one, for good.

    It has threads, which a process does not have that is forked from it, as Spark's is when it starts: to give a client
    up there is to wait for them for ever.
    """
    return _Hdfs(host, port)


def _timed(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"mtime": entry["modification_time"] / _MS_PER_S}


def opened_hdfs(location: str) -> tuple[PyFileSystem, str]:
    """The file system of a location, and the path in it.

    Args:
        location: the text after ``hdfs://``; in its path, each character stands for itself.

    Raises:
        ValueError: if it is none, or nothing tells which name nodes its name stands for.
    """
    authority, slash, path = location.partition("/")
    parts = urlsplit(f"//{authority}")
    try:
        return PyFileSystem(FSSpecHandler(_client(parts.hostname, parts.port))), slash + path
    except RuntimeError as error:
        raise ValueError(
            f"{error}; name a name node with its port, such as hdfs://namenode:8020, or the folder whose hdfs-site.xml "
            "has the name nodes in HADOOP_CONF_DIR"
        ) from error
