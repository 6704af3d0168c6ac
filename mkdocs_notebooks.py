"""Makes a page of each notebook in `examples/notebooks`, as it is stored: with its outputs.

A hook of MkDocs. The page is Markdown, and each picture a file beside it, so that the search, the theme, and the pages
for language models have them as they have every other page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

_PICTURE = "image/svg+xml"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the notebooks, and their pictures, to those of the documentation."""
    from mkdocs.structure.files import File

    for path in sorted(Path(config.config_file_path).parent.glob("examples/notebooks/*.ipynb")):
        text, pictures = page_of(json.loads(path.read_text(encoding="utf-8")), path.stem)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    return files


def page_of(notebook: dict[str, Any], name: str) -> tuple[str, dict[str, str]]:
    r"""Return the Markdown of a notebook, and the pictures in it by their file names.

    >>> output = {"output_type": "stream", "name": "stdout", "text": ["3\n"]}
    >>> cells = [{"cell_type": "markdown", "source": ["# Sums"]}]
    >>> cells += [{"cell_type": "code", "source": ["print(1 + 2)"], "outputs": [output]}]
    >>> page_of({"cells": cells}, "sums")
    ('# Sums\n\n```python\nprint(1 + 2)\n```\n\n```text\n3\n```\n', {})
    """
    parts: list[str] = []
    pictures: dict[str, str] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        for data in _shown(cell):
            text = "".join(data.get("text/plain", ""))
            if _PICTURE in data:
                file = f"{name}-{len(pictures) + 1}.svg"
                pictures[file] = "".join(data[_PICTURE])
                parts.append(f"![The job, drawn while it ran]({file})")
            else:
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n", pictures


def _shown(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The output below a cell, by its kind."""
    for output in cell.get("outputs", ()):
        yield {"text/plain": output["text"]} if output["output_type"] == "stream" else output["data"]
