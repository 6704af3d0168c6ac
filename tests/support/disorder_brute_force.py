"""Disorder, written as plainly as it is defined: each element beside all that came before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.advisor.disorder import Stretch


@dataclass
class Element:
    split: str
    time: int
    arrived: int


def measured(elements: list[Element], *, has_clock: bool) -> dict[str, object]:
    own, whole, gaps, apart, heard = [], [], [], {}, {}
    for i, element in enumerate(elements):
        before = elements[:i]
        same = [other for other in before if other.split == element.split]
        newest_of_all = max([other.time for other in [*before, element]])
        newest = max(other.time for other in [*same, element])
        whole.append(newest_of_all - element.time)
        own.append(newest - element.time)
        apart.setdefault(element.split, []).append(newest_of_all - newest)
        now = element.arrived if has_clock else newest_of_all
        if same:
            gaps.append((element.split, now - heard[element.split]))
        heard[element.split] = now
    return {
        "own": sorted(own),
        "whole": sorted(whole),
        "gaps": sorted(gap for _, gap in gaps),
        "splits": {
            name: (
                len(apart[name]),
                max(element.time for element in elements if element.split == name),
                heard[name],
                sum(apart[name]),
                min(apart[name]),
                max(apart[name]),
                max((gap for of, gap in gaps if of == name), default=0),
            )
            for name in apart
        },
    }


def stretch_of(elements: list[Element], *, has_clock: bool) -> Stretch:
    names = sorted({element.split for element in elements})
    return Stretch(
        np.array([element.time for element in elements], np.int64),
        names,
        np.array([names.index(element.split) for element in elements], np.int32),
        np.array([element.arrived for element in elements], np.int64) if has_clock else None,
    )
