"""Writes the pages for language models: each in Markdown, a list of them in `llms.txt`, and all in `llms-full.txt`.

A hook of MkDocs, in the form of https://llmstxt.org. What the two files list is what the navigation has, in its order.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure import StructureItem
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

_FROM_SOURCE = re.compile(r"^::: ", re.MULTILINE)
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_LINK_TO_FILE = re.compile(r"(?<=\]\()(?!\w+:)([^)\s]+\.(?:md|png|svg))")
_NO_SENTENCE = ("#", "|", "!", "```", "- ", ":::")

_navigation: list[StructureItem] = []
_texts: dict[str, str] = {}
"""The text of each page, by its path in the folder of pages."""


def on_nav(nav: Navigation, *, config: MkDocsConfig, files: Files) -> None:
    """Take the navigation for the order of pages; a build begins with it."""
    _navigation[:] = nav.items
    _texts.clear()


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Keep the text of a page: as it was written, or, where docstrings are put in, made of what the reader sees."""
    text = page.markdown or ""
    _texts[page.file.src_uri] = _markdown_of(html) if _FROM_SOURCE.search(text) else text


def on_post_build(*, config: MkDocsConfig) -> None:
    """Write the files beside the pages."""
    site = Path(config.site_dir)
    for path, text in _texts.items():
        (site / path).write_text(text, encoding="utf-8")
    paths = [page.file.src_uri for page in _pages(_navigation)]
    whole = "\n\n".join(from_root(_texts[path], path).strip() for path in paths)
    (site / "llms-full.txt").write_text(f"{whole}\n", encoding="utf-8")
    (site / "llms.txt").write_text("\n".join(_contents(config)), encoding="utf-8")


def _contents(config: MkDocsConfig) -> Iterator[str]:
    yield f"# {config.site_name}\n\n> {config.site_description}\n"
    full = urljoin(config.site_url or "", "llms-full.txt")
    yield f"The links lead to pages in Markdown. [All of them in one file]({full}).\n"
    sections = {"Overview": [item for item in _navigation if item.is_page]}
    sections |= {str(item.title): [*_pages(item.children or [])] for item in _navigation if not item.is_page}
    for title, pages in sections.items():
        yield f"## {title}\n"
        for page in pages:
            path = page.file.src_uri
            yield f"- [{page.title}]({urljoin(config.site_url or '', path)}): {summary(_texts[path])}"
        yield ""


def _pages(items: list[StructureItem]) -> Iterator[Page]:
    for item in items:
        if item.is_page:
            yield item
        yield from _pages(item.children or [])


def summary(text: str) -> str:
    r"""Return the first sentence of a page, or the quotation that it begins with, without links.

    >>> summary("# Joins\n\n| a | table |\n\nElements of [two streams](x.md) are\njoined. Where keys are equal.")
    'Elements of two streams are joined.'
    """
    paragraphs = (part.strip() for part in text.split("\n\n"))
    first = next((part for part in paragraphs if part and not part.startswith(_NO_SENTENCE)), "")
    words = " ".join(_LINK.sub(lambda link: link[1], first).split())
    return words.replace("> ", "") if words.startswith("> ") else re.split(r"(?<=[.?]) ", words)[0]


def from_root(text: str, page: str) -> str:
    """Return a text in which links to other pages, and to pictures, begin at the root of the site.

    >>> from_root("[Why](../concepts/boundaries.md#why) it is [so](#so).", "guide/windows.md")
    '[Why](concepts/boundaries.md#why) it is [so](#so).'
    """
    folder = posixpath.dirname(page)
    return _LINK_TO_FILE.sub(lambda link: posixpath.normpath(posixpath.join(folder, link[1])), text)


def _markdown_of(html: str) -> str:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    page = BeautifulSoup(html, "html.parser")
    for mark in page.select(".headerlink, .doc-labels"):
        mark.decompose()
    for link in page("a"):
        link.unwrap()  # they lead to pages of HTML
    for cell in page("td"):
        for text in cell.find_all(string=re.compile("[|]")):
            text.replace_with(text.replace("|", r"\|"))
    as_written = {"escape_asterisks": False, "escape_underscores": False}
    converter = MarkdownConverter(heading_style="atx", bullets="-", code_language="python", **as_written)
    return re.sub(r"\n{3,}", "\n\n", converter.convert_soup(page)).strip() + "\n"
