"""A disk of a test's own: it tells before each change, so that a test can refuse it or do something first."""

import errno
import io
import random

import pyarrow as pa
from pyarrow.fs import LocalFileSystem

_EACH = 5_000


class Disk(LocalFileSystem):
    """A local disk that calls ``before(what, path)`` before each change, and ``replaces`` files by a move, or not."""

    def __init__(self, before, *, replaces=True):
        super().__init__()
        self.before, self.replaces = before, replaces

    def open_output_stream(self, path, **options):
        self.before("open", path)
        return pa.PythonFile(_Written(path, self), mode="w")

    def create_dir(self, path, **options):
        self.before("create", path)
        super().create_dir(path, **options)

    def move(self, src, dest):
        self.before("move", dest)
        if not self.replaces and self.get_file_info(dest).is_file:
            raise FileExistsError(errno.EEXIST, "File exists", dest)
        super().move(src, dest)

    def delete_file(self, path):
        self.before("delete", path)
        super().delete_file(path)

    def delete_dir(self, path):
        self.before("delete", path)
        super().delete_dir(path)


class _Written(io.FileIO):
    """A file that is being written."""

    def __init__(self, path, disk):
        super().__init__(path, "wb")
        self._path, self._disk = path, disk

    def write(self, data):
        try:
            self._disk.before("write", self._path)
        except OSError:
            super().write(bytes(data)[: len(data) // 2])  # a disk takes what it has room for
            raise
        return super().write(data)


class NthChange:
    """Does something before the change of a number, and then nothing more; ``count`` says how many there were."""

    def __init__(self, number, do):
        self.number, self.do, self.count = number, do, 0

    def __call__(self, what, path):
        self.count += 1
        if self.count == self.number + 1:
            self.do(what, path)


def refuse(what, path):
    """Raise what a disk that is full raises; it lets files be deleted."""
    if what != "delete":
        raise OSError(errno.ENOSPC, "No space left on device", path)


def outcome(do, *errors):
    """The result of a function; or None, and the text of the error that it raises."""
    try:
        return do(), ""
    except errors as error:
        return None, str(error)


def damages(content, config, some=100):
    """Some bytes, changed in places and ways by chance, cut at such places, and none; `--every-byte` changes many."""
    chance, most = random.Random(config.getoption("--seed")), _EACH if config.getoption("--every-byte") else some
    ways = [1, 128, 255, chance.randrange(2, 255)]
    changes = [(at, bits) for at in range(len(content)) for bits in ways]
    for at, bits in chance.sample(changes, min(most, len(changes))):
        yield content[:at] + bytes([content[at] ^ bits]) + content[at + 1 :]
    yield b""  # a file that a machine had not written when it lost its power
    for length in chance.sample(range(1, len(content)), min(most, len(content) - 1)):
        yield content[:length]
