"""A program that has changed since its last run: on its checkpoint and through a savepoint it goes on, or is refused.

To go on means that all comes out that would have come out after the first micro-batch if the changed program had run
from the beginning. Each change is a row of the table in the guide.
"""

import re
from copy import deepcopy
from pathlib import Path

import pytest

from eventide.aggregates import max_, sum_
from eventide.common import Duration, Time, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.connectors import FileSource
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor
from eventide.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from eventide.errors import StateError
from eventide.joins import left, right
from eventide.local.host import begun_from, take_savepoint
from eventide.local.runner import LocalRunner
from eventide.plan.identity import check_identity
from eventide.savepoint.fitting import check_fit
from support.changing import (
    ANY,
    INT,
    LONG,
    STRING,
    Adds,
    AddsInPython,
    Counts,
    Highest,
    HighestToo,
    Pairs,
    PairsInPython,
    aggregated,
    beside,
    by_key,
    downstream,
    from_sources,
    in_python,
    joined,
    kept,
    program,
    reduced,
    rolling,
    supplied,
    type_of,
    value,
    windows,
    with_dead_letters,
)
from support.twin import Contents

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "changing-programs.md"

GOES_ON, BEGINS_EMPTY = "goes on", "begins empty"
MISSING, FORM = "is missing in the program", "stored form was"
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3))


def sessions(gap_ms):
    return EventTimeSessionWindows.with_gap(Time.milliseconds(gap_ms))


def pairs(*fields):
    return lambda join: join.select(*fields) if fields else join.process(Pairs())


CHANGES = {
    "an operator is added": (windows(), beside, GOES_ON),
    "an operator is added that makes the graph deeper": (windows(), downstream, "it had 1 stage", GOES_ON),
    "an operator is taken out": (beside, windows(), MISSING),
    "an operator gets another name": (windows(), lambda stream: windows()(stream).name("mine"), GOES_ON),
    "an operator gets a `uid`, another one, or none": (windows(), windows(uid=None), MISSING),
    "another kind of operator gets its `uid`": (
        kept(value()),
        lambda stream: by_key()(stream).sum("v").uid("kept"),
        "keeps was 'the states of its function' and is now 'the aggregate of its elements'",
    ),
    "a function does something else": (
        windows(),
        windows(gives=lambda w: w.process(Counts())),
        GOES_ON,
    ),
    "a reduce function runs in Python, no longer on columns": (reduced(Adds()), reduced(AddsInPython()), GOES_ON),
    "a reduce function runs on columns, no longer in Python": (reduced(AddsInPython()), reduced(Adds()), GOES_ON),
    "a rolling sum becomes a reduce function that adds": (
        rolling(lambda keyed: keyed.sum("v")),
        rolling(lambda keyed: keyed.reduce(AddsInPython())),
        GOES_ON,
    ),
    "a rolling aggregation becomes another one, or one of another field": (
        rolling(lambda keyed: keyed.sum("v")),
        rolling(lambda keyed: keyed.max("v")),
        "aggregates was 'rolling sum of v' and is now 'rolling max of v'",
    ),
    "a key is another field": (
        kept(value(), key=by_key("v", None)),
        kept(value(), key=by_key("w", None)),
        "key fields was 'v' and is now 'w'",
    ),
    "a key selector is another lambda, of another field": (
        windows(key=by_key(lambda row: row["v"], LONG)),
        windows(key=by_key(lambda row: row["w"], LONG)),
        "key fields was 'v' and is now 'w'",
    ),
    "a key selector of a process function becomes plain Python": (
        kept(value()),
        kept(value(), key=by_key(in_python)),
        GOES_ON,
    ),
    "a key selector of aggregates on columns becomes plain Python": (
        aggregated(sum_("v")),
        aggregated(sum_("v"), key=by_key(in_python)),
        "key columns was 'k' and is now 'none'",
    ),
    "a key selector of a join on columns becomes plain Python": (
        joined(pairs(), key=lambda row: row["k"] + "!"),
        joined(pairs(), key=in_python),
        "stored form was 'IntervalColumns' and is now 'keyed state'",
    ),
    "a key selector without a declared type becomes plain Python, before windows of whole elements": (
        windows(key=by_key(kind=None)),
        windows(key=by_key(in_python, None)),
        "its elements were kept on columns, because their key was one of their fields",
    ),
    "a key type becomes wider": (
        kept(value(), key=by_key(lambda row: row["v"], INT)),
        kept(value(), key=by_key(lambda row: row["v"], LONG)),
        "key type was 'INT' and is now 'LONG'",
        GOES_ON,
    ),
    "a key type becomes narrower, or another": (
        kept(value(), key=by_key(lambda row: row["v"], LONG)),
        kept(value(), key=by_key(lambda row: row["v"], ANY)),
        "key type was 'LONG'",
    ),
    "an element gets a field": (
        aggregated(sum_("v")),
        program(aggregated(sum_("v")), type_of(n=STRING)),
        "element type was",
        GOES_ON,
    ),
    "an element loses a field": (
        program(aggregated(sum_("v")), type_of(n=STRING)),
        aggregated(sum_("v")),
        "element type was",
        GOES_ON,
    ),
    "a field becomes wider": (
        program(aggregated(max_("w")), type_of(w=INT)),
        aggregated(max_("w")),
        "element type was",
        GOES_ON,
    ),
    "a field becomes narrower, or of another type": (
        windows(),
        program(windows(), type_of(w=INT)),
        "element type was",
        "INT does not hold all values of LONG",
    ),
    "a state is added": (kept(value()), kept(value(), ListStateDescriptor("more", LONG)), GOES_ON),
    "a state gets another name": (kept(value()), kept(value("other")), BEGINS_EMPTY),
    "a state type becomes wider": (kept(value(kind=INT)), kept(value()), GOES_ON),
    "a state type becomes narrower, or another": (kept(value()), kept(value(kind=INT)), "which is not wider"),
    "a state becomes one of another kind": (
        kept(MapStateDescriptor("seen", LONG, LONG)),
        kept(value(kind=ANY)),
        "the state 'seen' was stored as map state and is now value state",
    ),
    "a state gets a time to live, or loses it": (kept(value()), kept(value(expires=True)), GOES_ON),
    "windows get another size, slide or offset": (windows(), windows(TumblingEventTimeWindows.of(20)), "window was"),
    "windows become windows of another kind": (windows(), windows(SlidingEventTimeWindows.of(10, 5)), "window was"),
    "a session gap changes": (windows(sessions(5)), windows(sessions(50)), "window was"),
    "a trigger changes": (windows(), windows(with_=lambda w: w.trigger(CountTrigger.of(2))), "trigger was"),
    "an evictor changes": (windows(), windows(with_=lambda w: w.evictor(CountEvictor.of(2))), "evictor was"),
    "the allowed lateness changes": (windows(), windows(with_=lambda w: w.allowed_lateness(5)), "lateness was"),
    "late elements go to a side output, or no longer": (
        windows(),
        windows(with_=lambda w: w.side_output_late_data(OutputTag("late", type_of()))),
        GOES_ON,
    ),
    "windows with a function in Python get dead letters, or lose them": (windows(), with_dead_letters, FORM),
    "windows keep whole elements, no longer aggregates, or the other way round": (
        reduced(Adds()),
        windows(),
        "window contents was 'Reduced' and is now 'AllElements'",
    ),
    "a reduce function of windows gets a window function": (
        reduced(Adds()),
        windows(gives=lambda w: w.reduce(Adds(), Contents())),
        GOES_ON,
    ),
    "an aggregate on columns is added, taken out, or another one": (
        aggregated(sum_("v")),
        aggregated(sum_("v"), max_("w")),
        "window contents was",
    ),
    "the bounds of a join change": (joined(pairs()), joined(pairs(), reach=50), "bounds was '-5 ms to 5 ms'"),
    "the inputs of a join change places": (
        joined(pairs()),
        joined(pairs(), swapped=True),
        "its inputs have changed places: they were 'rows' and 'others', and are 'others' and 'rows'",
    ),
    "a join gives fewer fields": (
        joined(pairs(left("v"), right("w"))),
        joined(pairs(left("v"))),
        "kept fields was",
        GOES_ON,
    ),
    "a join gives a field that it did not keep": (
        joined(pairs(left("v"))),
        joined(pairs(left("v"), right("w"))),
        "kept fields was",
        "it has not stored 'w' of its elements",
    ),
    "a join function runs in Python, no longer on columns": (
        joined(pairs()),
        joined(lambda join: join.process(PairsInPython())),
        GOES_ON,
    ),
    "the bound of a strategy changes, or its idleness": (
        windows(),
        program(
            windows(),
            strategy=BOUNDED.with_timestamp_assigner(lambda row, _: row["at"]).with_idleness(Duration.of_days(1)),
        ),
        GOES_ON,
    ),
    "a built-in strategy becomes a generator of yours": (
        windows(),
        program(windows(), strategy=supplied(Highest)),
        "it had 1 stage",
        GOES_ON,
    ),
    "a generator of yours becomes a built-in strategy": (
        program(windows(), strategy=supplied(Highest)),
        windows(),
        "it had 2 stage",
        MISSING,
    ),
    "a generator of yours becomes one of another class": (
        program(windows(), strategy=supplied(Highest)),
        program(windows(), strategy=supplied(HighestToo)),
        "the state of a Highest, but the program uses a HighestToo",
    ),
    "sources come in another order": (
        from_sources("slow", "fast"),
        from_sources("fast", "slow"),
        "source 1: name was 'slow' and is now 'fast'",
        GOES_ON,
    ),
    "a source is added": (
        from_sources("slow", "fast"),
        from_sources("new", "slow", "fast"),
        "it had 2 source(s) and has 3",
        GOES_ON,
    ),
    "a source is taken out": (
        from_sources("slow", "fast"),
        from_sources("fast"),
        "it had 2 source(s) and has 1",
        "the source 'slow' is missing in the program",
    ),
    "a source gets another name": (
        windows(),
        program(windows(), name="others"),
        "source 1: name was",
        "the source 'rows' is missing in the program",
    ),
    "a source becomes one of another kind": (
        windows(),
        program(windows(), source=FileSource.text(str(PAGE.parent)).build()),
        "source 1: element type was",
        "the source 'rows' was a ScriptedSource and is a FileSource",
    ),
    "the parallelism changes": (
        windows(),
        program(windows(), parallelism=3),
        "parallelism was 2 and is now 3",
        GOES_ON,
    ),
    "the max parallelism changes": (
        windows(),
        program(windows(), max_parallelism=64),
        "max parallelism was 128 and is now 64",
        "take the savepoint with --max-parallelism 64",
    ),
    "a setting changes, such as the limit of rows": (windows(), program(windows(), max_rows=1), GOES_ON),
}
"""The program before and after, and the outcome on the checkpoint and through a savepoint; one for both, if alike."""


def outcomes(title):
    """The outcomes of a change on the checkpoint, and through a savepoint."""
    _, _, *found = CHANGES[title]
    return found[0], found[-1]


def programs(title):
    """The program before and after a change."""
    before, now, *_ = CHANGES[title]
    return program(before), program(now)


def first_batch_of(before):
    """A run of a program that has ended after its first micro-batch."""
    runner = LocalRunner(before.plan(), clock=lambda: 0)
    next(batches := runner.batches())
    batches.close()
    return runner


def results(plan, checkpoint, max_rows=None):
    """All that comes out from a checkpoint on."""
    batches = LocalRunner(plan, max_rows, clock=lambda: 0, checkpoint=checkpoint).batches()
    return in_order(batches)


def in_order(batches):
    return sorted((found for batch in batches for rows in batch.elements.values() for found, _ in rows), key=repr)


def check(outcome, now, begin):
    """Hold that a changed program goes on, begins empty, or is refused with a text; ``begin`` gives its checkpoint."""
    if outcome == GOES_ON:
        _, *later = LocalRunner(now.plan(), clock=lambda: 0).batches()
        assert results(now.plan(), begin(now.plan()), now.max_rows) == in_order(later)
    elif outcome == BEGINS_EMPTY:
        assert results(now.plan(), begin(now.plan())) == results(now.without_first().plan(), None)
    else:
        with pytest.raises(StateError, match=re.escape(outcome)):
            results(now.plan(), begin(now.plan()))


@pytest.mark.parametrize("title", CHANGES)
def test_on_its_checkpoint(title):
    before, now = programs(title)
    checkpoint = first_batch_of(before).checkpoint

    def begin(plan):
        check_identity("/there", before.plan().identity(), plan.identity())
        return deepcopy(checkpoint)

    check(outcomes(title)[0], now, begin)


@pytest.mark.parametrize("title", CHANGES)
def test_through_a_savepoint(title, tmp_path):
    before, now = programs(title)
    saved = take_savepoint(before.plan(), first_batch_of(before).checkpoint, str(tmp_path / "saved"))

    def begin(plan):
        check_fit(saved, plan.identity(), plan.operators, allow_non_restored=False)
        return begun_from(saved, plan)

    check(outcomes(title)[1], now, begin)


def test_the_table_of_the_guide_has_these_rows():
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines()]
    shown = {cells[0]: (cells[1], cells[2]) for cells in rows if len(cells) == 4 and cells[0] in CHANGES}
    words = {GOES_ON: GOES_ON, BEGINS_EMPTY: BEGINS_EMPTY}
    assert shown == {title: tuple(words.get(one, "refused") for one in outcomes(title)) for title in CHANGES}
