"""A folder with the modules and packages that the functions of a program import."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from eventide.errors import DISTRIBUTION, ProgramError

_LEFT_AT_HOME = shutil.ignore_patterns("__pycache__", "*.pyc")
_OF_SPARK = ("pyspark", "py4j")
"""Packages that executors have in any case: those of their own Spark."""


def new_folder() -> str:
    """An empty folder for a session, which is deleted with this process."""
    place = tempfile.mkdtemp(prefix="eventide-session-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    folder = Path(place, "python")
    folder.mkdir()
    return str(folder)


class PythonFolder:
    """A folder on the module path of processes that run functions."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def add(self, path: str) -> None:
        """Take in a module, a package, a folder of such, or what is in a zip file or a wheel.

        Raises:
            ProgramError: if the path is none of these.
        """
        source = Path(path)
        if source.is_dir():
            is_package = (source / "__init__.py").exists()
            name = (source if source.name.isidentifier() else source.resolve()).name if is_package else ""
            shutil.copytree(source, self._folder / name, ignore=_LEFT_AT_HOME, dirs_exist_ok=True)
        elif source.suffix == ".py" and source.is_file():
            shutil.copy(source, self._folder)
        elif source.is_file() and zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as archive:
                archive.extractall(self._folder)
        else:
            raise ProgramError(
                f"add_python_file({path!r}): there is no module (.py), package, folder, zip file or wheel here"
            )

    def install(self, requirements: str, cache_dir: str | None, *, for_this_process: bool = False) -> None:
        """Install packages into the folder, with those that eventide itself needs in the versions of this process.

        Args:
            requirements: a file as pip takes it; a line for eventide stands for what its extras need.
            cache_dir: a folder with all packages, to take none from elsewhere.
            for_this_process: whether this process imports them; then what it has of eventide's needs is left out.

        Raises:
            ProgramError: if pip cannot do it, with what it said, or eventide has no such extra.
        """
        if not Path(requirements).is_file():
            raise ProgramError(f"set_python_requirements({requirements!r}): there is no such file on this machine")
        with tempfile.TemporaryDirectory(prefix="eventide-pip-") as folder:
            packages = Path(folder, "packages")
            eventide = write_wheel_without_modules(Path(folder), for_this_process=for_this_process)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            pip += ["--target", str(packages), "--requirement", requirements, "--find-links", folder]
            pip += [] if cache_dir is None else ["--no-index", "--find-links", cache_dir]
            pip += [] if for_this_process else [eventide]
            ran = subprocess.run(pip, capture_output=True, text=True, check=False)
            no_such_extra = f"{DISTRIBUTION} {metadata.version(DISTRIBUTION)} does not provide the extra"
            if ran.returncode != 0 or no_such_extra in ran.stderr:
                raise ProgramError(
                    f"set_python_requirements({requirements!r}): pip could not install them. It said: "
                    f"{ran.stderr.strip()[-2000:]}"
                )
            for name in _OF_SPARK:
                shutil.rmtree(packages / name, ignore_errors=True)
            shutil.copytree(packages, self._folder, ignore=_LEFT_AT_HOME, dirs_exist_ok=True)


def write_wheel_without_modules(folder: Path, *, for_this_process: bool) -> str:
    """Write a wheel of eventide from which pip learns what eventide and its extras need, and nothing more.

    The modules of eventide come along as they are here, whatever a package index has under its name. The number in the
    name of the file lets pip prefer it to a wheel of the index.

    Args:
        folder: where the wheel is written.
        for_this_process: whether this process imports the packages, which has most of what eventide needs.

    Returns:
        The requirement for pip.
    """
    version = metadata.version(DISTRIBUTION)
    extras = metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    lines = ["Metadata-Version: 2.1", f"Name: {DISTRIBUTION}", f"Version: {version}"]
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    lines += [f"Requires-Dist: {needed}" for needed in _needs(for_this_process)]
    stem = f"{DISTRIBUTION.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-1-py3-none-any.whl", "w") as wheel:
        info = f"{stem}.dist-info"
        wheel.writestr(f"{info}/METADATA", "\n".join([*lines, ""]))
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return f"{DISTRIBUTION}=={version}"


def _needs(for_this_process: bool) -> Iterator[Requirement]:
    """The requirements of eventide and its extras, in the versions of this process, or in any that will do."""
    for needed in map(Requirement, metadata.requires(DISTRIBUTION) or ()):
        here = next((found.version for found in metadata.distributions(name=needed.name)), None)
        if needed.name in _OF_SPARK or (for_this_process and here is not None):
            continue
        if here is not None:
            needed.specifier = SpecifierSet(f"=={here}")
        yield needed
