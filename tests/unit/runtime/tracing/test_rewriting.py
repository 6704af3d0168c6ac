"""Code with operators in place of f-strings and `is None` gives what the code gives."""

from types import FunctionType

import pytest

from eventide.runtime.tracing.admission import asks_for_none, with_operators
from eventide.runtime.tracing.replaced import OPERATORS


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
    code = with_operators(long.__code__, OPERATORS)
    assert len(code.co_code) > len(long.__code__.co_code)
    assert {line for *_, line in code.co_lines()} == {None}
    assert [*code.co_lines()][-1][1] == len(code.co_code)
    copy = FunctionType(code, {"range": range})
    assert [copy(n) for n in (1, 7, 60)] == [long(n) for n in (1, 7, 60)]


def test_loops_and_conditions_stay_what_they_are():
    copy = FunctionType(with_operators(looping.__code__, OPERATORS), {"range": range, "len": len})
    assert [copy(n) for n in range(30)] == [looping(n) for n in range(30)]


def gaps(values):
    found = 0
    last = None
    for value in values:
        if value is None:
            found += 1 if last is not None else 100
        last = None if value is None or (last is None and value == 2) else value
    while last is not None and last > 0:
        last = last - 1 if last > 1 else None
    return found, last, last is None, not (last is None or found > 9), (last is not None) + 1


def test_questions_for_none_in_loops_and_conditions_have_the_same_answers():
    copy = FunctionType(with_operators(gaps.__code__, OPERATORS), {})
    assert copy.__code__.co_code != gaps.__code__.co_code
    assert not asks_for_none(copy.__code__)
    for values in ([], [None], [1, None, None, 2], [2, None], [3], [0], [None, 5]):
        assert copy(values) == gaps(values)


def test_code_without_text_stays_as_it_is():
    code = (lambda e: e + 1).__code__
    assert with_operators(code, OPERATORS) is code
