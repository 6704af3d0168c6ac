"""Requirements for pip, so that executors have them."""

from importlib import metadata
from pathlib import Path

import pytest

from eventide.errors import ProgramError
from eventide.runtime.requirements import asked_of_pip


def asked(tmp_path, *lines, for_this_process=False):
    folder = tmp_path / "copies"
    folder.mkdir()
    (tmp_path / "requirements.txt").write_text("\n".join(lines))
    option, file, *others = asked_of_pip(tmp_path / "requirements.txt", folder, for_this_process=for_this_process)
    assert option == "--requirement"
    return Path(file).read_text().splitlines(), file, {one.partition("==")[0].partition("<")[0]: one for one in others}


def test_what_eventide_needs_comes_in_the_versions_of_this_process(tmp_path):
    _, file, others = asked(tmp_path, "polars")
    assert file == str(tmp_path / "requirements.txt")
    assert others["pyarrow"] == f"pyarrow=={metadata.version('pyarrow')}"
    assert not {"pyspark", "eventide", "confluent-kafka[schemaregistry]"} & {*others}


def test_a_line_for_eventide_stands_for_its_extras_and_those_that_they_stand_for(tmp_path):
    lines, _, others = asked(
        tmp_path, "-r more.txt", "Eventide[kafka] >= 0.1  # the source", "polars", "-c https://a/b"
    )
    assert lines == [f"-r {tmp_path / 'more.txt'}", "polars", "-c https://a/b"]
    assert others["confluent-kafka[schemaregistry]"].endswith(f"=={metadata.version('confluent-kafka')}")
    assert {"fastavro", "pyarrow"} <= {*others}
    assert "eventide" not in others


def test_this_process_is_not_given_again_what_it_has(tmp_path):
    lines, _, others = asked(tmp_path, "eventide[kafka]", "polars", for_this_process=True)
    assert lines == ["polars"]
    assert others == {}


def test_an_extra_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(ProgramError, match=r"eventide has no extra 'kafak'; it has .*kafka, "):
        asked(tmp_path, "eventide[kafak]")
