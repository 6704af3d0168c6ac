"""The notebooks are stored as they ran, from top to bottom; `./run notebooks` runs them again."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))}


def code_of(name: str) -> list[dict[str, Any]]:
    cells = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_there_are_five_and_the_documentation_has_each() -> None:
    assert len(NOTEBOOKS) == 5
    navigation = (ROOT / "mkdocs.yml").read_text()
    contents = (ROOT / "docs" / "notebooks" / "index.md").read_text()
    assert all(f": notebooks/{name}.md\n" in navigation and f"]({name}.md)" in contents for name in NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_stored_as_it_ran_from_top_to_bottom_without_an_error(name: str) -> None:
    cells = code_of(name)
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    assert {output["output_type"] for output in outputs} == {"stream", "display_data"}
    assert all(output.get("name", "stdout") == "stdout" for output in outputs)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_shows_each_job_that_it_watches(name: str) -> None:
    for cell in code_of(name):
        source = "".join(cell["source"])
        pictures = [output["data"] for output in cell["outputs"] if "data" in output]
        watched = sum(line.startswith("watch(") for line in source.splitlines())
        assert len(pictures) == watched
        assert all(ET.fromstring("".join(data["image/svg+xml"])).tag.endswith("svg") for data in pictures)
