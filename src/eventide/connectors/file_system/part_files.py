"""Names the files that each micro-batch of a job writes into a directory, and makes them visible."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventide.errors import ProgramError
from eventide.storage.opening import opened

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem


_STAGE = "_eventide-"


def new_stage() -> str:
    """The name of a hidden directory for one run of a sink: another run may be dying, and still at work."""
    return f"{_STAGE}{uuid.uuid4().hex[:8]}"


def prefix_of(batch_id: int) -> str:
    """How the names of the files of a micro-batch begin.

    >>> prefix_of(7)
    'part-00000007-'
    """
    return f"part-{batch_id:08d}-"


def used_by_another(path: str) -> ProgramError:
    """The error of a sink whose directory has files already: each job counts its micro-batches from 0."""
    return ProgramError(
        f"the directory {path} holds the output of another job, and the two could not be told apart there; "
        "give this one a directory of its own, or the checkpoint of the other to go on with it"
    )


def used_twice(path: str) -> ProgramError:
    """The error of two sinks of one job that have the same directory."""
    return ProgramError(f"two sinks write to the directory {path}, and overwrite each other; give each its own")


@dataclass(frozen=True, slots=True)
class PartFiles:
    """A directory of part files as Arrow sees it.

    A host writes the files of a micro-batch into a hidden directory, where no reader looks; they are moved when they
    are complete. A micro-batch that is run again gives its files the names that they have already, so that they replace
    each other.

    A run that was thought dead may still be at work, with a younger run that writes there. So nothing is deleted that
    may be the only copy: a file is replaced by moving another one to its name, and stays where that fails.
    """

    file_system: FileSystem
    path: str

    @classmethod
    def at(cls, location: str) -> PartFiles:
        """The directory at a location that says its scheme, or at a local path.

        Raises:
            ProgramError: if Arrow cannot open it.
        """
        return cls(*opened(location))

    def commit(self, batch_id: int, stage: str, written: Mapping[str, str], *, after_another_run: bool) -> int:
        """Make the files of a micro-batch visible, and delete the hidden directory.

        Args:
            batch_id: its number.
            stage: the hidden directory.
            written: the files in it that count, in their order, each with the ending that it keeps.
            after_another_run: whether a run that was killed may have left something of this micro-batch.

        Returns:
            The number of files.

        Raises:
            FileNotFoundError: if a file in the hidden directory is gone: another run has deleted it.
            FileExistsError: if another run has written files of this micro-batch.
        """
        prefix = prefix_of(batch_id)
        names = {f"{stage}/{name}": f"{prefix}{n:05d}{ending}" for n, (name, ending) in enumerate(written.items())}
        gone = {*written} - {*self.names(stage)} if after_another_run else set()
        if gone:
            raise FileNotFoundError(f"{stage}/{min(gone)} has been deleted")
        for there, here in names.items():
            self.move(there, here, may_replace=after_another_run)
        if after_another_run:  # a run that was taken over has stopped above, and deletes nothing of its successor
            self._delete_leftovers(prefix, stage, {*names.values()})
        self.delete_folder(stage)
        return len(names)

    def _delete_leftovers(self, prefix: str, stage: str, names: set[str]) -> None:
        """Delete the files of a run that was killed: it can have written only in this micro-batch."""
        for name in self.names():
            if name.startswith(prefix) and name not in names:
                self.delete(name)
        for name in self.folders():
            if name.startswith(_STAGE) and name != stage:
                self.delete_folder(name)

    def has_files_of(self, batch_id: int) -> bool:
        """Whether there is anything of a micro-batch."""
        return any(name.startswith(prefix_of(batch_id)) for name in self.names())

    def names(self, below: str = "") -> list[str]:
        """The names of the files in it, or in a directory below; none where there is no such directory."""
        return sorted(info.base_name for info in self._infos(below) if info.is_file)

    def folders(self) -> list[str]:
        """The names of the directories in it."""
        return sorted(info.base_name for info in self._infos() if not info.is_file)

    def _infos(self, below: str = "") -> list[FileInfo]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(f"{self.path}/{below}".rstrip("/"), allow_not_found=True)
        infos: list[FileInfo] = self.file_system.get_file_info(selector)
        return infos

    def move(self, there: str, here: str, *, may_replace: bool) -> None:
        """Give a file another name.

        Args:
            there: the name that it has.
            here: the name that it gets.
            may_replace: whether a file that has the name already is replaced: one that an earlier run has left.

        Raises:
            FileNotFoundError: if the file is gone; what has the other name stays.
            FileExistsError: if another file has the name and is not to be replaced.
        """
        if not may_replace and self._is_file(here):
            raise FileExistsError(f"this run has not written {here}, which is there")
        try:
            self._rename(there, here)
        except OSError as error:
            if not self._is_file(there):
                raise FileNotFoundError(f"{there} has been deleted") from error
            if not may_replace or not self._is_file(here):
                raise
            self._rename_over(there, here)

    def _rename_over(self, there: str, here: str) -> None:
        """Replace a file on a store that does not do so itself; the one before stays until the other is there."""
        aside = f"{there}-before"
        self._rename(here, aside)
        try:
            self._rename(there, here)
        except OSError:
            self._rename(aside, here)
            raise
        self.delete(aside)

    def _rename(self, there: str, here: str) -> None:
        self.file_system.move(f"{self.path}/{there}", f"{self.path}/{here}")

    def _is_file(self, name: str) -> bool:
        return bool(self.file_system.get_file_info(f"{self.path}/{name}").is_file)

    def delete(self, name: str) -> None:
        """Delete a file."""
        self.file_system.delete_file(f"{self.path}/{name}")

    def delete_folder(self, name: str) -> None:
        """Delete a directory with all that is in it."""
        self.file_system.delete_dir(f"{self.path}/{name}")
