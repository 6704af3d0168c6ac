"""The directory of a savepoint: its files have one path for writers and readers."""

from types import SimpleNamespace

import pytest

from eventide.errors import StateError
from eventide.savepoint.directory import Directory, copy_files
from eventide.spark.checkpoint import record, records


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


def test_of_several_attempts_to_write_a_file_one_counts_and_none_is_seen_before_it_is_whole(tmp_path):
    directory, folder = Directory(str(tmp_path)), tmp_path / "keyed"
    with directory.writing("keyed/0.parquet") as stream:
        stream.write(b"whole")
    slow = Directory(str(tmp_path)).writing("keyed/0.parquet")
    slow.__enter__().write(b"ha")  # and its process is killed
    assert directory.names("") == ["keyed/0.parquet"]
    assert (folder / "0.parquet").read_bytes() == b"whole"


@pytest.mark.parametrize("store", ["", "hdfs://names"])
def test_a_place_where_a_rescaling_was_interrupted_is_no_new_checkpoint(monkeypatch, tmp_path, store):
    monkeypatch.setattr(record, "records_of", lambda spark, location: [])
    monkeypatch.setattr(record, "last_committed", lambda spark, location: -1)
    place = f"{store}{tmp_path}"
    if store:
        found = {f"{place}/eventide-savepoint": ["savepoint.json"]}
        monkeypatch.setattr(records, "files_at", lambda spark, path: found.get(path))
    else:
        (tmp_path / "eventide-savepoint").mkdir()
    with pytest.raises(StateError, match=r"is a new place for another checkpoint.* run the same command once more"):
        record.fit_checkpoint(None, place, None, "orders")


@pytest.mark.parametrize("planned", [-1, 0])
def test_what_sources_remember_is_copied_anew_until_a_micro_batch_is_planned(monkeypatch, planned):
    """A job that was killed while it was copied would go on with half of it."""
    copied = []
    saved = SimpleNamespace(restore_sources=lambda names, checkpoint: copied.append((names, checkpoint)))
    monkeypatch.setattr(record, "Savepoint", lambda location: saved)
    monkeypatch.setattr(record, "last_of", lambda spark, location, log: planned)
    plan = SimpleNamespace(sources=[SimpleNamespace(name="orders")])
    record.restore_sources(None, SimpleNamespace(location="/saved"), plan, "/new")
    assert copied == ([(["orders"], "/new")] if planned < 0 else [])
