"""The directory of a savepoint: its files have one path for writers and readers."""

import pytest

from eventide.savepoint.directory import Directory, copy_files


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("operator", ["Summen für alle/50%", ".", "..", "..."])
def test_tables_of_an_operator_of_any_name_are_copied_to_where_they_are_looked_for(tmp_path, scheme, operator):
    old, new = (Directory(f"{scheme}{tmp_path}/{name}") for name in ("old", "new"))
    folder = Directory.of_tables(operator)
    with old.writing(f"{folder}/own-0.parquet") as stream:
        stream.write(b"state")
    copy_files(old, folder, old.names(folder), new.below(folder))
    assert new.names(folder) == ["own-0.parquet"]
    assert new.names("") == old.names("") == [f"{folder}/own-0.parquet"]
