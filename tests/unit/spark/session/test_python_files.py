"""The folder of what a session's Python processes import, and the archive that executors get of it."""

import os
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest

from eventide.errors import ProgramError
from eventide.runtime.pickles import Modules
from eventide.spark.session.make import is_found_anyway
from eventide.spark.session.python_files import FOLDER, STARTED_BY_SPARK_SUBMIT, UNPACKED, PythonFiles, is_local, ship


class Session:
    """A session with some settings, which keeps the archives that it is given."""

    def __init__(self, folder: Path | None, master: str = "spark://host:7077"):
        settings = {"spark.master": master} | ({} if folder is None else {FOLDER: str(folder)})
        self.conf = settings
        self.sparkContext = self
        self.archives = []

    def addArchive(self, archive):  # noqa: N802 - Spark's name
        self.archives.append(archive)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "session" / "python"
    made.mkdir(parents=True)
    return made


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_modules_packages_folders_and_zip_files_are_importable_by_their_names(tmp_path, folder):
    files = PythonFiles.of(Session(folder))
    (tmp_path / "one.py").write_text("")
    (tmp_path / "package" / "__pycache__").mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__pycache__" / "x.pyc").write_text("")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "two.py").write_text("")
    with zipfile.ZipFile(tmp_path / "three.whl", "w") as wheel:
        wheel.writestr("three.py", "")
    for added in ("one.py", "package", "modules", "three.whl"):
        files.add(str(tmp_path / added))
    assert names(folder) == ["one.py", "package/__init__.py", "three.py", "two.py"]


@pytest.mark.parametrize("added", [".", "..", "../package", "../link"])
def test_a_package_keeps_the_name_by_which_it_is_given(tmp_path, folder, monkeypatch, added):
    here = tmp_path / "package" / "below" if added == ".." else tmp_path / "package"
    here.mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "package")
    monkeypatch.chdir(here)
    PythonFiles.of(Session(folder)).add(added)
    assert names(folder) == ["link/__init__.py" if added == "../link" else "package/__init__.py"]


def test_what_is_no_module_is_refused(tmp_path, folder):
    (tmp_path / "notes.txt").write_text("")
    for wrong in ("notes.txt", "nowhere.py"):
        with pytest.raises(ProgramError, match=r"there is no module \(\.py\), package, folder, zip file or wheel here"):
            PythonFiles.of(Session(folder)).add(str(tmp_path / wrong))


def test_requirements_that_are_not_there_are_refused(tmp_path, folder):
    with pytest.raises(ProgramError, match="there is no such file on this machine"):
        PythonFiles.of(Session(folder)).install(str(tmp_path / "requirements.txt"), None)


def test_executors_get_an_archive_with_eventide_once_for_each_content(tmp_path, folder):
    session = Session(folder)
    ship(session)
    ship(session)
    assert len(session.archives) == 1
    archive, _, name = session.archives[0].partition("#")
    assert name == UNPACKED
    with tarfile.open(unquote(archive.removeprefix("file://"))) as packed:
        there = set(packed.getnames())
    assert {"./eventide/__init__.py", "./eventide/spark/host.py", "./eventide/py.typed"} <= there
    assert not any("__pycache__" in one for one in there)
    (tmp_path / "more.py").write_text("")
    PythonFiles.of(session).add(str(tmp_path / "more.py"))
    with pytest.raises(ProgramError, match="that start later may get the first ones"):
        ship(session)
    assert len(session.archives) == 1


def test_the_same_again_is_the_same_whenever_it_was_written(tmp_path, folder):
    session, module = Session(folder), tmp_path / "rides.py"
    module.write_text("")
    for time_s in (1, 2):
        os.utime(module, (time_s, time_s))
        PythonFiles.of(session).add(str(module))
        ship(session)
    assert len(session.archives) == 1


def test_what_could_not_be_brought_is_brought_the_next_time(folder, monkeypatch):
    session = Session(folder)
    with monkeypatch.context() as patched:
        patched.setattr(tarfile.TarFile, "add", lambda *_: raises(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            ship(session)
    ship(session)
    assert len(session.archives) == 1


def raises(error):
    raise error


def test_a_package_has_the_name_by_which_it_is_found(tmp_path, folder):
    (tmp_path / "trips-1.2").mkdir()
    (tmp_path / "trips-1.2" / "__init__.py").write_text("")
    (tmp_path / "trips").symlink_to(tmp_path / "trips-1.2")
    PythonFiles.of(Session(folder)).add(str(tmp_path / "trips"))
    assert names(folder) == ["trips/__init__.py"]


def test_an_interpreter_finds_its_own_library_by_itself_and_no_program(monkeypatch):
    library = sysconfig.get_path("stdlib")
    packages = sysconfig.get_path("purelib")
    for path in (library, f"{library}/lib-dynload", f"{library.rpartition('/')[0]}/python311.zip"):
        assert is_found_anyway(path, with_packages=False)
    assert [is_found_anyway(packages, with_packages=asked) for asked in (False, True)] == [True, False]
    monkeypatch.setattr(sys, "prefix", "/usr")
    for path in ("/usr/src/app", "/home/me/deps/site-packages"):
        assert not is_found_anyway(path, with_packages=False)


def test_with_a_local_master_and_in_the_session_of_others_nothing_is_shipped(folder):
    for session in (Session(folder, "local[2]"), Session(None)):
        ship(session)
        assert session.archives == []


def test_the_session_of_others_takes_no_modules(monkeypatch):
    monkeypatch.delenv(STARTED_BY_SPARK_SUBMIT, raising=False)
    with pytest.raises(ProgramError, match=r"this Spark session was not made by eventide, .*; make none before, and"):
        PythonFiles.of(Session(None))


def test_under_spark_submit_the_way_out_is_to_start_the_program_with_python(monkeypatch):
    monkeypatch.setenv(STARTED_BY_SPARK_SUBMIT, "4321")
    with pytest.raises(ProgramError) as refused:
        PythonFiles.of(Session(None))
    assert str(refused.value) == (
        "this program was started by spark-submit (PYSPARK_GATEWAY_PORT is set), so its Python processes cannot be "
        "told any more where to look for modules; start the program with python in place of spark-submit, and let "
        "get_execution_environment(Configuration.from_dict({'spark.master': ...})) make the session, or install "
        "eventide and the modules that the program needs on every machine, the driver's included"
    )


def test_a_server_of_spark_connect_gets_sources_alone(tmp_path, folder):
    files = PythonFiles.of(Session(folder))
    (folder / "trips").mkdir()
    source = "# -*- coding: latin-1 -*-\ncity = 'Tromsø'\n"
    (folder / "trips" / "__init__.py").write_text(source, encoding="latin-1")
    (folder / "trips" / "notes.txt").write_text("")
    assert files.modules() == Modules({"trips/__init__.py": source})
    (folder / "trips" / "fast.cpython-311-x86_64-linux-gnu.so").touch()
    with pytest.raises(ProgramError, match=r"fast\..*so is compiled: install its package where the server runs"):
        files.modules()


def test_a_local_cluster_is_not_local():
    assert [is_local(master) for master in ("local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "yarn")] == [
        True,
        True,
        True,
        False,
        False,
    ]
