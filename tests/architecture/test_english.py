"""The check of the project's English finds what breaks a rule, and lets pass what keeps it."""

import json

import pytest

from architecture import english

FOUND = [
    ("who", "It would wait for who takes the elements."),
    ("who", "It is counted by who keeps no state."),
    ("who", "Whoever reads it first closes it."),
    ("who", "The split, who is ahead of the others, waits."),
    ("whose", "It goes to whose channel it is."),
    ("behind", "The frame comes behind a position."),
    ("behind", "It is a function behind the source."),
    ("first-word", "What a killed program had not come to."),
    ("first-word", "The same, so many indices further back."),
    ("first-word", "Those that are used."),
    ("first-word", "That of the left stream."),
    ("first-word", "Of one that has ended, nothing is read."),
    ("first-word", "No: it waits for more."),
    ("first-word", "One that has ended."),
    ("first-word", "Such a window."),
    ("first-word", "Its rows."),
    ("first-word", "So few are stored at once."),
    ("first-word", "Whether it answers."),
    ("first-word", "How far they go."),
    ("have", "Have every key at hand."),
    ("item", "A window.\n\nArgs:\nspec: what is known of it."),
    ("item", "A window.\n\nReturns:\nWhat is stored."),
    ("what-what", "What comes out is what comes out without them."),
    ("the-same", "It reads a file. The same, from the end of it."),
    ("so-many", "The size of so many rows of so many bytes."),
    ("nobody", "A file which nobody deletes."),
    ("nobody", "No one reads it."),
]

RIGHT = [
    "Waits until the user who started the job reads the elements.",
    "For somebody who knows Flink, and for people who do not.",
    "A window whose end is reached fires.",
    "The frame comes after a position.",
    "The split is 3 s behind the others, and says how far behind it is.",
    "One slow split falls behind.",
    "A copy of the same rows, from the end of the file.",
    "Takes so many more that the index is read again.",
    "`rows` rows of `size` bytes in total; `who` and `behind` are names here.",
    "Finding.\n\nAttributes:\nremedy: what to do.",
    "The reader says what is read, and where such a file begins.",
]


def test_the_project_has_no_sentence_to_rewrite(capsys: pytest.CaptureFixture[str]) -> None:
    assert english.main([]) == 0, capsys.readouterr().out


def rules_broken_by(text: str, kind: english.Kind = "docstring", allowed: tuple[str, ...] = ()) -> list[str]:
    passage = english.Passage(kind, text, tuple(range(1, text.count("\n") + 2)))
    found = english.findings_in([passage], english.RULES, allowed, "a.py", used=lambda _: None)
    return [finding.rule.name for finding in found]


@pytest.mark.parametrize(("rule", "sentence"), FOUND, ids=[sentence for _, sentence in FOUND])
def test_a_sentence_that_breaks_a_rule_is_found(rule: str, sentence: str) -> None:
    assert rule in rules_broken_by(sentence)


@pytest.mark.parametrize("sentence", RIGHT)
def test_a_sentence_that_keeps_the_rules_passes(sentence: str) -> None:
    assert rules_broken_by(sentence) == []


def test_each_rule_has_a_sentence_that_it_finds() -> None:
    assert {rule for rule, _ in FOUND} == {rule.name for rule in english.RULES}


def test_only_a_docstring_may_not_begin_with_what() -> None:
    assert rules_broken_by("What is late is counted.", kind="comment") == []
    assert rules_broken_by("Counts. What is late is counted.", kind="docstring") == []


def test_a_line_may_end_between_the_words() -> None:
    assert rules_broken_by("Which no\none deletes, and a user\nwho waits.", kind="comment") == ["nobody"]


def test_an_allowed_phrase_covers_its_own_words_only() -> None:
    text = "A tree stands behind the house. A frame stands behind the mark."
    assert rules_broken_by(text, allowed=("stands behind\nthe house",)) == ["behind"]


def test_the_allow_list_says_why() -> None:
    assert english.allowed_phrases("# a comment\n\nbehind the house -- a place\n") == {"behind the house": "a place"}
    with pytest.raises(ValueError, match="a reason in each line"):
        english.allowed_phrases("behind the house\n")


def test_a_former_word_is_found_as_a_whole_word_with_the_word_instead() -> None:
    (rule,) = english.former_words([("level", "stage")])
    passage = english.Passage("comment", "A level, and a levelled one.", (7,))
    assert [str(finding) for finding in english.findings_in([passage], [rule], (), "a.py", used=lambda _: None)] == [
        'a.py:7: [former-word] A level, and a levelled one.\n    write instead "stage"'
    ]


PYTHON = '''"""A module."""

LIMIT = 3  # a limit
"""The limit, of an attribute."""


def read(path):
    """Read it.

    >>> who = behind
    what comes out

    The end.
    """
    # two lines
    # of one comment
    if path in ("short text", "a longer text of five words"):
        raise DataError(f"{path} is wrong" " and long")
    warnings.warn("take care", stacklevel=2)
'''


def texts(passages: list[english.Passage], kind: english.Kind) -> list[str]:
    return [" ".join(passage.text.split()) for passage in passages if passage.kind == kind]


def test_docstrings_are_read_without_their_examples() -> None:
    passages = english.passages_of_python(PYTHON, with_strings=False)
    assert sorted(texts(passages, "docstring")) == ["A module.", "Read it. The end.", "The limit, of an attribute."]


def test_the_lines_of_a_comment_are_one_passage() -> None:
    passages = english.passages_of_python(PYTHON, with_strings=False)
    assert texts(passages, "comment") == ["a limit", "two lines of one comment"]


def test_messages_are_what_is_raised_and_warned_and_long_strings_where_asked_for() -> None:
    messages = ["… is wrong and long", "take care"]
    assert texts(english.passages_of_python(PYTHON, with_strings=False), "message") == messages
    assert texts(english.passages_of_python(PYTHON, with_strings=True), "message") == [
        "a longer text of five words",
        *messages,
    ]


PAGE = """# A title

A paragraph
of two lines.
- an item
- another
  of two lines

```python
what = "is behind"
```

| a cell | and one more |
"""


def test_a_page_is_read_by_paragraphs_items_and_cells_without_code() -> None:
    passages = english.passages_of_markdown(PAGE)
    assert [text for text in texts(passages, "page") if text] == [
        "A title",
        "A paragraph of two lines.",
        "an item",
        "another of two lines",
        "a cell",
        "and one more",
    ]


def test_a_finding_says_file_line_sentence_and_what_to_write() -> None:
    page = english.passages_of_markdown("One line.\n\nRight. It is a file\nthat nobody deletes. And on.\n")
    (finding,) = english.findings_in(page, english.RULES, (), "docs/page.md", used=lambda _: None)
    assert str(finding) == (
        "docs/page.md:4: [nobody] It is a file that nobody deletes.\n"
        '    write instead the positive, or the passive: "is never deleted"'
    )


def test_notebooks_and_comments_of_toml_are_read():
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "A page."]},
        {"cell_type": "code", "source": ["# A comment.\n", "print(1)\n"]},
    ]
    notebook = english.passages_of_notebook(json.dumps({"cells": cells}))
    assert [one.text for one in notebook] == ["Title", "A page.", "A comment."]
    toml = english.passages_of_comments('# First.\nname = "a#b"  # second\n')
    assert [(one.text, one.line_at(0)) for one in toml] == [("First.", 1), ("second", 2)]


def test_forms_notebooks_and_settings_are_among_the_files():
    names = {path.name for path in english.files(english.CHECKED)}
    assert names >= {"bug.yml", "pyproject.toml", "first_windows.ipynb", "CODE_OF_CONDUCT.md"}
