"""A folder with the modules and packages that the functions of a program import."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from eventide.errors import ProgramError
from eventide.runtime.requirements import OF_SPARK, asked_of_pip

_LEFT_AT_HOME = shutil.ignore_patterns("__pycache__", "*.pyc")


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
        if source.is_dir() and not (source / "__init__.py").exists():
            shutil.copytree(source, self._folder, ignore=_LEFT_AT_HOME, dirs_exist_ok=True)
        elif source.is_dir():
            name = (source if source.name.isidentifier() else source.resolve()).name
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
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
        source = [] if cache_dir is None else ["--no-index", "--find-links", cache_dir]
        with tempfile.TemporaryDirectory(prefix="eventide-pip-") as folder:
            packages = Path(folder, "packages")
            asked = asked_of_pip(Path(requirements), Path(folder), for_this_process=for_this_process)
            ran = subprocess.run([*pip, packages, *source, *asked], capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                raise ProgramError(
                    f"set_python_requirements({requirements!r}): pip could not install them. It said: "
                    f"{ran.stderr.strip()[-2000:]}"
                )
            for name in OF_SPARK:
                shutil.rmtree(packages / name, ignore_errors=True)
            shutil.copytree(packages, self._folder, ignore=_LEFT_AT_HOME, dirs_exist_ok=True)
