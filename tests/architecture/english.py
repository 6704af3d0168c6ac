#!/usr/bin/env python3
"""Check the English of the project: docstrings, comments, messages, Markdown pages, notebooks and forms.

`python tests/architecture/english.py` checks the whole project, and with paths only these files and folders; `--count`
prints only how many findings each rule has. A finding is a line of the form `file:line: [rule] sentence` and a second
line with what to write instead. The exit code is 1 if there is a finding.

A sentence that is right although a rule finds it goes into `english_allowed.txt`: the exact phrase, and the reason.

Code is not read: neither examples in docstrings nor fenced blocks nor `backticks`. The standard library is enough.
"""

import ast
import io
import json
import re
import sys
import tokenize
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
ALLOWED = Path(__file__).with_name("english_allowed.txt")
CHECKED = (
    "src",
    "tests",
    "docs",
    "benchmarks",
    "examples",
    "soak",
    "run",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "changelog.d",
    ".github",
    "pyproject.toml",
)

READ = (".py", ".md", ".yml", ".ipynb")

# Folders and files that are not repaired yet. The list only gets shorter: one without findings must leave it.
NOT_YET: tuple[str, ...] = ()

Kind = Literal["docstring", "comment", "message", "page"]


# --- the rules --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A pattern that must not be found, and what to write instead.

    `pattern` is read without regard to case, and a space in it stands for any white space. A rule `in_docstrings`
    looks at docstrings only, and one `at_start` at their beginning. A match after one of the words in `unless_after` is
    right.
    """

    name: str
    pattern: str
    instead: str
    in_docstrings: bool = False
    at_start: bool = False
    unless_after: frozenset[str] = frozenset()

    def find(self, passage: "Passage") -> Iterator[int]:
        """Give the offset of each match in a passage."""
        prose = passage.prose
        if passage.kind != "docstring" and (self.in_docstrings or self.at_start):
            return
        for match in self.compiled.finditer(prose):
            before = prose[: match.start()].lower().rstrip(", \n").split()[-1:]
            is_right = not self.unless_after.isdisjoint(word.strip("\"'(*") for word in before)
            if not is_right and not (self.at_start and match.start()):
                yield match.start()

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern.replace(" ", r"\s+"), re.IGNORECASE)


# Words that name a person, and may stand before `who`.
PERSONS = (
    "anybody anyone author authors bidder bidders buyer buyers caller customer customers developer developers driver"
    " drivers else engineer engineers everybody everyone maintainer maintainers newcomer passenger passengers people"
    " person persons player programmer reader readers rider riders seller sellers somebody someone user users visitor"
    " visitors"
)

# A lag has a length, or a verb of its own: "3 s behind the others", "how far behind", "falls behind".
DISTANCES = (
    "… days far further furthest h hour hours lag lagged lagging lags leaves left long min minute minutes ms s"
    " second seconds fall fallen falling falls fell stay stayed staying stays"
)

RULES = [
    Rule(
        "who",
        r"\bwho(m|ever|soever)?\b",
        'the actor: "tasks that keep no state", "the caller"',
        unless_after=frozenset(PERSONS.split()),
    ),
    Rule(
        "whose",
        r"([.;:] |\b(of|to|for|from|by|with|in|on|as|says?|know|knows) )whose\b",
        'the owner: "the split that the mark belongs to"',
    ),
    Rule(
        "behind",
        r"\bbehind\b",
        '"after", "downstream of", "later than"; for a place, the allow list',
        unless_after=frozenset(DISTANCES.split()),
    ),
    Rule(
        "first-word",
        r"(what|who|whose|the same|those|one that|one of (those|them)|such|that which"
        r"|it|its|they|their|theirs|these|(all|none|the (first|last|other)) of (it|them)|so (few|many|long)|fewer"
        r"|there (is|are|was|were)|that of|and|the (later|other) one|(no|yes|none)(?=:)"
        r"|of (a|an|one|the|several|those)|(whether|where|why|how \w+|forget|keep|drop) (it|they|them|these|those))\b",
        "the noun or the verb: a docstring makes sense when it is the only line on the screen",
        at_start=True,
    ),
    Rule("have", r"have\b", 'the verb of what is done: "Load every key", "Call `on_timer`"', at_start=True),
    Rule(
        "item",
        r"(?<=\n)(returns|(?!args:|attributes:)[\w*.]+(, [\w*.]+)*): what\b(?! to )",
        'the noun: "spec: the description of the window"',
        in_docstrings=True,
    ),
    Rule(
        "what-what",
        r"\bwhat\b[^.;:]{2,60}\b(is|are|was|were) what\b",
        'the noun, or one of the two: "results equal those of a run without bad elements"',
    ),
    Rule("the-same", r"(^|[.;:!?] )the same[,.:]", 'what is the same: "A copy whose sequence numbers are shifted"'),
    Rule(
        "so-many",
        r"\bso (many|much)\b(?! (more|less|fewer|as)\b)(?![^.;:]*\bthat\b)",
        'names and units: "`rows` rows of `size` bytes"',
    ),
    Rule("nobody", r"\b(nobody|no one|no-one|noone)\b", 'the positive, or the passive: "is never deleted"'),
]

# Words of our own that have given way to the field's; (the former word, the word instead).
FORMER_WORDS = (
    ("deals? out|dealt out|dealing out", "distribute"),
    ("keys? at hand", "current key"),
    ("puts? out|putting out", "emit"),
    ("set forth", "set forward"),
    ("sets forth", "sets forward"),
    ("can be had", "is available"),
    ("what (comes|came|is put|was put) out", "the results"),
    ("what (it|they) puts? out", "the results"),
)


def former_words(words: Iterable[tuple[str, str]]) -> list[Rule]:
    """Make a rule of each word that must not come back."""
    return [Rule("former-word", rf"\b{word}\b", f'"{instead}"') for word, instead in words]


# --- what is read -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """A text of one piece: a docstring, a block of comments, a message, a paragraph.

    `lines` holds the line number in the file of each line of the text.
    """

    kind: Kind
    text: str
    lines: tuple[int, ...]

    @cached_property
    def prose(self) -> str:
        """The text with what stands between backticks masked."""
        return re.sub(r"(`+)(.+?)\1", lambda match: re.sub(r"[^`\s]", "_", match.group(0)), self.text, flags=re.DOTALL)

    def line_at(self, offset: int) -> int:
        """Return the number of the line in the file where this offset stands."""
        return self.lines[min(self.text.count("\n", 0, offset), len(self.lines) - 1)]

    def sentence_at(self, offset: int) -> str:
        """Return the sentence around an offset, on one line."""
        starts = [0, *(match.end() for match in re.finditer(r"(?<=[.!?])\s+|\n\s*\n", self.text))]
        index = bisect_right(starts, offset) - 1
        end = starts[index + 1] if index + 1 < len(starts) else len(self.text)
        return " ".join(self.text[starts[index] : end].split())


def passages_of_python(source: str, with_strings: bool) -> list[Passage]:
    """Return docstrings, comments and messages of a Python file; a string that is a statement is a docstring.

    Messages are the strings inside `raise`, inside a call that warns and inside a call of an exception's class; with
    `with_strings`, also every other string of four words or more.
    """
    tree = ast.parse(source)
    docstrings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    found = [_prose("docstring", str(one.value), one.lineno) for one in docstrings]
    return [*found, *_messages(tree, set(map(id, docstrings)), with_strings), *_comments(source)]


def _messages(tree: ast.AST, docstrings: set[int], with_strings: bool) -> Iterator[Passage]:
    def strings(node: ast.AST, is_message: bool) -> Iterator[Passage]:
        is_message = is_message or _says_something(node)
        if id(node) in docstrings:
            return
        text = _string(node)
        if text is None:
            for child in ast.iter_child_nodes(node):
                yield from strings(child, is_message)
        elif is_message or (with_strings and len(text.split()) >= 4):
            line = getattr(node, "lineno", 1)
            yield Passage("message", text, (line,))

    yield from strings(tree, False)


def _says_something(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name == "warn" or name.endswith(("Error", "Exception", "Warning"))
    return isinstance(node, ast.Raise)


def _string(node: ast.AST) -> str | None:
    """Return the text of a string or of an f-string, whose values are left out."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_string(value) or "…" for value in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _comments(source: str) -> Iterator[Passage]:
    block: list[tuple[int, str]] = []
    previous = (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        place = (token.start[0], token.start[1])
        if block and place != (previous[0] + 1, previous[1]):
            yield _passage("comment", block)
            block = []
        block.append((place[0], token.string.lstrip("#: ")))
        previous = place
    if block:
        yield _passage("comment", block)


def _prose(kind: Kind, text: str, line: int) -> Passage:
    """Return a docstring without its examples: from `>>>` to the next empty line."""
    kept = []
    in_example = False
    for number, content in enumerate(text.split("\n"), line):
        in_example = content.strip() != "" and (in_example or content.lstrip().startswith(">>>"))
        kept.append((number, "" if in_example else content.strip()))
    return _passage(kind, kept)


def passages_of_markdown(source: str) -> list[Passage]:
    """Return the paragraphs, items, headings and table cells of a page, without code."""
    found: list[Passage] = []
    block: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate(source.split("\n"), 1):
        content = line.strip()
        mark = re.match(r"(`{3,}|~{3,})", content)
        ends = mark is not None or not content or content.startswith(("|", "#", "- ", "* ", "<!--"))
        if (fence or ends) and block:
            found.append(_passage("page", block))
            block = []
        if fence:
            fence = "" if content.startswith(fence) else fence
        elif mark is not None:
            fence = mark.group(1)
        elif content.startswith("|"):
            found += [_passage("page", [(number, cell.strip())]) for cell in content.split("|")]
        elif content:
            block.append((number, re.sub(r"^([-*#]+|\d+\.) ", "", content)))
    return [*found, _passage("page", block)] if block else found


def passages_of_notebook(source: str) -> list[Passage]:
    """Return the text of a notebook, and the comments and docstrings of its code; lines count within a cell."""
    found: list[Passage] = []
    for cell in json.loads(source)["cells"]:
        text = "".join(cell["source"])
        found += passages_of_markdown(text) if cell["cell_type"] == "markdown" else passages_of_python(text, False)
    return found


def passages_of_comments(source: str) -> list[Passage]:
    """Return the comments of a TOML file, one by one."""
    lines = enumerate(source.split("\n"), 1)
    return [
        _passage("comment", [(number, found[1])])
        for number, line in lines
        if (found := re.search(r"(?:^|\s)# ?(.+)", line))
    ]


def _passage(kind: Kind, lines: list[tuple[int, str]]) -> Passage:
    text = "\n".join(content for _, content in lines)
    return Passage(kind, text, tuple(number for number, _ in lines))


# --- the check --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """A sentence that breaks a rule."""

    path: str
    line: int
    rule: Rule
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.rule.name}] {self.sentence}\n    write instead {self.rule.instead}"


def allowed_phrases(text: str) -> dict[str, str]:
    """Read the allow list: a line has a phrase, ` -- ` and the reason; `#` begins a comment."""
    phrases = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            phrase, between, reason = line.partition(" -- ")
            if not between or not reason.strip():
                message = f"The allow list needs a phrase, ' -- ' and a reason in each line, and has {line!r}."
                raise ValueError(message)
            phrases[phrase.strip()] = reason.strip()
    return phrases


def findings_in(
    passages: Iterable[Passage], rules: Iterable[Rule], allowed: Iterable[str], path: str, used: Callable[[str], None]
) -> Iterator[Finding]:
    """Give each sentence that breaks a rule, except where an allowed phrase covers the place; call `used` with that."""
    places = {phrase: re.compile(r"\s+".join(map(re.escape, phrase.split()))) for phrase in allowed}
    for passage in passages:
        for rule in rules:
            for offset in rule.find(passage):
                covering = [
                    phrase
                    for phrase, pattern in places.items()
                    if any(match.start() <= offset < match.end() for match in pattern.finditer(passage.text))
                ]
                for phrase in covering:
                    used(phrase)
                if not covering:
                    yield Finding(path, passage.line_at(offset), rule, passage.sentence_at(offset))


def check(path: Path, allowed: Iterable[str], used: Callable[[str], None]) -> list[Finding]:
    """Return the findings in one file of the project."""
    source = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    match path.suffix:
        case ".md" | ".yml":
            passages = passages_of_markdown(source)
        case ".ipynb":
            passages = passages_of_notebook(source)
        case ".toml":
            passages = passages_of_comments(source)
        case _:
            passages = passages_of_python(source, with_strings=name.startswith("src/"))
    rules = [*RULES, *former_words(FORMER_WORDS)]
    return sorted(findings_in(passages, rules, allowed, name, used), key=lambda finding: finding.line)


def files(names: Iterable[str]) -> Iterator[Path]:
    """Give the files that are read under these files and folders."""
    for name in names:
        path = ROOT / name
        yield from [path] if path.is_file() else sorted(one for one in path.rglob("*.*") if one.suffix in READ)


def main(arguments: list[str]) -> int:
    """Print what is found; return the exit code."""
    named = [argument for argument in arguments if not argument.startswith("--")]
    allowed = allowed_phrases(ALLOWED.read_text(encoding="utf-8"))
    used: set[str] = set()
    found = [finding for path in files(named or CHECKED) for finding in check(path.resolve(), allowed, used.add)]
    put_off = [] if named else NOT_YET
    counted = [finding for finding in found if not _is_in(finding, put_off)]
    # Both lists get shorter; only a check of everything can tell.
    idle = [] if named else [phrase for phrase in allowed if phrase not in used]
    repaired = [name for name in put_off if not any(_is_in(finding, [name]) for finding in found)]
    lines = list(map(str, counted))
    if "--count" in arguments:
        lines = [f"{name:<12}{count:>6}" for name, count in Counter(one.rule.name for one in found).most_common()]
    lines += [f"{ALLOWED.name}: delete {phrase!r}, which is found nowhere" for phrase in idle]
    lines += [f"{Path(__file__).name}: delete {name!r} from NOT_YET, it has no findings" for name in repaired]
    if counted:
        lines.append(f"{len(counted)} sentences to rewrite; the rules stand in {Path(__file__).name}")
    print("\n".join(lines) or "no sentence to rewrite")
    return 1 if counted or idle or repaired else 0


def _is_in(finding: Finding, names: Iterable[str]) -> bool:
    return any(Path(finding.path).is_relative_to(name) for name in names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
