"""The side output of an operator for what it cannot handle, and the one guard of all functions that may raise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from eventide.runtime.chain.collector import Collector, Mark
from eventide.runtime.dead_letters import dead_letter
from eventide.runtime.invoke import is_of_the_data
from eventide.runtime.metrics import DEAD_LETTERS, Metrics
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.transaction import TransactionalState


class DeadLetterOutput:
    """Puts the dead letters of an operator out beside its results, and counts them.

    Args:
        operator: the operator's name.
        tag: the side output.
        out: where the results go.
        metrics: what counts the letters.
        keyed: the state of the operator; where it has transactions, what fails is rolled back.
    """

    def __init__(
        self, operator: str, tag: str, out: Collector, metrics: Metrics, keyed: KeyedState | None = None
    ) -> None:
        self._operator = operator
        self._tag = tag
        self._out = out
        self._metrics = metrics
        self._state = keyed if isinstance(keyed, TransactionalState) else None

    def attempt(
        self, act: Callable[..., object], *args: Any, during: str, time_ms: int | None, key: Any = None, **what: Any
    ) -> bool:
        """Do something as a whole, or put out its dead letter, whose fields are given; say whether it was done.

        Raises:
            Exception: what was raised, if it is none of the data's.
        """
        before = self._out.mark()
        transaction = None if self._state is None else self._state.begin(key)
        try:
            act(*args)
            self._out.check_from(before)
        except Exception as error:
            if transaction is not None:
                transaction.rollback()
            if not is_of_the_data(error):
                raise
            self.put(before, during, error, time_ms, key=key, **what)
            return False
        if transaction is not None:
            transaction.commit()
        return True

    def put_results(
        self, call: Callable[..., Iterable[Any] | None], *args: Any, time_ms: int | None, **what: Any
    ) -> None:
        """Put out what a function gives, at a time, or its dead letter."""
        self.attempt(self._put_results, call, args, time_ms, time_ms=time_ms, **what)

    def put(
        self, before: Mark, during: str, error: Exception, time_ms: int | None, number: int | None = None, **what: Any
    ) -> None:
        """Put out a dead letter in place of all that came out after a mark.

        Raises:
            EventideError: if the error is none of the data's.
        """
        letter = dead_letter(self._operator, during, error, timestamp=time_ms, **what)
        self._out.cut(before)
        self._out.put_letter(self._tag, letter, time_ms, number)
        self._metrics.count(self._operator, DEAD_LETTERS)

    def _put_results(
        self, call: Callable[..., Iterable[Any] | None], args: tuple[Any, ...], time_ms: int | None
    ) -> None:
        results = call(*args)
        if results is not None:
            self._out.put_results(results, time_ms)
