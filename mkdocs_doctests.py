"""Shows the examples of docstrings as code: they are doctests, which Markdown takes for quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.MULTILINE)
_WHAT_FOLLOWS_IS_CODE = re.compile(r"^::\n", re.MULTILINE)


class Doctests(Extension):
    """Puts a fence around each example."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of what has been read, before it is parsed."""
        if obj.docstring is not None:
            text = _WHAT_FOLLOWS_IS_CODE.sub("", obj.docstring.value)
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", text)
