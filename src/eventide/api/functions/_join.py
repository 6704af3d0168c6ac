"""Functions of two elements that belong together, or of two groups of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic

from eventide.api.functions._basic import Function
from eventide.common.type_variables import IN1_contra, IN2_contra, OUT_co

if TYPE_CHECKING:
    from eventide.api.functions.output_tag import Emitted


class JoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Makes one element of two that were joined. Flink: ``JoinFunction``; PyFlink has none.

    >>> class Priced(JoinFunction):
    ...     def join(self, first, second):
    ...         return first["id"], second["price"]
    >>> Priced().join({"id": 7}, {"price": 3})
    (7, 3)
    """

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> OUT_co:
        """Return what an element of the first stream and one of the second make."""


class FlatJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Makes any number of elements of two that were joined. Flink: ``FlatJoinFunction``; PyFlink has none."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> Iterable[OUT_co] | None:
        """Return, or yield, what an element of the first stream and one of the second make."""


class CoGroupFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Makes elements of all that two streams have for a key and window. Flink: ``CoGroupFunction``; PyFlink has none.

    It is called where one of the streams has anything; the other group may be empty.

    >>> class Missing(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         if not second:
    ...             yield from first
    >>> list(Missing().co_group([1, 2], []))
    [1, 2]
    """

    @abstractmethod
    def co_group(self, first: list[IN1_contra], second: list[IN2_contra]) -> Iterable[OUT_co] | None:
        """Return, or yield, what the elements of the first stream and those of the second make."""


class ProcessJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Makes any number of elements of two that an interval join brings together; it sees their times.

    What is put out has the later time of the two. Flink: ``ProcessJoinFunction``; PyFlink has none.
    """

    class Context(ABC):
        """Context of the two elements; times are in milliseconds."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the event time of the left element."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the event time of the right element."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the later one of the two, which is the time of what comes out."""

    @abstractmethod
    def process_element(self, left: IN1_contra, right: IN2_contra, ctx: ProcessJoinFunction.Context) -> Emitted[OUT_co]:
        """Handle two elements; return, or yield, what comes out."""
