"""Says which files of a folder a source ignores, and whether the source looks for new files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum


class FileProcessingMode(Enum):
    """Whether a source of files ends with those that are there at the start. Flink: ``FileProcessingMode``."""

    PROCESS_ONCE = "once"
    """Read the files that are there when the job starts, and end with the last of them."""

    PROCESS_CONTINUOUSLY = "continuously"
    """Run for ever, and look for new files."""


class FilePathFilter(ABC):
    """Says which files a source ignores. It is pickled and sent to the workers. Flink: ``FilePathFilter``.

    >>> class NoReports(FilePathFilter):
    ...     def filter_path(self, file_path):
    ...         return file_path.endswith(".report")
    >>> NoReports().filter_path("/in/a.report")
    True
    """

    @abstractmethod
    def filter_path(self, file_path: str) -> bool:
        """Return True for a file that is not to be read."""

    @staticmethod
    def create_default_filter() -> FilePathFilter:
        """Return the filter that ignores names that begin with ``.`` or ``_``, or contain ``_COPYING_``.

        >>> default = FilePathFilter.create_default_filter()
        >>> [default.filter_path(path) for path in ("/in/a", "/in/_a", "/in/a._COPYING_")]
        [False, True, True]
        """
        return _DefaultFilter()


class _DefaultFilter(FilePathFilter):
    """Files that are hidden, or that Hadoop is still copying."""

    def filter_path(self, file_path: str) -> bool:
        name = file_path.rpartition("/")[2]
        return name.startswith((".", "_")) or "_COPYING_" in name
