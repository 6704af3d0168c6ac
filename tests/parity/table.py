"""The page docs/parity.md, from what PyFlink has, what eventide has, and why they differ:

PYTHONPATH=src:tests python -m parity.table > docs/parity.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby

from eventide._absent import MODULES
from parity.names import CLASSES, FACADES, FUNCTIONS, Place, Verdict, public, verdict

_HEAD = """\
# Parity

Every public name of `pyflink.common`, `pyflink.datastream` and `pyflink.metrics` in PyFlink 2.3.0: whether it is here,
here with a difference, or not here, and why. Replace `pyflink` by `eventide` in the path. What differs in meaning is
explained in [From PyFlink](from-pyflink.md). A name that is not here says so when it is imported or asked for.

This page is made from names that were recorded from PyFlink's source; a test holds that it is true.
"""


def page() -> str:
    return "\n".join([_HEAD, *_counts(), *_facades(), *_modules(), *_absent_modules()]).rstrip("\n") + "\n"


def _counts() -> Iterator[str]:
    paths = [*FUNCTIONS, *CLASSES, *(f"{path}.{member}" for path in CLASSES for member in public(CLASSES[path]))]
    places = [verdict(path).place for path in paths]
    here, differs, absent = (places.count(place) for place in Place)
    yield (
        f"Of {len(paths):,} functions, classes and their members, {here:,} are here, {differs:,} are here with a "
        f"difference, and {absent:,} are not, most of them in connectors.\n"
    )


def _facades() -> Iterator[str]:
    yield "## What the packages hand out\n"
    yield "| package | here | not here |\n|---|---|---|"
    for facade, names in FACADES.items():
        here, absent = [], []
        for name in names:
            (absent if verdict(f"{facade}.{name}").place is Place.ABSENT else here).append(name)
        yield f"| `{facade}` | {_code(here)} | {_code(absent)} |"
    yield ""


def _modules() -> Iterator[str]:
    paths = [path for path in [*FUNCTIONS, *CLASSES] if _module(path) not in MODULES]
    for module, grouped in groupby(sorted(paths, key=lambda path: (_module(path), path in CLASSES)), key=_module):
        yield f"## {module}\n"
        yield "| name | here | otherwise |\n|---|---|---|"
        absent: dict[str, list[str]] = {}
        for path in grouped:
            name, own = path.removeprefix(f"{module}."), verdict(path)
            if own.place is Place.ABSENT:
                absent.setdefault(own.why, []).append(name)
            else:
                yield _row(path, name, own)
        for why, names in absent.items():
            yield f"| {_code(names)} | | not here: {_cell(why)} |"
        yield ""


def _row(path: str, name: str, own: Verdict) -> str:
    here: list[str] = []
    otherwise: dict[tuple[Place, str], list[str]] = {}
    for member in public(CLASSES.get(path, {})):
        judged = verdict(f"{path}.{member}")
        if judged.place is Place.HERE:
            here.append(member)
        else:
            otherwise.setdefault((judged.place, judged.why), []).append(member)
    said = [own.why] if own.place is Place.DIFFERS else []
    said += [f"{_code(names)}: {why}" for (place, why), names in otherwise.items() if place is Place.DIFFERS]
    said += [f"not {_code(names)}: {why}" for (place, why), names in otherwise.items() if place is Place.ABSENT]
    return f"| `{name}` | {_code(here) or 'yes'} | {_cell('; <br>'.join(said))} |"


def _absent_modules() -> Iterator[str]:
    yield "## Modules that are not here\n"
    yield "| module | why |\n|---|---|"
    for module, why in MODULES.items():
        names = [path.removeprefix(f"{module}.") for path in [*FUNCTIONS, *CLASSES] if _module(path) == module]
        yield f"| `{module}` | {_cell(why)}{'<br>' + _code(names) if names else ''} |"
    yield ""


def _module(path: str) -> str:
    """The module of a function or class; a class within a class is of the same module."""
    while path in CLASSES or path in FUNCTIONS:
        path = path.rpartition(".")[0]
    return path


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
