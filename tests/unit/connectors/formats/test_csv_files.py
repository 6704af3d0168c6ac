"""Blocks of CSV files: whole rows, however long a row is."""

import pyarrow as pa
import pytest

from eventide.connectors.formats import csv_files
from eventide.connectors.formats.csv_files import CsvBlocks, CsvLines
from eventide.connectors.formats.csv_rows import Dialect


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_row_over_many_blocks_is_searched_for_its_end_a_few_times(monkeypatch, is_closed):
    monkeypatch.setattr(csv_files, "BLOCK", 16)
    searched, end_of_rows = [], CsvBlocks._end_of_rows

    def counted(self, content):
        searched.append(len(content))
        return end_of_rows(self, content)

    monkeypatch.setattr(CsvBlocks, "_end_of_rows", counted)
    content = b'a,1\n"' + b"text\n" * 2_000 + (b'",2\nb,3\n' if is_closed else b",2\n")
    blocks = [*CsvBlocks(CsvLines(pa.BufferReader(content)), Dialect())]
    assert b"".join(block.content for block in blocks) == content
    assert blocks[-1].is_open is not is_closed
    assert sum(searched) < 5 * len(content)
