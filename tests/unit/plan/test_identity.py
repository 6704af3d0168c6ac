"""Parts of a program that may not change while a checkpoint is in use, in words; and a plan in words."""

from copy import deepcopy
from functools import partial

import pytest

from eventide.common import Types, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.functions import associative
from eventide.datastream.window import CountTrigger, SlidingEventTimeWindows, TimeEvictor, TumblingEventTimeWindows
from eventide.errors import ProgramError, StateError
from eventide.local.runner import LocalCheckpoint
from eventide.plan.description import explain
from eventide.plan.identity import check_identity, name_of
from eventide.runtime.state.operators import differences
from eventide.runtime.window.operation import described
from eventide.testing import ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, Contents, plan_of, runner, timed

TENS = TumblingEventTimeWindows.of(10)


class Plain:
    """Has no repr of its own."""


def program(
    change=lambda windowed: windowed, assigner=TENS, uid=None, parallelism=2, max_parallelism=128, type_info=None
):
    stream = (
        local_environment().from_collection([("a", 1)], type_info).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    )
    result = change(stream.key_by(lambda e: e[0]).window(assigner)).process(Contents())
    if uid is not None:
        result.uid(uid)
    return plan_of(result, parallelism=parallelism, max_parallelism=max_parallelism)


def test_differences_are_told_in_words_in_order():
    assert differences({"b": "1", "a": "2", "c": "3"}, {"b": "4", "c": "3", "d": "5"}) == [
        "a was '2' and is now None",
        "b was '1' and is now '4'",
        "d was None and is now '5'",
    ]


def test_objects_are_described_alike_in_every_process():
    assert described(Plain()) == "Plain"
    assert "0x" not in described(lambda: 1)
    assert described(TENS) == repr(TENS)


def test_the_same_program_has_the_same_identity():
    assert program().identity() == program().identity()


CHANGES = {
    "window was": {"assigner": TumblingEventTimeWindows.of(20)},
    "which has 'SlidingEventTimeWindows.process'": {"assigner": SlidingEventTimeWindows.of(10, 5)},
    "trigger was": {"change": lambda w: w.trigger(CountTrigger.of(2))},
    "evictor was 'None' and is now 'TimeEvictor": {"change": lambda w: w.evictor(TimeEvictor.of(2))},
    "allowed lateness was '0 ms' and is now '5 ms'": {"change": lambda w: w.allowed_lateness(5)},
    "is missing in the program": {"uid": "mine"},
    "parallelism was 2 and is now 3": {"parallelism": 3},
    "max parallelism was 128 and is now 64": {"max_parallelism": 64},
    "element type was": {"type_info": Types.TUPLE([Types.STRING(), Types.INT()])},
}


@pytest.mark.parametrize("said", CHANGES)
def test_a_program_that_does_not_fit_a_checkpoint_is_refused_with_every_change(said):
    with pytest.raises(StateError, match=r"the program does not fit .*new checkpoint location") as raised:
        check_identity("/there", program().identity(), program(**CHANGES[said]).identity())
    assert said in str(raised.value)


def grown(*, sink=False, function=False, first=False, name=None, deeper=False):
    """Windows in a program that has more around them."""
    env = local_environment()
    source = timed(env, [("a", 1)])
    streams = []
    if first:
        streams.append(source.window_all(SlidingEventTimeWindows.of(10, 5)).reduce(lambda a, b: a))
    mapped = source.map(lambda e: e).filter(bool) if function else source
    result = mapped.key_by(lambda e: e[0]).window(TENS).process(Contents())
    if name is not None:
        result.name(name)
    streams.append(result)
    if sink:
        streams.append(result.map(lambda e: e[0]))
    if deeper:
        streams.append(result.window_all(TENS).reduce(lambda a, b: a))
    return plan_of(*streams)


@pytest.mark.parametrize(
    "more", [{"sink": True}, {"function": True}, {"first": True}, {"name": "mine"}], ids=lambda more: str(*more)
)
def test_what_is_added_around_an_operator_moves_no_state(more):
    before, now = grown().identity(), grown(**more).identity()
    check_identity("/there", before, now)
    assert set(before["operators"]) <= set(now["operators"])


def test_operators_that_go_and_stages_that_come_are_refused():
    before = grown(first=True).identity()
    with pytest.raises(StateError, match=r"operator 'SlidingEventTimeWindows.reduce' \(id '\w+'\) is missing"):
        check_identity("/there", before, grown().identity())
    with pytest.raises(StateError, match=r"it had 1 stage\(s\) of operators and has 2"):
        check_identity("/there", before, grown(first=True, deeper=True).identity())


def test_a_checkpoint_of_another_format_is_refused():
    with pytest.raises(StateError, match="format 0, and this version of eventide reads the formats 3 and 4"):
        check_identity("/there", grown().identity() | {"format": 0}, grown().identity())


def test_operators_that_are_alike_keep_their_ids_in_the_order_in_which_they_were_made():
    source = timed(local_environment(), [("a", 1)])
    one, two = (source.window_all(TENS).reduce(lambda a, b: a) for _ in range(2))
    first, second = plan_of(one, two).operators
    assert first.id != second.id
    assert [operator.id for operator in plan_of(one).operators] == [first.id]


def add(a, b):
    return (a[0], a[1] + b[1])


def larger(a, b):
    return max(a, b)


def by_name(element):
    return element[0]


class MyCount(CountTrigger):
    """A user-defined trigger."""


OTHERS = {
    "another size": lambda s: s.key_by(by_name).window(TumblingEventTimeWindows.of(20)).reduce(add),
    "another function": lambda s: s.key_by(by_name).window(TENS).reduce(larger),
    "another key": lambda s: s.key_by(lambda e: e[1]).window(TENS).reduce(add),
    "another lateness": lambda s: s.key_by(by_name).window(TENS).allowed_lateness(5).reduce(add),
    "another trigger": lambda s: s.key_by(by_name).window(TENS).trigger(CountTrigger.of(2)).reduce(add),
    "another trigger class": lambda s: s.key_by(by_name).window(TENS).trigger(MyCount.of(2)).reduce(add),
    "a function on top": lambda s: s.key_by(by_name).window(TENS).reduce(add, Contents()),
}


@pytest.mark.parametrize("other", OTHERS)
def test_an_operator_that_is_made_before_another_unlike_it_does_not_take_its_state(other):
    def plan(*before):
        source = timed(local_environment(), [("a", 1)])
        others = [OTHERS[name](source) for name in before]
        return plan_of(source.key_by(by_name).window(TENS).reduce(add).name("sums"), *others)

    before, now = plan().identity(), plan(other).identity()
    check_identity("/there", before, now)
    (operator,) = before["operators"]
    assert now["operators"][operator]["name"] == "sums"


def sums(*uids):
    """As many windows that differ in their lambdas alone."""
    source = timed(local_environment(), [("a", 1)])
    windows = [source.window_all(TENS).reduce(lambda a, b: a) for _ in uids]
    for window, uid in zip(windows, uids, strict=True):
        window._transformation.uid = uid
    return plan_of(*windows).identity()


@pytest.mark.parametrize(("before", "now"), [(1, 2), (2, 3), (2, 1)])
def test_another_number_of_operators_that_are_alike_is_refused_until_each_has_a_uid(before, now):
    found = sums(*[None] * before)
    ids = list(found["operators"])
    with pytest.raises(StateError, match="cannot tell which state belongs to which operator") as raised:
        check_identity("/there", found, sums(*[None] * now))
    assert all(f"uid({operator!r})" in str(raised.value) for operator in ids)
    assert "'TumblingEventTimeWindows.reduce'" in str(raised.value)
    check_identity("/there", found, sums(*ids, "new"))


def test_an_operator_without_a_uid_beside_one_whose_uid_is_its_id_is_refused():
    (operator,) = sums(None)["operators"]
    with pytest.raises(ProgramError, match=f"two operators have the uid '{operator}'"):
        sums(operator, None)


def test_functions_of_an_operator_with_a_uid_may_be_renamed():
    def identity(function):
        source = timed(local_environment(), [("a", 1)])
        return plan_of(source.window_all(TENS).reduce(function).uid("mine")).identity()

    check_identity("/there", identity(add), identity(larger))


class Anything:
    """Has every attribute that it is asked for."""

    def __getattr__(self, name):
        return self

    def __call__(self, *values):
        return values


def test_functions_have_names_that_are_the_same_in_every_process():
    assert [name_of(one) for one in (add, partial(add, 1), Anything(), Plain, associative(add))] == [
        "add",
        "add",
        "Anything",
        "Plain",
        "add",
    ]
    assert name_of(Contents().process) == "Contents.process"


def test_a_renamed_function_is_told_where_its_operator_is_missing():
    def identity(function):
        return plan_of(timed(local_environment(), [("a", 1)]).window_all(TENS).reduce(function)).identity()

    with pytest.raises(StateError, match=r"instead: functions was 'add' and is now 'larger'"):
        check_identity("/there", identity(add), identity(larger))


def test_two_operators_of_one_uid_are_refused():
    source = timed(local_environment(), [("a", 1)])
    one, two = (source.window_all(TENS).reduce(lambda a, b: a).uid("mine") for _ in range(2))
    with pytest.raises(ProgramError, match=r"two operators have the uid 'mine'"):
        plan_of(one, two)


def test_a_stage_refuses_the_state_of_another_program():
    source = ScriptedSource(["s"], [[("s", ("a", 1))], [("s", ("a", 2))]])

    def plan(lateness):
        stream = local_environment().from_source(source, BY_SECOND_FIELD, "script").key_by(lambda e: e[0])
        return plan_of(stream.window(TENS).allowed_lateness(lateness).process(Contents()))

    first = runner(plan(0), checkpoint=LocalCheckpoint())
    next(first.batches())
    with pytest.raises(
        StateError,
        match=(
            r"does not fit the state of its checkpoint: the operator 'TumblingEventTimeWindows.process' \(id '\w+'\) "
            r"is missing .* instead: allowed lateness was '0 ms' and is now '5 ms'"
        ),
    ):
        list(runner(plan(5), checkpoint=deepcopy(first.checkpoint)).batches())


def test_a_plan_says_what_runs_where_and_how_elements_travel():
    env = local_environment()
    typed = env.from_collection(
        [("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])
    ).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    late = OutputTag("late")
    result = (
        typed.key_by(lambda e: e[0], Types.STRING())
        .window(TENS)
        .allowed_lateness(5)
        .side_output_late_data(late)
        .process(Contents())
        .uid("w")
    )
    first = lambda w: w[0]  # noqa: E731 - a lambda shows as such
    line, of_contents = (function.__code__.co_firstlineno for function in (first, Contents.process))
    text = explain(plan_of(result.map(first), result.get_side_output(late)))
    assert text.splitlines() == [
        "Source 'collection': CollectionSource, bounded, 1 split(s): collection",
        "  timestamps and watermarks: monotonous timestamps, timestamps from function <lambda>; on columns, where its "
        "elements come so",
        "    -> operator 1: by key (STRING), TUPLE(STRING, INT) as Arrow columns",
        "Stage 1: one shuffle, 1 operator(s)",
        "Operator 1 'TumblingEventTimeWindows.process': element by element when a window fires, on columns until then, "
        f"because Contents (line {of_contents} of twin.py) is Python; aggregate(sum_('…'), …) of eventide.aggregates "
        "would run on columns, 2 subtask(s)",
        "  windows    TumblingEventTimeWindows(size=10, offset=0)",
        "  trigger    EventTimeTrigger()",
        "  late       allowed lateness 5 ms, later than that to side output 'late'",
        "  state      AllElements in Arrow columns per key and window",
        "  stored as  'w'",
        f"  map: in Python, because the type of its elements is not declared (line {line} of test_identity.py)",
        "    -> sink 'collect': PICKLED_BYTE_ARRAY as pickled objects (declare output_type to send columns)",
        "  side output 'late'",
        "    -> sink 'collect-2': TUPLE(STRING, INT) as Arrow columns",
        "Sink 'collect': CollectSink(), elements of type PICKLED_BYTE_ARRAY",
        "Sink 'collect-2': CollectSink(), elements of type TUPLE(STRING, INT)",
    ]


def test_the_environment_and_a_stream_explain_themselves(capsys):
    env = local_environment()
    stream = timed(env, [("a", 1)]).window_all(TENS).reduce(lambda a, b: a)
    stream.explain()
    stream.print("out")
    env.explain()
    text = capsys.readouterr().out
    assert "late       allowed lateness 0 ms, later than that dropped and counted" in text
    assert "Sink 'print': PrintSink(identifier='out')" in text


class Mine(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        pass

    def on_periodic_emit(self, output):
        pass


class Yours(Mine):
    pass


def generated(generator, behind=None):
    """A window of a source with a user-defined generator, and one after it with another."""
    source = ScriptedSource(["s", "t"], [], Types.ROW_NAMED(["key", "at"], [Types.STRING(), Types.LONG()]))
    strategy = WatermarkStrategy.for_generator(generator).with_idleness(500).with_timestamp_assigner("at")
    stream = local_environment().from_source(source, strategy, "script").key_by("key").window(TENS).process(Contents())
    if behind is not None:
        built_in = isinstance(behind, WatermarkStrategy)
        strategy = behind if built_in else WatermarkStrategy.for_generator(behind)
        again = stream.assign_timestamps_and_watermarks(strategy)
        stream = again.window_all(TENS).reduce(lambda a, b: a)
    return plan_of(stream)


def test_the_generators_of_splits_have_tasks_of_their_own_and_the_plan_says_so():
    plan = generated(Mine)
    assert explain(plan).splitlines()[:11] == [
        "Source 'script': ScriptedSource, bounded, 2 split(s): s, t",
        "  timestamps and watermarks: watermarks of Mine, idle after 500 ms, timestamps from column 'at'",
        "    -> operator 1: timestamps as Arrow columns, for the generator",
        "    -> operator 2: by key (STRING), ROW(key: STRING, at: LONG) as Arrow columns",
        "Stage 1: one shuffle, 1 operator(s)",
        "Operator 1 'timestamps and watermarks': the watermarks of each split, by a generator of its own, 2 subtask(s)",
        "  state      the generator of each split",
        f"  stored as  {plan.operators[0].id!r}",
        "  timestamps and watermarks: watermarks of Mine, timestamps of the source",
        "    -> operator 2: watermarks alone",
        "Stage 2: one shuffle, 1 operator(s)",
    ]


def test_a_generator_after_a_window_works_in_the_tasks_of_the_window():
    assert [stage.name for stage in generated(Mine, Yours).operators] == [
        "timestamps and watermarks",
        "TumblingEventTimeWindows.process",
        "TumblingEventTimeWindows.reduce",
    ]
    lines = explain(generated(Mine, Yours)).splitlines()
    mine, yours = (next(n for n, line in enumerate(lines) if said in line) for said in ("of Mine,", "of Yours,"))
    assert [line.split()[1] for line in lines[:yours] if line.startswith("Operator")] == ["1", "2"]
    assert mine < lines.index("  trigger    EventTimeTrigger()") < yours


def test_another_number_of_generators_does_not_fit_the_checkpoint():
    now = generated(Mine, WatermarkStrategy.for_monotonous_timestamps())
    with pytest.raises(StateError, match=r"watermark generators was '\w+' and is now None"):
        check_identity("/there", generated(Mine, Yours).identity(), now.identity())


def test_how_generators_are_made_may_change():
    check_identity("/there", generated(Mine, Yours).identity(), generated(partial(Mine), partial(Yours)).identity())


def test_a_checkpoint_remembers_sinks_and_goes_on_with_others():
    def identity(uid):
        env = local_environment()
        timed(env, [("a", 1)]).window_all(TENS).reduce(lambda a, b: a).print("out").uid(uid).name("console")
        return env.get_plan().identity()

    assert identity("mine")["sinks"] == [{"name": "console", "uid": "mine"}]
    check_identity("/there", identity("mine"), identity("yours"))
