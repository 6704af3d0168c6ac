"""The pages for language models: what the build of the documentation writes beside the pages for people."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import mkdocs_llms
import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "index.md": "# Lake\n\nA lake is *still* water. It has fish.\n\n![A lake](images/lake.svg)\n",
    "guide/fish.md": "# Fish\n\n> Which fish are there?\n> Ask [the lake](../index.md#lake).\n\n"
    '```python\nprint("pike")\n```\n\n![A pike](../images/pike.svg), or [perch](https://example.org/perch.md).\n',
    "guide/deep.md": "# Deep\n\n| no | sentence |\n|---|---|\n| is | here |\n\nIt is deep:\n\n```text\nvery\n```\n",
    "reference/water.md": "# Water\n\nWhat water does.\n\n::: water\n",
    "left_out.md": "# Left out\n\nNot in the navigation.\n",
    "images/lake.svg": "<svg/>",
    "images/pike.svg": "<svg/>",
}
CONFIGURATION = f"""\
site_name: lake
site_description: All about a lake
SITE_URL
hooks: [{ROOT / "mkdocs_llms.py"}]
plugins:
  - mkdocstrings:
      handlers: {{python: {{paths: [.], options: {{show_source: false, show_root_heading: true}}}}}}
markdown_extensions: [tables, pymdownx.superfences, toc: {{permalink: true}}]
not_in_nav: left_out.md
nav:
  - The lake: index.md
  - Guide: [{{Fish: guide/fish.md}}, {{Deep water: guide/deep.md}}]
  - Reference: [reference/water.md]
"""
WATER = '''\
"""What water does."""


def flow(speed: int | None = 1) -> str:
    """Let it flow.

    Args:
        speed: In *metres*.

    ```python
    flow(2)
    ```
    """
'''


def built(folder: Path, site_url: str = "") -> Path:
    """Build a small site with MkDocs itself, and return where it is."""
    pytest.importorskip("mkdocs", reason="`./run docs` installs what builds the documentation, and runs this test")
    for name, text in PAGES.items():
        page = folder / "docs" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
    (folder / "mkdocs.yml").write_text(CONFIGURATION.replace("SITE_URL", site_url))
    (folder / "water.py").write_text(WATER)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the small site is, which the tests only read."""
    return built(tmp_path_factory.mktemp("lake"))


def test_the_contents_have_each_page_of_the_navigation_with_its_first_sentence(site: Path) -> None:
    assert (site / "llms.txt").read_text() == dedent("""\
        # lake

        > All about a lake

        The links lead to pages in Markdown. [All of them in one file](llms-full.txt).

        ## Overview

        - [The lake](index.md): A lake is *still* water.

        ## Guide

        - [Fish](guide/fish.md): Which fish are there? Ask the lake.
        - [Deep water](guide/deep.md): It is deep:

        ## Reference

        - [Water](reference/water.md): What water does.
        """)


def test_a_site_with_an_address_has_whole_links(tmp_path: Path) -> None:
    contents = (built(tmp_path, "site_url: https://example.org/lake/") / "llms.txt").read_text()
    assert "(https://example.org/lake/llms-full.txt)" in contents
    assert "(https://example.org/lake/guide/fish.md)" in contents


def test_each_page_is_there_as_it_was_written_also_one_that_is_not_in_the_navigation(site: Path) -> None:
    for name in ("index.md", "guide/fish.md", "guide/deep.md", "left_out.md"):
        assert (site / name).read_text() == PAGES[name]
        assert (site / name).with_suffix("" if name != "index.md" else ".html").exists()


def test_the_whole_text_has_the_pages_in_order_with_links_that_begin_at_the_root(site: Path) -> None:
    whole = (site / "llms-full.txt").read_text()
    titles = [line for line in whole.splitlines() if line.startswith("# ")]
    assert titles == ["# Lake", "# Fish", "# Deep", "# Water"]
    assert "[the lake](index.md#lake)" in whole
    assert "![A pike](images/pike.svg), or [perch](https://example.org/perch.md)." in whole
    assert 'print("pike")' in whole


def test_docstrings_are_in_the_pages_that_show_them(site: Path) -> None:
    page = (site / "reference" / "water.md").read_text()
    assert page == dedent("""\
        # Water

        What water does.

        ## `water`

        What water does.

        ### `flow(speed=1)`

        Let it flow.

        Parameters:

        | Name | Type | Description | Default |
        | --- | --- | --- | --- |
        | `speed` | `int \\| None` | In *metres*. | `1` |

        ```python
        flow(2)
        ```
        """)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_each_page_of_eventide_begins_with_a_sentence_that_says_what_it_is_about(page: Path) -> None:
    sentence = mkdocs_llms.summary(page.read_text())
    assert 10 < len(sentence) < 400, sentence


def test_the_documentation_of_eventide_is_built_so() -> None:
    assert "\nhooks: [mkdocs_versions.py, mkdocs_notebooks.py, mkdocs_llms.py]\n" in (ROOT / "mkdocs.yml").read_text()
