"""A function that is chained, and may raise for single elements: these become dead letters, and all else goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from eventide.common.typeinfo import TypeInformation
from eventide.runtime.chain.collector import Collector
from eventide.runtime.chain.contexts import ElementContext, Moment
from eventide.runtime.chain.process import Process
from eventide.runtime.chain.steps import Call, Step
from eventide.runtime.chain.waiting import Wait
from eventide.runtime.dead_letters import dead_letter
from eventide.runtime.elements.columns import Batch, as_elements
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ownership import own


class OneByOne(Step, Protocol):
    """A step that can say what comes of a single element."""

    @property
    def during(self) -> str:
        """What it does with an element, in words."""

    @property
    def type_info(self) -> TypeInformation | None:
        """The type that was declared for what comes out; None where nothing was, or elements stay as they are."""

    def caller(self, values: list[Any]) -> Call:
        """What is called with each of these elements, in their order."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A step whose bad elements go to the side output ``dead_letters``: of each, all comes out or nothing."""

    step: OneByOne
    dead_letters: str
    takes_columns: bool = False

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.step.name

    @property
    def user_function(self) -> Any:
        """What the user wrote, to be opened and closed."""
        return self.step.user_function

    def sort_out(self, batch: Batch, moment: Moment) -> tuple[dict[str | None, Elements], Elements]:
        """What comes of the good elements, by side output, and a letter for each of the others."""
        step, elements, letters = self.step, as_elements(batch), Elements()
        has_side_outputs = isinstance(step, Process)
        context, out = ElementContext(moment), Collector(step.name, step.type_info)
        at_hand = _AtHand(elements, at_once=isinstance(step, Wait))
        call = step.caller(elements.values)
        is_typed = has_side_outputs or (step.type_info is not None and not step.type_info.is_pickled)
        for value, context.time_ms, number in zip(at_hand, elements.timestamps, elements.sequence, strict=True):
            before = out.mark() if is_typed else None
            try:
                results = call(value, context)
                if has_side_outputs:
                    out.put_results(results, context.time_ms, number)
                else:
                    out.put_values(results, context.time_ms, number)
                if before is not None:
                    out.check_from(before)
            except Exception as error:
                if before is not None:
                    out.cut(before)
                element, time_ms = at_hand.as_it_was(), context.time_ms
                letter = dead_letter(step.name, step.during, error, element=element, timestamp=time_ms)
                letters.append(letter, time_ms, number)
        return out.take(), letters

    def apply(self, batch: Batch) -> Elements:
        """The elements that come out of the main output."""
        outputs, _ = self.sort_out(batch, Moment())
        return outputs.get(None, Elements())


class _AtHand:
    """Elements one by one, each of which can be had as it was before a function had it.

    Args:
        elements: the elements.
        at_once: whether the function has all of them before the first is asked for.
    """

    def __init__(self, elements: Elements, *, at_once: bool) -> None:
        self._elements = elements
        self._columns = elements.columns
        self._at = -1
        self._copy: Any = None
        self._copies: Iterable[Any] = map(own, elements.values)
        if at_once and self._columns is None:
            self._copies = [*self._copies]

    def __iter__(self) -> Iterator[Any]:
        if self._columns is not None:
            for value in self._elements.values:
                self._at += 1
                yield value
        else:
            for value, copied in zip(self._elements.values, self._copies, strict=True):
                self._copy = copied
                yield value

    def as_it_was(self) -> Any:
        """The element that was given last."""
        if self._columns is None:
            return self._copy
        return self._columns.slice(self._at, 1).to_elements().values[0]
