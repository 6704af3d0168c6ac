"""Regular expressions that Arrow computes find in ASCII text what Python's own find; others are left to Python."""

import random
import re
import warnings

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide.common.typeinfo import Types
from eventide.runtime.elements.elements import Columns
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import mapped
from eventide.runtime.tracing.patterns import WANTED, certain_groups, translated

_LETTERS = "ab_-1 \nB&="
_PARTS = (
    "a",
    "b",
    r"\d",
    r"\w",
    r"\s",
    r"\D",
    r"\W",
    r"\S",
    ".",
    "[ab]",
    "[^a]",
    "[a-z]",
    r"[^\s=]",
    r"[\w-]",
    "[A-b]",
)
_PLACES = ("^", "$", r"\b", r"\A", r"\Z")
_COUNTS = ("*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", "??", "{1,2}?", "{1001}")
_FLAGS = (0, 0, 0, re.IGNORECASE, re.MULTILINE, re.DOTALL, re.ASCII, re.IGNORECASE | re.MULTILINE)


def random_pattern(rng, depth=2):
    def one():
        if rng.random() < 0.2:
            return rng.choice(_PLACES)
        if depth == 0 or rng.random() < 0.7:
            part = rng.choice((*_PARTS, re.escape(rng.choice(_LETTERS))))
        else:
            part = f"({rng.choice(('', '?:'))}{random_pattern(rng, depth - 1)})"
        return part + (rng.choice(_COUNTS) if rng.random() < 0.35 else "")

    ways = range(rng.choice((1, 1, 2, 3)))
    return "|".join("".join(one() for _ in range(rng.choice((0, 1, 1, 2, 3)))) for _ in ways)


def test_translated_expressions_match_ascii_text_as_python_does(pytestconfig):
    rng = random.Random(pytestconfig.getoption("randomly_seed", 0))
    compared = 0
    for _ in range(600):
        texts = ["", "\n", "a\n\n", "\x1c", "\x00a"]
        texts += ["".join(rng.choices(_LETTERS, k=rng.randrange(9))) for _ in range(20)]
        source, flags = random_pattern(rng), rng.choice(_FLAGS)
        with warnings.catch_warnings(action="ignore"):
            pattern = re.compile(source, flags)
        for how in ("search", "match", "fullmatch"):
            for group in (None, *certain_groups(source, pattern.flags)):
                found = translated(source, pattern.flags, how, group)
                if found is None:
                    continue
                ours = [text for text in texts if not (found.has_end and text.endswith("\n"))]
                matches = [getattr(pattern, how)(text) for text in ours]
                compared += len(ours)
                if group is None:
                    got = pc.match_substring_regex(pa.array(ours, pa.string()), found.text).to_pylist()
                    assert got == [match is not None for match in matches], (source, flags, how, ours)
                else:
                    got = pc.extract_regex(pa.array(ours, pa.string()), found.text).to_pylist()
                    expected = [None if match is None else {WANTED: match[group]} for match in matches]
                    assert got == expected, (source, flags, how, group, ours)
    assert compared > 10_000


@pytest.mark.parametrize(
    "source",
    [r"(?=a)", r"(?<!a)b", r"(a)\1", "(a*)*", "é", r"\B", "(?i:a)b", "(?>ab)", "a++", "a{1001}", "(?(1)a|b)()"],
)
def test_what_re2_does_not_have_or_means_otherwise_is_not_translated(source):
    assert translated(source, re.compile(source).flags if "(1)" not in source else 0, "search") is None


BASKET = re.compile("(?:&|^)id=([^&]*)(;(?P<more>x*))?")
LONG_ONE, LONG_OTHER = re.compile("a" * 300), re.compile("a" * 300 + "b")


@pytest.mark.parametrize(
    "function",
    [
        lambda e: BASKET.search(e).group(1) if BASKET.search(e) else None,
        lambda e: m["more"] if (m := BASKET.search(e)) else "none",
        lambda e: m.groups("-") if (m := BASKET.search(e)) else ("", "", ""),
        lambda e: (m.group(), m.group(0, 1)) if (m := BASKET.match(e)) else ("", ("", "")),
        lambda e: re.sub(r"\s+", " ", e) + BASKET.sub("", e, 1),
        lambda e: bool(re.fullmatch("ID=.*", e, re.IGNORECASE)),
        lambda e: re.compile(r"\w+$").search(e) is None,
        lambda e: (bool(LONG_ONE.search(e)), bool(LONG_OTHER.search(e))),
    ],
)
@pytest.mark.parametrize(
    "values",
    [["id=1", "a&id=", "x", "id=2;xx&y", "id=a\n"], ["id=ß&", "\xa0 ", "\u017f=", "iD=K"], ["a" * 300, "", "id=;"]],
)
def test_matches_groups_and_replacements_are_those_of_python(function, values):
    kind = Types.STRING()
    columns = Columns(kind, kind.to_arrow(values), None, None)
    found, result_type = mapped(function, columns, None)
    assert list(map(repr, result_type.from_arrow(found))) == [repr(function(value)) for value in values]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda e: BASKET.search(e, 1) is None, "with a place to begin at"),
        (lambda e: BASKET.search(e).group(1), "'NoneType' object has no attribute 'group'"),
        (lambda e: BASKET.match(e)[7] if BASKET.match(e) else "", "the group 7, which does not exist"),
        (lambda e: BASKET.sub(e, "id="), "not a constant text|a place"),
        (lambda e: BASKET.pattern, "uses the attribute 'pattern'"),
        (lambda e: re.compile(b"a").search(e) is None, "a regular expression of bytes"),
    ],
)
def test_what_a_trace_cannot_say_of_matches_says_why(function, why):
    columns = Columns(Types.STRING(), pa.array(["a"]), None, None)
    with pytest.raises(NotTraceable, match=why):
        mapped(function, columns, None)
