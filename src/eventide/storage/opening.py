"""Where files lie: local paths and URIs, in Arrow's spelling or in Hadoop's, and their file systems."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from eventide.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyarrow.fs import FileSystem

_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Names that Hadoop has for what Arrow knows by another."""
_ARROWS_OWN = "s3"


def absolute(location: str) -> str:
    """A location as it is understood in any process: a URI stays as it is, but for one of a local file.

    In Hadoop's spelling, as in Flink's, each character of a path stands for itself.

    >>> absolute("s3://bucket/in"), absolute("file:///in//a%20b/")
    ('s3://bucket/in', '/in/a%20b')
    """
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    return location if "://" in location else os.path.abspath(location)


@lru_cache(maxsize=64)
def opened(location: str) -> tuple[FileSystem, str]:
    """The file system of a location, and the location's path in it, without a slash at its end.

    Raises:
        ProgramError: if Arrow cannot open it.

    >>> opened("file:///in/")[1]
    '/in'
    """
    from pyarrow.fs import FileSystem, LocalFileSystem

    uri = absolute(location)
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return LocalFileSystem(), uri.rstrip("/")
    try:
        if scheme == "hdfs":
            file_system, path = _opening_hdfs()(rest)
        else:
            file_system, path = FileSystem.from_uri(_uri_for_arrow(scheme, rest))
    except (ValueError, OSError, NotImplementedError) as error:
        raise ProgramError(f"Arrow cannot open {location!r}: {error}") from error
    return file_system, path.rstrip("/")


def _uri_for_arrow(scheme: str, rest: str) -> str:
    """A location as Arrow wants it, whose spelling is that of URIs; Hadoop's path stands for itself.

    >>> _uri_for_arrow("s3a", "bucket/50% of [all]"), _uri_for_arrow("s3", "bucket/50%25")
    ('s3://bucket/50%25%20of%20%5Ball%5D', 's3://bucket/50%25')
    """
    if scheme == _ARROWS_OWN:
        return f"{scheme}://{rest}"
    path, mark, options = rest.partition("?")
    return f"{_SCHEMES.get(scheme, scheme)}://{quote(path, safe='/@:')}{mark}{options}"


def _opening_hdfs() -> Callable[[str], tuple[FileSystem, str]]:
    """Return the function that opens HDFS.

    Raises:
        ProgramError: if the library for it is not installed where this runs.
    """
    try:
        from eventide.storage.hdfs import opened_hdfs
    except ImportError as error:
        raise ProgramError(
            "HDFS needs the library hdfs-native, which is not installed here: pip install 'eventide[hdfs]', also where "
            "Spark's workers run"
        ) from error
    return opened_hdfs
