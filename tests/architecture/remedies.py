"""The messages of the package's errors, as far as the source has them, and whether they say what to do."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import eventide
from eventide import errors

PACKAGE = Path(eventide.__file__).parent
KINDS = {name for name in errors.__all__ if issubclass(getattr(errors, name), errors.EventideError)}

_WORDS = 2

UNKNOWN = "…"
"""Stands for what a message has of values."""

_VERBS = r"""
add|allow|ask|assign|attach|begin|bind|build|call|cancel|cast|change|check|choose|close|collect|compare|compute
|connect|convert|copy|correct|create|declare|define|delete|derive|describe|do|drop|encode|end|filter|find|free|get
|give|go|group|hand|implement|import|increase|inherit|install|keep|key|leave|let|look|lower|make|move|name|open|order
|override|pass|put|raise|read|register|remove|rename|replace|report|restart|restore|return|run|say|see|send|set|sort
|spell|start|stop|store|subclass|take|try|turn|undo|upgrade|use|wait|write|yield
"""

_ADVICE = re.compile(
    rf"""(?: ^ | [;:.,!(|] | \band | \bor | \bso | \bthen )\s*
    (?: (?: either | there,? | here,? | then | always | also | first | else | instead,? )\s )*
    (?: {_VERBS} )\b (?! \( | \s (?: is | are | was | were | has | have | of | raised )\b )""",
    re.IGNORECASE | re.VERBOSE,
)
"""A clause that begins with what to do: "name the column", and neither "name of the column" nor "run() raised"."""

_WANTED = re.compile(
    r"""
    (?: \b(?: takes? | needs? | gives? | returns? | goes | reads? | looks | shows | expect(?:s|ed)? | must | wants? )\b
      | \b(?: is | are | has | have )\b (?! \s (?: (?: an? | the | of | (?:Arrow\s)?type | columns | fields )\s )* … ) )
      .* (?: ,\s(?:and\s)?not\b | ;\snot\b | \bgot\b )
    | [;:,]\s* (?: and\s )? (?: its? | there | their | the | they | those )\s (?: \w+\s ){0,4}
      (?: has | have | is\sthat\sof | is | are )\b (?! \s (?: no | not | nothing | none | of\stype )\b ) [^;]* …$
    | \b(?: must | needs? | has\sto | have\sto )\b
    | \bonly\b .* \b(?: can | may | has | know )\b
    """,
    re.DOTALL | re.VERBOSE,
)
"""Sentences that name the right input: "the index is 0 or more, not -1", "it has the columns a, b".

One that begins with the wrong input, such as "the file has the columns a, b, not a, c", leaves open which one is right.
"""


@dataclass(frozen=True)
class Message:
    """A message of an error: where it is made, and its text, with a mark for each value."""

    place: str
    text: str

    @property
    def is_handed_on(self) -> bool:
        """Whether nearly all of it is another error's, or a caller's: that is where it is made."""
        return len(re.findall("[a-z]{3,}", self.text)) < _WORDS

    @property
    def says_what_to_do(self) -> bool:
        """Whether there is advice in it, or what would be right."""
        return bool(_ADVICE.search(self.text) or _WANTED.search(self.text))


def messages() -> Iterator[Message]:
    """Every message that an error of the package is made with, in the order of files."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        known = _constants(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS and node.args:
                yield Message(
                    f"{path.relative_to(PACKAGE)}:{node.lineno}", " ".join(_text(node.args[0], known).split())
                )


@cache
def _constants(path: Path) -> Mapping[str, str]:
    """The texts that names of a module stand for: its own constants, and those that it imports."""
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("eventide."):
            origin = PACKAGE.parent.joinpath(*str(node.module).split("."))
            source = origin / "__init__.py" if origin.is_dir() else origin.with_suffix(".py")
            imported = {alias.name for alias in node.names if alias.name.isupper()}
            if imported and source != path:
                found |= {name: text for name, text in _constants(source).items() if name in imported}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = _text(node.value, found)
    return found


def _text(node: ast.expr, known: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else UNKNOWN
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, known) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, known)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, known) + _text(node.right, known)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body, known)} | {_text(node.orelse, known)}"
    return known.get(node.id, UNKNOWN) if isinstance(node, ast.Name) else UNKNOWN
