"""The example of a silent partition says which split holds its windows, and draws it."""

import runpy
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "why" / "silent_partition.py"


def test_a_silent_partition_is_named_and_drawn(tmp_path, monkeypatch, capsys):
    drawn = tmp_path / "why.svg"
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--svg", str(drawn)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("'totals' waits for split 'orders-2' of 'orders', which has never had an element")
    assert "700 ms, 700 ms" in said  # how far the second partition is out of order
    text = drawn.read_text()
    assert "orders-2" in text
    assert "url(http" not in text
