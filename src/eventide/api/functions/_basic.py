"""Functions of one element, of two elements, and of the contents of a window; and their common base.

``RuntimeContext`` says where a function runs, and how it reaches its state.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from eventide.api.keyed_state import (
    AggregatingState,
    KeyedStateStore,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
    VectorizedMapState,
    VectorizedValueState,
)
from eventide.common.type_variables import (
    ACC,
    IN,
    OUT,
    IN1_contra,
    IN2_contra,
    IN_contra,
    K,
    KEY_co,
    KEY_contra,
    OUT_co,
    T,
    T_contra,
    V,
    W_co,
    W_contra,
)
from eventide.errors import ProgramError
from eventide.metrics import MetricGroup

if TYPE_CHECKING:
    from eventide.api.functions.output_tag import Emitted


_F = TypeVar("_F")


class Function(ABC):
    """The base of all user functions. A function is pickled and sent to the workers.

    One subtask uses one object: `open` first, then the elements, one by one, then `close`.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Prepare for work; called once before the first element of a subtask in a worker."""

    def close(self) -> None:
        """Release what `open` took; called once after the last element.

        Spark does not call it, because it ends its workers without notice: write data that must not be lost to a sink.
        """


class MapFunction(Function, Generic[IN_contra, OUT_co]):
    """Maps each element to one result.

    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return 2 * value
    >>> Double().map(21)
    42
    """

    @abstractmethod
    def map(self, value: IN_contra) -> OUT_co:
        """Return the result for `value`."""


class FilterFunction(Function, Generic[T_contra]):
    """Keeps some elements and drops the others."""

    @abstractmethod
    def filter(self, value: T_contra) -> bool:
        """Say whether `value` stays."""


class FlatMapFunction(Function, Generic[IN_contra, OUT_co]):
    """Maps each element to any number of results.

    >>> class Words(FlatMapFunction):
    ...     def flat_map(self, value):
    ...         yield from value.split()
    >>> list(Words().flat_map("to be"))
    ['to', 'be']
    """

    @abstractmethod
    def flat_map(self, value: IN_contra) -> Iterable[OUT_co] | None:
        """Return, or yield, the results for `value`."""


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

    A window calls it with its value so far and the next element, in the order of arrival: a fold from the left.
    Windows that merge, such as sessions, call it with the values of both, as in Flink.

    Attributes:
        is_associative: Set True if ``reduce(reduce(a, b), c)`` equals ``reduce(a, reduce(b, c))`` for all elements,
            such as for a sum of integers or the later of two: then the parts of a window may be reduced one by one
            before they meet, in their order, which is several times as fast. Set False if it does not, such as for
            ``a + 1``, a count of the calls. With None, the default, it is treated as True if its code shows that it
            adds up whole numbers, or the like, and as False otherwise. Declare a function that is not a class with
            `associative` or `not_associative`.

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
            raise ProgramError(f"expected a ReduceFunction or a function of two values, got {function!r}")
        return _CallableReduce(function)


class _CallableReduce(ReduceFunction[T]):
    """A plain function, which hides the method, to save one call for each pair of elements."""

    def __init__(self, function: Callable[[T, T], T]) -> None:
        self.__dict__.update(reduce=function, __wrapped__=function)

    def reduce(self, value1: T, value2: T) -> T:
        return self(value1, value2)

    def __call__(self, value1: T, value2: T) -> T:
        function: Callable[[T, T], T] = self.__dict__["reduce"]
        return function(value1, value2)


def associative(function: ReduceFunction[T] | Callable[[T, T], T]) -> ReduceFunction[T]:
    """Return a function as a `ReduceFunction` that is declared associative; a decorator too.

    It is if ``f(f(a, b), c)`` equals ``f(a, f(b, c))`` for all elements. Then windows may reduce before the shuffle.
    This is not checked; without it, results depend on how elements happen to be distributed.

    Raises:
        ProgramError: `function` is not a function of two values; of a class, set ``is_associative = True`` in it.

    >>> total = associative(lambda a, b: a + b)
    >>> total.reduce(40, 2), total.is_associative
    (42, True)
    """
    return _saying(function, is_associative=True)


def not_associative(function: ReduceFunction[T] | Callable[[T, T], T]) -> ReduceFunction[T]:
    """Return a function as a `ReduceFunction` that is declared not associative; a decorator too.

    Windows then never reduce before the shuffle.

    Raises:
        ProgramError: `function` is not a function of two values; of a class, set ``is_associative = False`` in it.

    >>> calls = not_associative(lambda count, _: count + 1)
    >>> calls.reduce(40, 2), calls.is_associative
    (41, False)
    """
    return _saying(function, is_associative=False)


def _saying(function: ReduceFunction[T] | Callable[[T, T], T], *, is_associative: bool) -> ReduceFunction[T]:
    if isinstance(function, type):
        raise ProgramError(
            f"expected a function of two values, got the class {function!r}; set is_associative in the class"
        )
    saying = copy.copy(ReduceFunction.of(function))
    saying.is_associative = is_associative
    return saying


def in_python(function: _F) -> _F:
    """Return a function that Python calls with each element, and that never runs on columns; a decorator too.

    Without it, a plain function on elements that come as columns, such as those of files, is traced, and runs on whole
    columns if that gives exactly the same results. Not in PyFlink. `ExecutionConfig.set_functions_in_python` does it
    for all functions of a program.

    Args:
        function: a function, or an object with the method that eventide calls, or a class of such objects.

    >>> half = in_python(lambda event: event["value"] / 2)
    >>> half({"value": 3})
    1.5
    """
    marked: Any
    if isinstance(function, FunctionType):
        marked = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        marked.__kwdefaults__ = function.__kwdefaults__
        marked = update_wrapper(marked, function)
        del marked.__wrapped__
    elif isinstance(function, _CallableReduce):
        marked, inner = copy.copy(function), in_python(function.__dict__["reduce"])
        marked.__dict__.update(reduce=inner, __wrapped__=inner)
    elif isinstance(function, type) and issubclass(function, Function):
        marked = function
    elif hasattr(function, "__dict__") and not isinstance(function, type | MethodType):
        marked = copy.copy(function)
    elif callable(function):  # and cannot be marked
        marked = partial(function)
    else:
        return function  # an expression, or something that the method which is given it refuses
    marked.runs_in_python = True
    return cast("_F", marked)


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
        """Return a new accumulator, without elements."""

    @abstractmethod
    def add(self, value: IN_contra, accumulator: ACC) -> ACC:
        """Return the accumulator with `value` added; it may be `accumulator` itself, changed."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT_co:
        """Return the result; the accumulator may still grow afterwards."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """Return two accumulators merged into one; called when windows merge. Either may be changed and returned."""


class JoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Maps two joined elements to one result. Flink: ``JoinFunction``; PyFlink has none.

    >>> class Priced(JoinFunction):
    ...     def join(self, first, second):
    ...         return first["id"], second["price"]
    >>> Priced().join({"id": 7}, {"price": 3})
    (7, 3)
    """

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> OUT_co:
        """Return the result for an element of the first stream and one of the second."""


class FlatJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Maps two joined elements to any number of results. Flink: ``FlatJoinFunction``; PyFlink has none."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> Iterable[OUT_co] | None:
        """Return, or yield, the results for an element of the first stream and one of the second."""


class CoGroupFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Maps all elements of two streams for a key and window to results. Flink: ``CoGroupFunction``; PyFlink has none.

    It is called if at least one of the streams has elements; the other group may be empty.

    >>> class Missing(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         if not second:
    ...             yield from first
    >>> list(Missing().co_group([1, 2], []))
    [1, 2]
    """

    @abstractmethod
    def co_group(self, first: list[IN1_contra], second: list[IN2_contra]) -> Iterable[OUT_co] | None:
        """Return, or yield, the results for the elements of the first stream and those of the second."""


class ProcessJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Maps two elements that an interval join pairs to any number of results; it sees their times.

    Results have the later of the two times. Flink: ``ProcessJoinFunction``; PyFlink has none.
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
            """Return the later one of the two, which is the time of the results."""

    @abstractmethod
    def process_element(self, left: IN1_contra, right: IN2_contra, ctx: ProcessJoinFunction.Context) -> Emitted[OUT_co]:
        """Handle two elements; return, or yield, the results."""


class WindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Maps the contents of a key's window to results."""

    @abstractmethod
    def apply(self, key: KEY_contra, window: W_contra, inputs: Iterable[IN_contra]) -> Emitted[OUT_co]:
        """Return, or yield, the results of a window that fires; each gets the window's last millisecond as its time.

        Args:
            key: The key.
            window: The window.
            inputs: Its elements, in the order of arrival; only the aggregate, after ``reduce`` or ``aggregate``.
        """


class AllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Maps the contents of a window over a stream without keys to results."""

    @abstractmethod
    def apply(self, window: W_contra, inputs: Iterable[IN_contra]) -> Emitted[OUT_co]:
        """Return, or yield, the results of a window that fires; see `WindowFunction.apply`."""


class ProcessWindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Maps the contents of a key's window to results, with access to times and state.

    >>> class Count(ProcessWindowFunction):
    ...     def process(self, key, context, elements):
    ...         yield key, context.window().start, len(list(elements))
    """

    class Context(ABC, Generic[W_co]):
        """The window that fires, the times at which it does, and state. All times are in milliseconds."""

        @abstractmethod
        def window(self) -> W_co:
            """Return the window."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the time of the current micro-batch, in milliseconds since the epoch (UTC)."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the current watermark of the operator."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """Return the state of this key in this window; the function's ``clear`` must delete it."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """Return the state of this key in all windows together."""

    @abstractmethod
    def process(self, key: KEY_contra, context: Context[W_contra], elements: Iterable[IN_contra]) -> Emitted[OUT_co]:
        """Return, or yield, the results of a window that fires; each gets the window's last millisecond as its time.

        Args:
            key: The key.
            context: The window, the watermark and state.
            elements: Its elements, in the order of arrival; only the aggregate, after ``reduce`` or ``aggregate``.
        """

    def clear(self, context: Context[W_contra]) -> None:
        """Delete the function's own state of a window that closes, its ``window_state()``."""


class ProcessAllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Maps the contents of a window over a stream without keys to results, with access to times and state.

    Its `Context` has the times too, unlike PyFlink's.
    """

    class Context(ProcessWindowFunction.Context[W_co]):
        """The window that fires, the times at which it does, and state. All times are in milliseconds."""

    @abstractmethod
    def process(self, context: Context[W_contra], elements: Iterable[IN_contra]) -> Emitted[OUT_co]:
        """Return, or yield, the results of a window that fires; see `ProcessWindowFunction.process`."""

    def clear(self, context: Context[W_contra]) -> None:
        """Delete the function's own state of a window that closes, its ``window_state()``."""


@dataclass(frozen=True)
class RuntimeContext(KeyedStateStore):
    """The place where a function runs: the operator and the subtask; and, on a keyed stream, its state.

    Attributes:
        task_name: The name of the operator.
        parallelism: The number of its subtasks.
        index: The number of this subtask, from 0.
        job_parameters: The parameters that the job was started with, as text.
        max_parallelism: The number of key groups.
        state: The store of the function's state; None on a stream without keys.
        metrics: The group of metrics of the function.

    >>> context = RuntimeContext("orders", parallelism=4, index=1, job_parameters={"currency": "EUR"})
    >>> context.get_job_parameter("currency", "USD"), context.get_job_parameter("country", "DE")
    ('EUR', 'DE')
    """

    task_name: str
    parallelism: int
    index: int
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    max_parallelism: int = 1
    state: KeyedStateStore | None = None
    metrics: MetricGroup = field(default_factory=MetricGroup)

    def get_task_name(self) -> str:
        """Return the name of the operator."""
        return self.task_name

    def get_task_name_with_subtasks(self) -> str:
        """Return the name with the number of the subtask, counted from 1 as Flink does, such as ``orders (2/4)``."""
        return f"{self.task_name} ({self.index + 1}/{self.parallelism})"

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the number of subtasks of the operator."""
        return self.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the number of key groups, which is the greatest number of subtasks the operator may have."""
        return self.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return the number of this subtask, from 0."""
        return self.index

    def get_attempt_number(self) -> int:
        """Return 0: Spark repeats a task without telling it how often."""
        return 0

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return the parameter of the job, or `default_value` if it was not given."""
        return self.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """Return the group of the operator, in which the function makes its metrics when it is opened.

        >>> from eventide.api.functions import MapFunction
        >>> class Parse(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.bad = runtime_context.get_metrics_group().counter("bad")
        ...     def map(self, value):
        ...         if not value.isdigit():
        ...             self.bad.inc()
        ...             return None
        ...         return int(value)
        >>> from eventide.testing import local_environment
        >>> env = local_environment()
        >>> _ = env.from_collection(["1", "x", "3"]).map(Parse()).name("parse").print()
        >>> result = env.execute()
        1
        None
        3
        >>> result.metrics["parse"]
        {'bad': 1}
        """
        return self.metrics

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return the state that holds one value, always that of the current key."""
        return self._states(state_descriptor).get_state(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        return self._states(state_descriptor).get_list_state(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        return self._states(state_descriptor).get_map_state(state_descriptor)

    def get_reducing_state(self, state_descriptor: StateDescriptor[ReducingState[T]]) -> ReducingState[T]:
        return self._states(state_descriptor).get_reducing_state(state_descriptor)

    def get_aggregating_state(
        self, state_descriptor: StateDescriptor[AggregatingState[IN, OUT]]
    ) -> AggregatingState[IN, OUT]:
        return self._states(state_descriptor).get_aggregating_state(state_descriptor)

    def get_vectorized_state(self, state_descriptor: ValueStateDescriptor) -> VectorizedValueState:
        return self._states(state_descriptor).get_vectorized_state(state_descriptor)

    def get_vectorized_map_state(self, state_descriptor: MapStateDescriptor) -> VectorizedMapState:
        return self._states(state_descriptor).get_vectorized_map_state(state_descriptor)

    def _states(self, descriptor: StateDescriptor) -> KeyedStateStore:
        if self.state is None:
            raise ProgramError(
                f"the state {descriptor.name!r} belongs to a key, and {self.task_name!r} has none; "
                "call key_by(...) before"
            )
        return self.state
