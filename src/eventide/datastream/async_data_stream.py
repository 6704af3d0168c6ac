"""Streams whose elements wait for another system, many at a time."""

from __future__ import annotations

from functools import partial

from eventide._absent import hand_out_names
from eventide.api.functions import AsyncFunction, AsyncRetryStrategy
from eventide.common.ms import to_ms, to_positive_ms
from eventide.common.time import Duration, Time
from eventide.common.type_variables import IN, OUT
from eventide.common.typeinfo import TypeInformation, Types
from eventide.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from eventide.datastream.data_stream import DataStream
from eventide.errors import ProgramError, check_is
from eventide.plan.graph import FunctionTransformation
from eventide.runtime.chain.waiting import AsyncWaitOperator

__all__ = ["AsyncDataStream"]


class AsyncDataStream:
    """Applies an `AsyncFunction` to a stream. Flink: ``AsyncDataStream``.

    The elements of a task that are in one batch wait together, at most ``capacity`` at a time; a micro-batch waits for
    all of its elements, so no call is under way when state is stored. Results are in the order of their elements, with
    their timestamps, for both methods: a micro-batch that is repeated gives the same results.

    ``timeout`` is how long all attempts of an element may take together; with a single attempt, 0 means no limit. All
    methods raise ProgramError for invalid arguments.
    """

    @staticmethod
    def ordered_wait(
        data_stream: DataStream[IN],
        async_function: AsyncFunction[IN, OUT],
        timeout: Time | Duration,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Wait for each element, ``capacity`` of them at a time."""
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream[IN],
        async_function: AsyncFunction[IN, OUT],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy[OUT],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Wait for each element, with further attempts as a strategy says."""
        check_is(async_function, AsyncFunction, "waiting for elements needs an AsyncFunction")
        check_is(async_retry_strategy, AsyncRetryStrategy, "further attempts need an AsyncRetryStrategy")
        what, has_retries = "timeout of an element", async_retry_strategy is not NO_RETRY_STRATEGY
        timeout_ms = to_positive_ms(timeout, what) if has_retries else to_ms(timeout, what, least=0)
        if not isinstance(capacity, int) or capacity < 1:
            raise ProgramError(f"the capacity must be at least one element at a time, and is {capacity!r}")
        kind = partial(
            AsyncWaitOperator,
            timeout_s=timeout_ms / 1_000 or None,
            strategy=async_retry_strategy,
            capacity=capacity,
            type_info=output_type or Types.PICKLED_BYTE_ARRAY(),
        )
        call, source = async_function.async_invoke, data_stream._transformation
        node = FunctionTransformation("async wait", source, kind, call, async_function, output_type)
        return DataStream(data_stream.get_execution_environment(), node)

    unordered_wait = ordered_wait
    unordered_wait_with_retry = ordered_wait_with_retry


hand_out_names(__name__)
