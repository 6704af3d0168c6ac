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
        self,
        act: Callable[..., Iterable[Any] | None],
        args: tuple[Any, ...],
        during: str,
        time_ms: int | None,
        key: Any = None,
        *,
        element: Any = None,
        window: Any = None,
    ) -> bool:
        """Do something as a whole, with the results that it gives, or put out its dead letter.

        Args:
            act: the function to call; its results are put out.
            args: its arguments.
            during: its work, in words.
            time_ms: the time of the results, and of the letter.
            key: the key at hand.
            element: the element of the letter, as it was.
            window: the window at hand.

        Returns:
            whether it was done.

        Raises:
            Exception: what the function raised, if the data is not to blame.
        """
        out, state = self._out, self._state
        before = out.mark()
        if state is not None:
            state.begin(key)
        try:
            results = act(*args)
            if results is not None:
                out.put_results(results, time_ms)
            out.check_from(before)
        except Exception as error:
            if state is not None:
                state.rollback()
            if not is_of_the_data(error):
                raise
            self.put(before, during, error, time_ms, key=key, element=element, window=window)
            return False
        if state is not None:
            state.commit()
        return True

    def put(
        self, before: Mark, during: str, error: Exception, time_ms: int | None, number: int | None = None, **what: Any
    ) -> None:
        """Put out a dead letter in place of all that came out after a mark.

        Raises:
            EventideError: if the data is not to blame for the error.
        """
        letter = dead_letter(self._operator, during, error, timestamp=time_ms, **what)
        self._out.cut(before)
        self._out.put_letter(self._tag, letter, time_ms, number)
        self._metrics.count(self._operator, DEAD_LETTERS)
