"""The runbook as a page of the dashboard, which loads nothing from elsewhere: its sections, without its links."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

_PACKAGED = Path(__file__).parent / "page" / "runbook.md"
_IN_THE_REPOSITORY = Path(__file__).parents[3] / "docs" / "guide" / "runbook.md"

_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
_PAGE = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Runbook · eventide</title>
    <link rel="icon" href="/page/icon.svg">
    <link rel="stylesheet" href="/page/style.css">
  </head>
  <body class="runbook">
{sections}
  </body>
</html>
"""


def runbook_page() -> str:
    """Return the page; a section has the anchor that the alert rules name."""
    file = _PACKAGED if _PACKAGED.exists() else _IN_THE_REPOSITORY
    first, *sections = re.split(r"^## ", _LINK.sub(r"\1", file.read_text(encoding="utf-8")), flags=re.MULTILINE)
    shown = [_shown("h1", first.removeprefix("# ")), *(_shown("h2", section) for section in sections)]
    return _PAGE.format(sections="\n".join(shown))


def anchor_of(heading: str) -> str:
    """Return the anchor of a heading.

    >>> anchor_of("Upgrade, and the way back")
    'upgrade-and-the-way-back'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _shown(tag: str, section: str) -> str:
    heading, _, text = section.partition("\n")
    parts = text.strip().split("\n\n")
    return f'<{tag} id="{anchor_of(heading)}">{escape(heading)}</{tag}>\n' + "\n".join(map(_part, parts))


def _part(text: str) -> str:
    """A table keeps its rows, a program and a list their lines; a paragraph is one line."""
    if text.startswith("|"):
        head, _, *rows = ([cell.strip() for cell in line[1:-1].split(" |")] for line in text.splitlines())
        return f"<table>{_row('th', head)}{''.join(_row('td', row) for row in rows)}</table>"
    if text.startswith("### "):
        return f"<h3>{_words(text[4:])}</h3>"
    if text.startswith("```"):
        return f"<pre>{escape(text.partition(chr(10))[2].removesuffix('```'))}</pre>"
    if re.match(r"(?:-|\d+\.) ", text):
        items = re.split(r"^(?:-|\d+\.) ", text, flags=re.MULTILINE)[1:]
        return "".join(["<ul>", *(f"<li>{_words(item)}</li>" for item in items), "</ul>"])
    return f"<p>{_words(text)}</p>"


def _row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_words(cell)}</{tag}>' for cell in cells)}</tr>"


def _words(text: str) -> str:
    """Text in one line, with its code and what it stresses."""
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(" ".join(text.split()), quote=False))
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", code)
