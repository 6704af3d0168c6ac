"""Modules, packages, files and an interpreter for the functions of a program, where they run."""

from __future__ import annotations

import os

from eventide.datastream._jars import take_jars
from eventide.errors import ProgramError
from eventide.plan.settings import Host


class Dependencies:
    """The part of an environment that brings what functions need to where they run.

    It does so at once, for all jobs that start from then on, in any environment of the same Spark session.
    """

    _host: Host

    def add_python_file(self, file_path: str) -> None:
        """Let functions import a module, wherever they run: what the main file of a program imports from beside it.

        Args:
            file_path: a module (``.py``), a package (a folder with an ``__init__.py``), a folder of modules and
                packages, or a zip file or wheel of them.

        Raises:
            ProgramError: if the path is none of these, or the Spark session was not made by eventide. Over Spark
                Connect any session will do, and what is compiled is refused when the job starts.
        """
        self._host.add_python_file(file_path)

    def add_jars(self, *jars_path: str) -> None:
        """Ignore jars, given by URLs or paths, whose work eventide does itself, such as Flink's Kafka connector.

        Raises:
            ProgramError: if a jar brings something else: there is no Java that could run it.
        """
        take_jars("add_jars", jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Ignore jars as :meth:`add_jars` does."""
        take_jars("add_classpaths", classpaths)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install packages for functions, wherever they run, with all that eventide itself needs.

        pip installs them here, for a system and a version of Python like this one's, and Spark brings them to its
        executors; nothing is installed on any machine.

        Args:
            requirements_file_path: a file as ``pip install --requirement`` takes it.
            requirements_cache_dir: a folder that ``pip download`` has filled; then nothing is taken from elsewhere.

        Raises:
            ProgramError: if pip cannot install them, or the Spark session was not made by eventide.
        """
        self._host.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack an archive where functions run: models, tables, anything that a function reads.

        A function opens a file of the archive as ``target_dir/file``: from then on, functions work in the folder that
        ``target_dir`` is in, as in PyFlink. Without Spark, the process of the program works there while a job of this
        environment runs, its other threads too: give them absolute paths.

        Args:
            archive_path: a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` file, at any location that Spark reads.
            target_dir: the name of the folder that it is unpacked into; that of the file if there is none.

        Raises:
            ProgramError: if ``target_dir`` leads elsewhere, or the host without Spark finds no archive on this machine.
        """
        target = target_dir or os.path.basename(archive_path)
        if os.path.isabs(target) or ".." in target.split("/"):
            raise ProgramError(
                f"add_python_archive({archive_path!r}, {target_dir!r}): the folder must be below the working directory "
                "of functions; name it without a leading / and without .."
            )
        self._host.add_python_archive(archive_path, target)

    def set_python_executable(self, python_exec: str) -> None:
        """Choose the interpreter that runs functions, and that beside the driver which plans sources.

        Args:
            python_exec: its path, the same on every machine, or a name that is on the ``PATH`` of Spark's processes
                there. It must have the minor version of the running interpreter.
        """
        self._host.set_python_executable(python_exec)
