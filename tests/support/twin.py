"""Helpers for tests of whole programs without Spark: plans, runs of the twin, and small programs."""

from copy import deepcopy
from tempfile import TemporaryDirectory

from eventide.common import WatermarkStrategy
from eventide.datastream import ProcessWindowFunction, RuntimeExecutionMode
from eventide.datastream.connectors import CollectSink
from eventide.datastream.functions import ProcessAllWindowFunction
from eventide.local.host import begun_from, take_savepoint
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.plan.compiler import compile_plan
from eventide.plan.graph import SinkTransformation
from eventide.savepoint.fitting import check_fit

BY_SECOND_FIELD = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])


class Contents(ProcessWindowFunction):
    """Gives (key, start, end, elements)."""

    def process(self, key, context, elements):
        yield key, context.window().start, context.window().end, list(elements)


class AllContents(ProcessAllWindowFunction):
    """Gives (start, end, elements)."""

    def process(self, context, elements):
        yield context.window().start, context.window().end, list(elements)


class Values(ProcessWindowFunction):
    """Gives (key, elements), for windows that have no start."""

    def process(self, key, context, elements):
        yield key, list(elements)


def timed(env, elements):
    """A stream of elements whose second field is their time."""
    return env.from_collection(elements).assign_timestamps_and_watermarks(BY_SECOND_FIELD)


def plan_of(*streams, parallelism=2, max_parallelism=128, mode=RuntimeExecutionMode.STREAMING):
    """The plan of a program whose sinks collect these streams."""
    sinks = [SinkTransformation("collect", stream._transformation, CollectSink()) for stream in streams]
    return compile_plan(sinks, parallelism, max_parallelism, mode)


def run(plan, max_rows=None):
    """The results of each micro-batch: the elements with their timestamps of each sink, in the order of the sinks."""
    return [by_sink(plan, batch) for batch in runner(plan, max_rows=max_rows).batches()]


def runner(plan, max_rows=None, checkpoint=None):
    """A local run whose clock stands still."""
    return LocalRunner(plan, max_rows, clock=lambda: 0, checkpoint=checkpoint)


def by_sink(plan, batch):
    """The elements with their timestamps of each sink."""
    return [batch.elements.get(sink.number, []) for sink in plan.sinks]


def run_with_restarts(plan, every, max_rows=None):
    """As `run`, but a new runner goes on from a copy of the checkpoint after every `every` micro-batches."""
    checkpoint, results = LocalCheckpoint(), []
    while True:
        one = runner(plan, max_rows, deepcopy(checkpoint))
        for batch in one.batches():
            results.append(by_sink(plan, batch))
            if len(results) % every == 0:
                break
        else:
            return results
        checkpoint = one.checkpoint


def run_with_cuts(plans, cuts):
    """The results of each micro-batch of a job that goes on as the next of some programs at each cut.

    A cut is the number of micro-batches before it, and whether the next program begins with a savepoint, and not with a
    copy of the checkpoint.
    """
    checkpoint, results = LocalCheckpoint(), []
    with TemporaryDirectory() as directory:
        for number, (plan, cut) in enumerate(zip(plans, [*cuts, None], strict=True)):
            one = runner(plan, checkpoint=checkpoint)
            for batch in one.batches():
                results.append(by_sink(plan, batch))
                if cut is not None and len(results) == cut[0]:
                    break
            else:
                return results
            checkpoint = deepcopy(one.checkpoint)
            if cut[1]:
                savepoint = take_savepoint(plan, one.checkpoint, f"{directory}/{number}")
                after = plans[number + 1]
                check_fit(savepoint, after.identity(), after.operators, allow_non_restored=False)
                checkpoint = begun_from(savepoint, after)
    return results


def values(results, sink=0):
    """All values of one sink, without timestamps, over all micro-batches."""
    return [value for batch in results for value, _ in batch[sink]]
