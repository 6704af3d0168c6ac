"""Outputs of the functions of an operator, until they are sent on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import repeat
from typing import Any, TypeAlias

from eventide.api.dead_letters import ADVICE
from eventide.api.functions.output_tag import OutputTag
from eventide.common.typeinfo import TypeInformation
from eventide.runtime.chain.chained_operators import as_results
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ownership import own

Mark: TypeAlias = tuple[int, dict[str, int]]
"""How many elements have come out of the main output, and of each side output."""


class Collector:
    """Gathers elements by side output (None: the main one).

    A function puts out ``(tag, value)``, whose tag is an ``OutputTag``, for a side output, and anything else for the
    main one. What can be changed is copied (decision 40); not so without ``copies``. ``advice`` is what an error says
    of results that are not of their declared type. Flink: ``Collector``.
    """

    def __init__(
        self, operator: str, type_info: TypeInformation | None, *, copies: bool = True, advice: str = ADVICE
    ) -> None:
        self._operator = operator
        self._advice = advice
        self._copies = copies
        self._main = Elements()
        self._beside: defaultdict[str, Elements] = defaultdict(Elements)
        self._types: dict[str | None, TypeInformation | None] = {None: type_info}
        self._is_typed = type_info is not None and not type_info.is_pickled

    def put_beside(self, tag: str, value: Any, timestamp: int | None, number: int | None = None) -> None:
        """Put one element out on a side output; without a number, it has that of its place there."""
        self.put_letter(tag, own(value) if self._copies else value, timestamp, number)

    def put_letter(self, tag: str, value: Any, timestamp: int | None, number: int | None = None) -> None:
        """Put one element out on a side output, without a copy: it has no other owner."""
        output = self._beside[tag]
        output.append(value, timestamp, len(output) if number is None else number)

    def put_values(self, values: Iterable[Any], timestamp: int | None, number: int) -> None:
        """Put out what a function gave that has no side outputs."""
        for value in values:
            self._main.append(own(value), timestamp, number)

    def put_results(self, results: Iterable[Any], timestamp: int | None, number: int | None = None) -> None:
        """Put out what a function gave; without a number, elements have those of their places."""
        main, copies = self._main, self._copies
        values = main.values
        before = len(values)
        for result in results:
            if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
                tag, value = result
                self._types[tag.tag_id] = kind = tag.type_info
                self._is_typed = self._is_typed or not kind.is_pickled
                self.put_beside(tag.tag_id, value, timestamp, number)
            else:
                values.append(own(result) if copies else result)
        behind = len(values)
        if behind == before:
            return
        main.timestamps.extend(repeat(timestamp, behind - before))
        main.sequence.extend(range(before, behind) if number is None else repeat(number, behind - before))

    def mark(self) -> Mark:
        """How much has come out since the last :meth:`take`."""
        in_main, beside = len(self._main.values), self._beside
        return in_main, {tag: len(output) for tag, output in beside.items()} if beside else {}

    def cut(self, mark: Mark) -> None:
        """Take back what came out after a mark."""
        in_main, beside = mark
        self._main.shorten(in_main)
        for tag, output in self._beside.items():
            output.shorten(beside.get(tag, 0))

    def check_from(self, mark: Mark) -> None:
        """Bring what came out after a mark to the declared types.

        Raises:
            DataError: if a value does not fit; also one that would be found out only when it is sent.
        """
        if self._is_typed:
            in_main, beside = mark
            self._check(None, self._main, in_main)
            for tag, output in self._beside.items():
                self._check(tag, output, beside.get(tag, 0))

    def _check(self, tag: str | None, output: Elements, begin: int) -> None:
        kind = self._types.get(tag)
        if kind is not None and not kind.is_pickled and len(output.values) > begin:
            output.values[begin:] = kind.as_declared(output.values[begin:])

    def take(self) -> dict[str | None, Elements]:
        """Give away what came out since the last call, by side output, brought to the declared types.

        Raises:
            DataError: if a value does not fit the type of its output.
        """
        outputs: dict[str | None, Elements] = {None: self._main} if self._main else {}
        outputs.update(self._beside)
        self._main, self._beside = Elements(), defaultdict(Elements)
        for tag, elements in outputs.items():
            elements.values = as_results(self._operator, elements.values, self._types.get(tag), self._advice)
        return outputs
