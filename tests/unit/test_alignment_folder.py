"""How far sources have come, on its way from a task to those who plan: small files, of which the last one counts."""

import pytest

from eventide.errors import ProgramError
from eventide.spark.alignment import AlignmentFolder


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
