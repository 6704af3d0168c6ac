"""Requirements for pip, so that executors have them."""

import zipfile
from importlib import metadata

import pytest
from packaging.metadata import Metadata

from eventide.errors import DISTRIBUTION, ProgramError
from eventide.runtime.python_folder import PythonFolder, write_wheel_without_modules

VERSION = metadata.version(DISTRIBUTION)


def needs(tmp_path, extra="", *, for_this_process=False):
    """The requirements that pip reads in the wheel of eventide, with an extra."""
    assert write_wheel_without_modules(tmp_path, for_this_process=for_this_process) == f"{DISTRIBUTION}=={VERSION}"
    [file] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(file) as wheel:
        assert {name.partition("/")[0] for name in wheel.namelist()} == {f"eventide_spark-{VERSION}.dist-info"}
        found = Metadata.from_email(wheel.read(f"eventide_spark-{VERSION}.dist-info/METADATA"))
    assert (found.name, str(found.version)) == (DISTRIBUTION, VERSION)
    assert found.provides_extra == metadata.metadata(DISTRIBUTION).get_all("Provides-Extra")
    needed = [one for one in found.requires_dist or [] if one.marker is None or one.marker.evaluate({"extra": extra})]
    return {f"{one.name}[{','.join(one.extras)}]" if one.extras else one.name: one for one in needed}


def write_wheel(folder, distribution, module, version="1.0"):
    """Write a wheel with one module."""
    with zipfile.ZipFile(folder / f"{distribution}-{version}-py3-none-any.whl", "w") as wheel:
        info = f"{distribution}-{version}.dist-info"
        wheel.writestr(f"{module}.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def installed(tmp_path, *lines):
    """The modules that pip installs for this process, from wheels beside the requirements."""
    (tmp_path / "requirements.txt").write_text("\n".join(lines))
    folder = tmp_path / "python"
    folder.mkdir()
    PythonFolder(str(folder)).install(str(tmp_path / "requirements.txt"), str(tmp_path), for_this_process=True)
    return sorted(path.stem for path in folder.glob("*.py"))


def test_what_eventide_needs_comes_in_the_versions_of_this_process(tmp_path):
    needed = needs(tmp_path)
    assert str(needed["pyarrow"].specifier) == f"=={metadata.version('pyarrow')}"
    assert not {"pyspark", "py4j", DISTRIBUTION, "confluent-kafka[schemaregistry]"} & {*needed}


def test_an_extra_needs_what_it_stands_for(tmp_path):
    needed = needs(tmp_path, "kafka")
    version = metadata.version("confluent-kafka")
    assert str(needed["confluent-kafka[schemaregistry]"].specifier) == f"=={version}"
    assert {"fastavro", "pyarrow"} <= {*needed}


def test_what_this_process_has_is_not_needed_again(tmp_path):
    assert needs(tmp_path, "kafka", for_this_process=True) == {}


def test_lines_are_read_as_by_pip_and_the_eventide_of_an_index_is_left_there(tmp_path):
    for name in ("eventide_test_one", "eventide_test_two"):
        write_wheel(tmp_path, name, name)
    write_wheel(tmp_path, "eventide_spark", "eventide_of_an_index", VERSION)
    (tmp_path / "more.txt").write_text("eventide-test-two\n")
    lines = ("-r more.txt", "Eventide_Spark[kafka] >= 0.1  # the source", "eventide-test-one")
    assert installed(tmp_path, *lines) == ["eventide_test_one", "eventide_test_two"]


def test_an_extra_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(ProgramError, match=r"eventide-spark \S+ does not provide the extra 'kafak'"):
        installed(tmp_path, "eventide-spark[kafak]")
