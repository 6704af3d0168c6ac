"""Functions of one element or two, and what all functions have in common."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic

from eventide.common.type_variables import ACC, IN_contra, KEY_co, KEY_contra, OUT_co, T, T_contra
from eventide.errors import ProgramError

if TYPE_CHECKING:
    from eventide.api.functions._context import RuntimeContext


class Function(ABC):
    """The base of all functions of a user. A function is pickled and sent to the workers.

    One subtask uses one object: `open` first, then the elements, one by one, then `close`.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Prepare for work; called once before the first element of a subtask in a worker."""

    def close(self) -> None:
        """Release what `open` took; called once after the last element.

        Not on Spark, which ends its workers without notice: what must not be lost belongs into a sink, not here.
        """


class MapFunction(Function, Generic[IN_contra, OUT_co]):
    """Turns each element into one other.

    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return 2 * value
    >>> Double().map(21)
    42
    """

    @abstractmethod
    def map(self, value: IN_contra) -> OUT_co:
        """Return the element that takes the place of `value`."""


class FilterFunction(Function, Generic[T_contra]):
    """Keeps some elements and drops the others."""

    @abstractmethod
    def filter(self, value: T_contra) -> bool:
        """Say whether `value` stays."""


class FlatMapFunction(Function, Generic[IN_contra, OUT_co]):
    """Turns each element into any number of others.

    >>> class Words(FlatMapFunction):
    ...     def flat_map(self, value):
    ...         yield from value.split()
    >>> list(Words().flat_map("to be"))
    ['to', 'be']
    """

    @abstractmethod
    def flat_map(self, value: IN_contra) -> Iterable[OUT_co] | None:
        """Return, or yield, the elements that take the place of `value`."""


class KeySelector(Function, Generic[IN_contra, KEY_co]):
    """Finds the key of an element. Equal keys meet in one subtask, so the answer must not change."""

    @abstractmethod
    def get_key(self, value: IN_contra) -> KEY_co:
        """Return the key of `value`; it must be hashable."""


class Partitioner(Function, Generic[KEY_contra]):
    """Says which subtask has the elements of a key: for `partition_custom`."""

    @abstractmethod
    def partition(self, key: KEY_contra, num_partitions: int) -> int:
        """Return the number of a subtask, from 0, below `num_partitions`."""


class ReduceFunction(Function, Generic[T]):
    """Combines two elements into one of the same kind.

    A window calls it with what it has so far and the next element, in the order of arrival: a fold from the left.
    Windows that merge, such as sessions, call it with what each of the two has, as in Flink.

    Attributes:
        is_associative: Say True where ``reduce(reduce(a, b), c)`` equals ``reduce(a, reduce(b, c))`` for all elements,
            such as for a sum of integers or the later of two: then the parts of a window may be reduced each by itself
            before they meet, in their order, which is several times as fast. Say False where it does not, such as for
            ``a + 1``, a count of the calls. None, the default, says nothing, and is treated as False. A function that
            is no class says it with `associative` or `not_associative`.

    >>> class Sum(ReduceFunction):
    ...     def reduce(self, value1, value2):
    ...         return value1 + value2
    >>> Sum().reduce(40, 2)
    42
    """

    is_associative: bool | None = None

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Return `value1`, the result so far, and `value2`, the newer element, in one."""

    @staticmethod
    def of(function: ReduceFunction[T] | Callable[[T, T], T]) -> ReduceFunction[T]:
        """Return a plain function of two values as a `ReduceFunction`, and a `ReduceFunction` as it is.

        Raises:
            ProgramError: `function` is neither.

        >>> ReduceFunction.of(max).reduce(40, 2)
        40
        """
        if isinstance(function, ReduceFunction):
            return function
        if not callable(function):
            message = f"expected a ReduceFunction or a function of two values, got {function!r}"
            raise ProgramError(message)
        return _CallableReduce(function)


class _CallableReduce(ReduceFunction[T]):
    """A plain function, which stands before the method: one call for each pair of elements is saved."""

    def __init__(self, function: Callable[[T, T], T]) -> None:
        self.__dict__.update(reduce=function, __wrapped__=function)

    def reduce(self, value1: T, value2: T) -> T:
        return self(value1, value2)

    def __call__(self, value1: T, value2: T) -> T:
        function: Callable[[T, T], T] = self.__dict__["reduce"]
        return function(value1, value2)


def associative(function: ReduceFunction[T] | Callable[[T, T], T]) -> ReduceFunction[T]:
    """Return a function as a `ReduceFunction` that says of itself that it is associative; a decorator too.

    It is if ``f(f(a, b), c)`` equals ``f(a, f(b, c))`` for all elements. Then windows may reduce before the shuffle.
    That is not checked; for a function that is not, results depend on how elements happen to be dealt out.

    Raises:
        ProgramError: `function` is no function of two values; of a class, set ``is_associative = True`` in it.

    >>> total = associative(lambda a, b: a + b)
    >>> total.reduce(40, 2), total.is_associative
    (42, True)
    """
    return _saying(function, is_associative=True)


def not_associative(function: ReduceFunction[T] | Callable[[T, T], T]) -> ReduceFunction[T]:
    """Return a function as a `ReduceFunction` that says of itself that it is not associative; a decorator too.

    Windows then never reduce before the shuffle, as they do not where nothing is said.

    Raises:
        ProgramError: `function` is no function of two values; of a class, set ``is_associative = False`` in it.

    >>> calls = not_associative(lambda count, _: count + 1)
    >>> calls.reduce(40, 2), calls.is_associative
    (41, False)
    """
    return _saying(function, is_associative=False)


def _saying(function: ReduceFunction[T] | Callable[[T, T], T], *, is_associative: bool) -> ReduceFunction[T]:
    if isinstance(function, type):
        message = f"expected a function of two values, got the class {function!r}; set is_associative in the class"
        raise ProgramError(message)
    saying = copy.copy(ReduceFunction.of(function))
    saying.is_associative = is_associative
    return saying


class AggregateFunction(Function, Generic[IN_contra, ACC, OUT_co]):
    """Aggregates elements into an accumulator, and an accumulator into a result.

    More general than a `ReduceFunction`: elements, accumulator and result may be of three different types.

    >>> class Mean(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return (0, 0)
    ...     def add(self, value, accumulator):
    ...         return (accumulator[0] + value, accumulator[1] + 1)
    ...     def get_result(self, accumulator):
    ...         return accumulator[0] / accumulator[1]
    ...     def merge(self, acc_a, acc_b):
    ...         return (acc_a[0] + acc_b[0], acc_a[1] + acc_b[1])
    >>> mean = Mean()
    >>> mean.get_result(mean.add(2, mean.add(1, mean.create_accumulator())))
    1.5
    """

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """Return a new accumulator, of no elements."""

    @abstractmethod
    def add(self, value: IN_contra, accumulator: ACC) -> ACC:
        """Return the accumulator with `value` added; it may be `accumulator` itself, changed."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT_co:
        """Return the result; the accumulator may still grow afterwards."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """Return two accumulators in one; called when windows merge. Either may be changed and returned."""
