"""How far sources have come, on its way from a task to the planners: small files, of which the last one counts."""

import pytest

from eventide.errors import ProgramError
from eventide.spark.query.shared_files import AlignmentFolder
from eventide.storage import Folder


def facts(watermark):
    return {"log": {"splits": {"a": watermark}}}


def test_the_last_file_counts_and_few_are_kept(tmp_path):
    folder, reader = AlignmentFolder(str(tmp_path / "alignment")), AlignmentFolder(f"file://{tmp_path}/alignment")
    assert reader.latest() == {}
    for number in range(1, 13):
        folder.write({"number": number, "sources": facts(number)})
        assert reader.latest() == facts(number)
    assert len(list((tmp_path / "alignment").iterdir())) == 3


def test_a_micro_batch_that_is_run_again_writes_the_same_place(tmp_path):
    folder = AlignmentFolder(str(tmp_path))
    for number, watermark in [(1, 10), (2, 20), (2, 20), (1, 10)]:
        folder.write({"number": number, "sources": facts(watermark)})
    assert folder.latest() == facts(20)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_place_that_cannot_be_opened_is_said(tmp_path):
    with pytest.raises(ProgramError, match="what sources remember is kept below the job's checkpoint"):
        AlignmentFolder("nowhere://checkpoint")


def test_an_attempt_that_was_thought_dead_does_not_write_into_what_another_one_writes(tmp_path, monkeypatch):
    """Two attempts of one micro-batch: the second begins to write when the first has written and not yet moved."""
    first, second = AlignmentFolder(str(tmp_path)), AlignmentFolder(str(tmp_path))
    sync, streams = Folder._sync, []

    def interrupted(folder, path):
        sync(folder, path)
        if not streams and "/." in path:
            streams.append(None)
            monkeypatch.setattr(Folder, "_sync", lambda *_: streams.append(hidden(tmp_path)) or None)
            second.write({"number": 1, "sources": facts(10)})
            monkeypatch.setattr(Folder, "_sync", sync)

    monkeypatch.setattr(Folder, "_sync", interrupted)
    first.write({"number": 1, "sources": facts(10)})
    assert len(streams[1]) == 2, "each attempt has a file of its own"
    assert (first.latest(), hidden(tmp_path)) == (facts(10), [])


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_what_attempts_have_left_that_died_is_deleted_now_and_then(tmp_path):
    (tmp_path / f".{5:020}-dead").write_text("{")
    folder = AlignmentFolder(str(tmp_path))
    for number in range(95, 101):
        folder.write({"number": number, "sources": facts(number)})
    assert hidden(tmp_path) == []
