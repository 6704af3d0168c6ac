"""Code with operators in place of f-strings gives what the code gives."""

import sys
from types import FunctionType

import pytest

from eventide.runtime.tracing.replaced import TEXT_MAKERS
from eventide.runtime.tracing.rewriting import with_operators

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 13), reason="f-strings have other instructions there")


def looping(n):
    made = []
    for i in range(n):
        if i % 3 == 0:
            continue
        made.append(f"{i}:{i / 7:.3f}" if i % 2 else f"{i!r:>3}|{n!s}")
        while len(made) > 5:
            made = [f"{made[-1]}…"]
    return made, f"{n}", f"{n:{n}}", f"{'a'!a}{n}"


def _source(lines):
    body = [
        f"        if n % {line + 2} == 0:\n            made += f'{line}-{{n}}-{line}.{line};'" for line in range(lines)
    ]
    return "\n".join(["def long(n):", "    made = ''", "    for n in range(n, n + 3):", *body, "    return made"])


@pytest.mark.parametrize("lines", [1, 10, 17, 18, 19, 100, 500])
def test_long_jumps_find_their_targets(lines):
    scope = {}
    exec(_source(lines), scope)
    long = scope["long"]
    code = with_operators(long.__code__, TEXT_MAKERS)
    assert len(code.co_code) > len(long.__code__.co_code)
    assert {line for *_, line in code.co_lines()} == {None}
    assert [*code.co_lines()][-1][1] == len(code.co_code)
    copy = FunctionType(code, {"range": range})
    assert [copy(n) for n in (1, 7, 60)] == [long(n) for n in (1, 7, 60)]


def test_loops_and_conditions_stay_what_they_are():
    copy = FunctionType(with_operators(looping.__code__, TEXT_MAKERS), {"range": range, "len": len})
    assert [copy(n) for n in range(30)] == [looping(n) for n in range(30)]


def test_code_without_text_stays_as_it_is():
    code = (lambda e: e + 1).__code__
    assert with_operators(code, TEXT_MAKERS) is code
