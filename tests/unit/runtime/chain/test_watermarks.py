"""Generators of the user's at work: kept from micro-batch to micro-batch, and named when something is wrong."""

import pickle
import threading

import pyarrow as pa
import pytest

from eventide.api.functions.timestamps import older_strategy
from eventide.common import Row, Types, VectorizedWatermarkGenerator, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.common.watermark_generators import TimeLagWatermarks
from eventide.common.watermark_strategy import TimestampAssigner
from eventide.datastream.functions import AssignerWithPeriodicWatermarks
from eventide.errors import DataError, ProgramError, StateError, UserFunctionError
from eventide.runtime.chain.timestamps import AssignTimestamps
from eventide.runtime.chain.watermarks import Generators
from eventide.runtime.elements.elements import Elements
from eventide.runtime.exchange.frames import END_OF_BATCH, WatermarkReport
from eventide.runtime.state.backend import MemoryBackend


class Counts(WatermarkGenerator):
    """The watermark is the number of elements so far."""

    def __init__(self):
        self.seen = 0

    def on_event(self, event, event_timestamp, output):
        self.seen += 1
        if event == "idle":
            output.mark_idle()

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.seen))


def step(supplier):
    return AssignTimestamps("times", 1, WatermarkStrategy.for_generator(supplier))


def elements(*values):
    return Elements(list(values), [0] * len(values), list(range(len(values))))


def batch(backend, *values, supplier=Counts, clock_ms=0, name="s"):
    """The reports of one generator in a micro-batch."""
    generators = Generators(backend, clock_ms)
    run = generators.run(name, step(supplier), "s", is_split=True)
    if values:
        run.see(elements(*values))
    run.end_batch(is_asked=True)
    generators.flush()
    return run.reports()


def said(reports):
    return [report.watermark for report in reports if report.watermark is not None]


def test_what_a_generator_remembers_is_there_in_the_next_batch_and_each_has_its_own():
    backend = MemoryBackend()
    assert said(batch(backend, "a", "b")) == [2]
    assert said(batch(backend, "c", name="t")) == [1]
    assert said(batch(backend, "d")) == [3]


def test_its_last_watermark_and_that_it_is_idle_are_there_too():
    backend = MemoryBackend()
    batch(backend, "a", "b")
    ((_, kept),) = [pickle.loads(stored) for stored in backend.values.values()]
    assert kept["s"][1:3] == (2, False)

    class Idle(Counts):
        def on_periodic_emit(self, output):
            pass

    backend = MemoryBackend()
    assert batch(backend, "idle", supplier=Idle)[0] == WatermarkReport("s", 0, idle=True, spoke=True)
    assert batch(backend, "idle", supplier=Idle) == [WatermarkReport("s", END_OF_BATCH, spoke=True)], (
        "it is idle already"
    )


def test_a_generator_that_is_forgotten_begins_anew():
    backend = MemoryBackend()
    batch(backend, "a", "b")
    generators = Generators(backend, 0)
    generators.run("s", step(Counts), "s", is_split=True)
    generators.forget("s")
    generators.flush()
    assert said(batch(backend, "c")) == [1]


def test_a_task_without_generators_stores_nothing():
    backend = MemoryBackend()
    Generators(backend, 0).flush()
    assert backend.values == {}


def test_all_generators_of_a_task_share_one_context_after_a_restart_too():
    class KeepsContext(Counts):
        def __init__(self, context):
            self.context = context

    backend, supplier = MemoryBackend(), KeepsContext
    for clock_ms in (5, 7):
        generators = Generators(backend, clock_ms)
        runs = [generators.run(name, step(supplier), name, is_split=True) for name in ("s", "t")]
        one, other = (run.generator.context for run in runs)
        assert one is other
        assert one.get_current_processing_time() == clock_ms
        generators.flush()


def test_watermarks_that_trail_the_clock_need_no_elements():
    backend = MemoryBackend()
    found = [
        said(batch(backend, supplier=lambda context: TimeLagWatermarks(100, context), clock_ms=ms))
        for ms in (1_000, 1_000, 1_050)
    ]
    assert found == [[900], [900], [950]]


def test_one_that_gives_timestamps_too_does_so_with_what_it_remembers():
    class Both(Counts, TimestampAssigner):
        def extract_timestamp(self, value, record_timestamp):
            return 100 + self.seen

    backend = MemoryBackend()
    for expected in (100, 101):
        generators = Generators(backend, 0)
        run = generators.run("s", step(Both), "s", is_split=True)
        timed = run.operator.sort_out(elements("a"))[0]
        assert timed.timestamps == [expected]
        run.see(timed)
        generators.flush()


class SeesBatches(VectorizedWatermarkGenerator):
    def __init__(self):
        self.seen = []

    def on_batch(self, events, timestamps, output):
        self.seen.append((type(events), events.to_pylist(), timestamps.to_pylist()))

    def on_event(self, event, event_timestamp, output):
        self.seen.append((event, event_timestamp))

    def on_periodic_emit(self, output):
        pass


ROW = Types.ROW_NAMED(["n"], [Types.LONG()])


@pytest.mark.parametrize(
    ("type_info", "value", "expected"),
    [(ROW, Row(n=5), (pa.RecordBatch, [{"n": 5}], [7])), (Types.LONG(), 5, (pa.Int64Array, [5], [7]))],
    ids=["rows", "plain values"],
)
def test_a_vectorised_generator_sees_columns_wherever_there_are_any(type_info, value, expected):
    run = Generators(MemoryBackend(), 0).run("s", step(SeesBatches), "s", is_split=True)
    columns = Elements(columns=Elements([value], [7], [0]).as_columns(type_info))
    run.see(columns)
    run.see(columns)
    run.see(Elements([value], [7], [0]))
    assert run.generator.seen == [expected, expected, (value, 7)]


def test_a_vectorised_generator_that_names_columns_is_shown_these_alone():
    class SeesOne(SeesBatches):
        columns = ("m",)

    class SeesAnother(SeesBatches):
        columns = ("x", "m")

    pair = Types.ROW_NAMED(["n", "m"], [Types.LONG(), Types.LONG()])
    columns = Elements(columns=Elements([Row(n=5, m=6)], [7], [0]).as_columns(pair))
    run = Generators(MemoryBackend(), 0).run("s", step(SeesOne), "s", is_split=True)
    run.see(columns)
    assert run.generator.seen == [(pa.RecordBatch, [{"m": 6}], [7])]
    with pytest.raises(ProgramError, match="columns name 'x', and the elements have the fields n, m"):
        Generators(MemoryBackend(), 0).run("s", step(SeesAnother), "s", is_split=True).see(columns)


def raising(where):
    def fail(*_):
        raise ValueError("no")

    methods = {"on_event": Counts.on_event, "on_periodic_emit": Counts.on_periodic_emit, where: fail}
    return type("Raising", (WatermarkGenerator,), {"seen": 0, **methods})


@pytest.mark.parametrize(
    ("supplier", "expected"),
    [
        (raising("on_event"), r"'times', while it handled an element \(element 'a'\)(.|\n)*ValueError: no"),
        (raising("on_periodic_emit"), r"'times', when the watermark generator was asked at the end(.|\n)*ValueError"),
        (raising("__init__"), r"'times', when its watermark generator was made(.|\n)*ValueError: no"),
        (raising("__getstate__"), r"'times', when its watermark generator was made(.|\n)*ValueError: no"),
    ],
    ids=["on_event", "on_periodic_emit", "made", "looked at"],
)
def test_a_generator_that_raises_is_named_with_what_it_was_doing(supplier, expected):
    with pytest.raises(UserFunctionError, match=expected):
        batch(MemoryBackend(), "a", supplier=supplier)


def test_what_a_generator_has_learnt_must_pickle():
    class Locks(Counts):
        def on_event(self, event, event_timestamp, output):
            self.lock = threading.Lock()

    with pytest.raises(UserFunctionError, match=r"when the watermark generators were stored(.|\n)*cannot pickle"):
        batch(MemoryBackend(), "a", supplier=Locks)


class Trails(WatermarkGenerator):
    """Trails the largest element by a bound, and lets nothing else be known of itself than that element."""

    def __init__(self, bound):
        self.bound, self.highest = bound, 0

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest - self.bound))


class Explicit(Trails):
    def snapshot_state(self):
        return self.highest

    def restore_state(self, state):
        self.highest = state


@pytest.mark.parametrize("kind", [Trails, Explicit])
def test_a_changed_parameter_takes_effect_and_what_was_learnt_stays(kind):
    backend = MemoryBackend()
    assert said(batch(backend, 50, supplier=lambda: kind(10))) == [40]
    assert said(batch(backend, 30, supplier=lambda: kind(3))) == [47], "the highest is 50 still"
    assert said(batch(backend, 52, supplier=lambda: kind(9))) == [47], "a watermark never goes back"
    assert said(batch(backend, 60, supplier=lambda: kind(9))) == [51]


class Trailing(AssignerWithPeriodicWatermarks):
    """An assigner of Flink's older kind that does as `Trails`."""

    def __init__(self, bound):
        self.bound, self.highest = bound, 0

    def extract_timestamp(self, value, record_timestamp):
        self.highest = max(self.highest, value)
        return value

    def get_current_watermark(self):
        return Watermark(self.highest - self.bound)


def test_one_that_remembers_when_it_was_made_does_so():
    class Patient(Counts):
        def __init__(self, context):
            self.context, self.last_ms = context, context.get_current_processing_time()

        def on_event(self, event, event_timestamp, output):
            self.last_ms = self.context.get_current_processing_time()

        def on_periodic_emit(self, output):
            output.emit_watermark(Watermark(self.context.get_current_processing_time() - self.last_ms))

    backend = MemoryBackend()
    waited = [batch(backend, supplier=Patient, clock_ms=ms) for ms in (1_000, 1_400, 2_000)]
    assert [said(reports)[0] for reports in waited] == [0, 400, 1_000]
    batch(backend, "a", supplier=Patient, clock_ms=3_000)
    assert said(batch(backend, supplier=Patient, clock_ms=5_000)) == [2_000]


def test_so_it_does_in_an_older_assigner():
    backend = MemoryBackend()
    for value, bound, expected in [(50, 10, [40]), (30, 3, [47]), (52, 9, [47]), (60, 9, [51])]:
        strategy, _ = older_strategy(Trailing(bound))
        generators = Generators(backend, 0)
        run = generators.run("s", AssignTimestamps("times", 1, strategy), "s", is_split=True)
        run.see(run.operator.sort_out(elements(value))[0])
        run.end_batch(is_asked=True)
        generators.flush()
        assert said(run.reports()) == expected


def test_another_class_of_generators_does_not_fit_what_was_learnt():
    backend = MemoryBackend()
    batch(backend, 50, supplier=lambda: Trails(10))
    with pytest.raises(
        StateError, match=r"'times', when .* stores the state of a Trails, but the program uses a Counts"
    ):
        batch(backend, "a")
    with pytest.raises(StateError, match=r"the state of a Trails, but the program uses a Explicit with snap"):
        batch(backend, 50, supplier=lambda: Explicit(10))


def test_a_vectorised_generator_that_raises_is_named_too():
    class Raises(SeesBatches):
        def on_batch(self, events, timestamps, output):
            output.emit_watermarks([5], [1])

    run = Generators(MemoryBackend(), 0).run("s", step(Raises), "s", is_split=True)
    with pytest.raises(UserFunctionError, match=r"'times', when the watermark generator looked at a batch(.|\n)*Index"):
        run.see(Elements(columns=Elements([1], [7], [0]).as_columns(Types.LONG())))


def test_a_supplier_that_makes_something_else_is_named():
    with pytest.raises(
        ProgramError, match=r"'times', when its .* was made: .*<lambda> returned 5, which is not a Waterm"
    ):
        batch(MemoryBackend(), supplier=lambda: 5)


def test_what_is_emitted_and_is_no_watermark_is_refused_with_the_element():
    class Emits(Counts):
        def on_event(self, event, event_timestamp, output):
            output.emit_watermark(event_timestamp)

    with pytest.raises(DataError, match=r"'times', while it handled an element \(element 'a'\): emit_watermark takes"):
        batch(MemoryBackend(), "a", supplier=Emits)
