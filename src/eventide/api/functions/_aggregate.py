"""The function that aggregates many elements step by step."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic

from eventide.api.functions._basic import Function
from eventide.common.type_variables import ACC, IN_contra, OUT_co


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
