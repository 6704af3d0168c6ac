"""Each error says what to do, or has a line in the runbook."""

import re
from pathlib import Path

import pytest

from architecture.remedies import Message, messages

RUNBOOK = Path(__file__).parents[2] / "docs" / "guide" / "runbook.md"


def in_the_runbook() -> list[str]:
    """Beginnings of messages, in the first column of the runbook's tables of messages."""
    _, _, section = RUNBOOK.read_text().partition("## Messages without instructions")
    cells = re.findall(r"^\| (`.+?) \|", section, re.M)
    return [part for cell in cells for part in re.findall(r"`([^`]+)`", cell)]


def test_each_message_says_what_to_do_or_has_a_line_in_the_runbook():
    lines = tuple(in_the_runbook())
    silent = [one for one in messages() if not one.is_handed_on and not one.says_what_to_do]
    left = [f"{one.place}: {one.text}" for one in silent if not one.text.startswith(lines)]
    assert not left, "say what to do, in the message or in docs/guide/runbook.md:\n" + "\n".join(left)


def test_each_line_of_the_runbook_is_of_a_message():
    silent = [one for one in messages() if not one.says_what_to_do]
    assert not [line for line in in_the_runbook() if not any(one.text.startswith(line) for one in silent)]


def test_no_message_is_overlooked():
    """A walk that found none would hold anything."""
    assert len([*messages()]) > 500


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("the file … cannot be read: …", False),
        ("the file … cannot be read: …; put a copy of it back", True),
        ("the index of a field is 0 or more, not …", True),
        ("there is nothing to measure", False),
        ("there is nothing to measure: …", False),
        ("name of the file … is not known", False),
        ("run() raised …", False),
        ("the names are not all different: …", False),
        ("the file … has the columns … in its header, not …", False),
        ("the server that this process belongs to is gone", False),
        ("…: the elements have no field …; their fields are …", True),
        ("option …: expected …, got …", True),
        ("the DataFrame has no column …; its columns are …", True),
    ],
)
def test_advice_is_known_by_its_words(text, says):
    assert Message("", text).says_what_to_do is says
