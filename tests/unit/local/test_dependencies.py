"""What a program brings along for its functions is there without Spark, too."""

import zipfile

import pytest

from eventide.errors import ProgramError
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
