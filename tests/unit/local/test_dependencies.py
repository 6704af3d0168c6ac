"""Functions find the program's modules, packages and archives without Spark, too."""

import os
import tarfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eventide.common import Encoder, WatermarkStrategy
from eventide.datastream import MapFunction
from eventide.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from eventide.errors import ProgramError, UserFunctionError
from eventide.testing import local_environment


def doubled_by_a_module(value):
    import eventide_test_module_of_a_program

    return eventide_test_module_of_a_program.doubled(value)


def test_functions_import_what_the_program_brings_along(tmp_path):
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as packed:
        packed.writestr("eventide_test_module_of_a_program.py", "def doubled(value):\n    return 2 * value\n")
    with pytest.raises(ModuleNotFoundError):
        doubled_by_a_module(1)
    env = local_environment()
    env.add_python_file(str(tmp_path / "modules.zip"))
    assert list(env.from_collection([1, 2]).map(doubled_by_a_module).execute_and_collect()) == [2, 4]


def test_what_is_no_module_is_refused(tmp_path):
    with pytest.raises(ProgramError, match="there is no module"):
        local_environment().add_python_file(str(tmp_path / "nowhere.py"))


def test_requirements_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(ProgramError, match="there is no such file on this machine"):
        local_environment().set_python_requirements(str(tmp_path / "requirements.txt"))


def test_functions_import_packages_that_pip_has_installed(tmp_path):
    package = tmp_path / "source" / "eventide_test_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def tripled(value):\n    return 3 * value\n")
    (tmp_path / "found").mkdir()
    with zipfile.ZipFile(tmp_path / "found" / "eventide_test_package-1.0-py3-none-any.whl", "w") as wheel:
        info = "eventide_test_package-1.0.dist-info"
        wheel.write(package / "__init__.py", "eventide_test_package/__init__.py")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: eventide-test-package\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    (tmp_path / "requirements.txt").write_text("eventide-test-package==1.0\n")

    def tripled(value):
        import eventide_test_package

        return eventide_test_package.tripled(value)

    with pytest.raises(ModuleNotFoundError):
        tripled(1)
    env = local_environment()
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path / "found"))
    assert list(env.from_collection([1, 2]).map(tripled).execute_and_collect()) == [3, 6]


def test_what_pip_cannot_find_is_refused_with_its_words(tmp_path):
    (tmp_path / "requirements.txt").write_text("eventide-test-package-of-nobody\n")
    with pytest.raises(
        ProgramError, match=r"pip could not install them. It said: (.|\n)*eventide-test-package-of-nobody"
    ):
        local_environment().set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path))


class Priced(MapFunction):
    """Looks up prices in a table from an archive, when it is opened and for each element."""

    def open(self, runtime_context):
        self.first = Path("tables", "prices.txt").read_text()

    def map(self, value):
        return f"{value} {self.first} {Path('tables', 'prices.txt').read_text()}"


def packed(place, name, content):
    """An archive of a kind that its name says, with a table of prices."""
    (place / "prices.txt").write_text(content)
    if name.endswith(".zip"):
        with zipfile.ZipFile(place / name, "w") as archive:
            archive.write(place / "prices.txt", "prices.txt")
    else:
        with tarfile.open(place / name, "w:gz" if name.endswith("gz") else "w") as archive:
            archive.add(place / "prices.txt", "prices.txt")
    return str(place / name)


def wait_for(file):
    """Wait until a file is there, at most 20 seconds: functions run as copies, so that files are what jobs share."""
    end = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < end, file
        time.sleep(0.01)


@pytest.mark.parametrize("name", ["t.zip", "t.tar", "t.tar.gz", "t of all.tgz"])
def test_functions_open_what_an_archive_held(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    env = local_environment()
    env.add_python_archive(packed(tmp_path, name, name), "tables")
    assert list(env.from_collection(["a"]).map(Priced()).execute_and_collect()) == [f"a {name} {name}"]
    assert os.getcwd() == str(tmp_path)


def test_the_later_of_two_archives_replaces_the_other(tmp_path):
    env = local_environment()
    env.add_python_archive(packed(tmp_path, "t.zip", "old"), "tables")
    env.add_python_archive((tmp_path / packed(tmp_path, "t.tar", "new")).as_uri(), "tables")
    assert list(env.from_collection(["a"]).map(Priced()).execute_and_collect()) == ["a new new"]


def test_an_archive_without_a_name_lies_in_a_folder_of_its_own_name(tmp_path):
    env = local_environment()
    env.add_python_archive(packed(tmp_path, "named.zip", "11"))
    read = env.from_collection(["named.zip/prices.txt"]).map(lambda path: Path(path).read_text())
    assert list(read.execute_and_collect()) == ["11"]


def test_sources_and_sinks_of_files_stay_where_the_program_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("a\n")
    env = local_environment()
    env.add_python_archive(packed(tmp_path, "t.zip", "7"), "tables")
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "in.txt").build()
    priced = env.from_source(lines, WatermarkStrategy.no_watermarks(), "lines").map(Priced())
    priced.sink_to(FileSink.for_row_format("out", Encoder.simple_string_encoder()).build())
    env.execute()
    assert [file.read_text() for file in Path("out").glob("part-*")] == ["a 7 7\n"]


def test_an_error_of_a_function_leaves_the_program_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = local_environment()
    env.add_python_archive(packed(tmp_path, "t.zip", "7"), "tables")
    with pytest.raises(UserFunctionError, match="division by zero"):
        list(env.from_collection([0]).map(lambda v: 1 / v).execute_and_collect())
    assert os.getcwd() == str(tmp_path)


def test_an_environment_without_archives_works_where_the_program_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.txt").write_text("here")
    local_environment().add_python_archive(packed(tmp_path, "t.zip", "7"), "tables")
    read = local_environment().from_collection(["data.txt"]).map(lambda path: Path(path).read_text())
    assert list(read.execute_and_collect()) == ["here"]


def test_environments_have_archives_of_their_own(tmp_path):
    first, second = local_environment(), local_environment()
    first.add_python_archive(packed(tmp_path, "t.zip", "first"), "tables")
    second.add_python_archive(packed(tmp_path, "t.zip", "second"), "tables")
    for env, name in [(first, "first"), (second, "second"), (first, "first")]:
        assert list(env.from_collection(["a"]).map(Priced()).execute_and_collect()) == [f"a {name} {name}"]


def test_an_archive_that_is_refused_leaves_functions_where_the_program_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("broken.zip").write_text("no archive")
    env = local_environment()
    with pytest.raises(ProgramError, match="it cannot be unpacked"):
        env.add_python_archive("broken.zip", "tables")
    assert list(env.from_collection([0]).map(lambda _: os.getcwd()).execute_and_collect()) == [str(tmp_path)]


def test_jobs_in_two_threads_leave_the_working_directory_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = local_environment()
    env.add_python_archive(packed(tmp_path, "t.zip", "7"), "tables")

    def job(value, begun, awaited):
        def priced(value):
            begun.touch()
            wait_for(awaited)
            return value + Path("tables/prices.txt").read_text()

        return list(env.from_collection([value]).map(priced).execute_and_collect())

    first_runs, second_runs, first_has_ended = (tmp_path / name for name in ["first", "second", "ended"])
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(job, "a", first_runs, second_runs)
        wait_for(first_runs)
        second = threads.submit(job, "b", second_runs, first_has_ended)
        assert first.result(30) == ["a7"]
        assert os.getcwd() != str(tmp_path)
        first_has_ended.touch()
        assert second.result(30) == ["b7"]
    assert os.getcwd() == str(tmp_path)


def test_a_job_with_other_archives_is_refused_while_one_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outer, inner = local_environment(), local_environment()
    outer.add_python_archive(packed(tmp_path, "t.zip", "7"), "tables")
    inner.add_python_archive(packed(tmp_path, "t.zip", "8"), "tables")

    def start_another_job(value):
        with pytest.raises(ProgramError, match="archives of two environments"):
            list(inner.from_collection([value]).map(Priced()).execute_and_collect())
        return Path("tables/prices.txt").read_text()

    assert list(outer.from_collection(["a"]).map(start_another_job).execute_and_collect()) == ["7"]
    assert os.getcwd() == str(tmp_path)
    assert list(inner.from_collection(["a"]).map(Priced()).execute_and_collect()) == ["a 8 8"]


@pytest.mark.parametrize("target", ["/tables", "../tables", "a/../../b"])
def test_a_folder_elsewhere_is_refused(tmp_path, target):
    with pytest.raises(ProgramError, match="must be below the working directory of functions"):
        local_environment().add_python_archive(packed(tmp_path, "t.zip", "7"), target)


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "broken.zip").write_text("no archive")
    for archive, what in [
        (tmp_path / "nowhere.zip", "there is no archive here"),
        (Path(__file__), r"ends with one of \.zip"),
        (tmp_path / "broken.zip", "it cannot be unpacked"),
        ("s3://bucket/t.zip", "there is no archive here"),
    ]:
        with pytest.raises(ProgramError, match=what):
            local_environment().add_python_archive(str(archive), "tables")
