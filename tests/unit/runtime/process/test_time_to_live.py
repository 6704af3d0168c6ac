"""State that expires: when it is seen, what counts as use, and that it leaves the checkpoint."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, ProcessWindowFunction
from eventide.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from eventide.datastream.window import CountTumblingWindowAssigner
from eventide.errors import ProgramError
from eventide.local.runner import LocalCheckpoint
from eventide.testing import ScriptedSource, local_environment
from support.twin import plan_of, runner

TTL_MS = 10


def ttl(*, on_read=False, shows_expired=False, until_read=False):
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS))
    if on_read:
        builder = builder.update_ttl_on_read_and_write()
    if shows_expired:
        builder = builder.return_expired_if_not_cleaned_up()
    if until_read:
        builder = builder.disable_cleanup_in_background()
    return builder.build()


def expiring(descriptor, **options):
    descriptor.enable_time_to_live(ttl(**options))
    return descriptor


class Does(KeyedProcessFunction):
    """Does with its state what an element says, and emits what it finds."""

    def __init__(self, descriptor, actions):
        self.descriptor = descriptor
        self.actions = actions

    def open(self, runtime_context):
        self.state = self.descriptor.bind(runtime_context)

    def process_element(self, value, ctx):
        _, action, argument = value
        result = self.actions[action](self.state, argument)
        if result is not None:
            yield result[0]


VALUE = {
    "set": lambda state, n: state.update(n),
    "get": lambda state, _: (state.value(),),
}
LIST = {"add": lambda state, n: state.add(n), "get": lambda state, _: (list(state),)}
MAP = {
    "put": lambda state, n: state.put(n, -n),
    "get": lambda state, n: (state.get(n),),
    "has": lambda state, n: (state.contains(n),),
    "items": lambda state, _: (dict(state.items()),),
}
REDUCING = {"add": lambda state, n: state.add(n), "get": lambda state, _: (state.get(),)}


def play(descriptor, actions, script, checkpoint=None):
    """Play micro-batches, each at a time by the clock: the results of each, and the stored state at the end."""
    batches = [[("s", action) for action in actions_of_batch] for _, actions_of_batch in script]
    source = local_environment().from_source(ScriptedSource(["s"], batches), WatermarkStrategy.no_watermarks(), "s")
    stream = source.key_by(lambda action: action[0]).process(Does(descriptor, actions)).uid("does")
    plan = plan_of(stream, parallelism=1)
    checkpoint = checkpoint or LocalCheckpoint()
    local = runner(plan, checkpoint=checkpoint)
    out = []
    times = iter([*(time_ms for time_ms, _ in script), script[-1][0]])
    local._clock = lambda: now[0]
    now = [script[0][0]]
    run = local.batches()
    for time_ms in times:
        now[0] = time_ms
        batch = next(run, None)
        if batch is None:
            break
        out.append([value for rows in batch.elements.values() for value, _ in rows])
    return out[: len(script)], checkpoint


def stored(checkpoint):
    """The names of the rows that are stored."""
    return [name for values in checkpoint.state.values() for name in values if "extent/" in name]


LONG = Types.LONG()


def test_a_value_is_gone_when_its_time_is_over():
    script = [(0, [("a", "set", 7)]), (9, [("a", "get", 0)]), (10, [("a", "get", 0)])]
    out, _ = play(expiring(ValueStateDescriptor("v", LONG)), VALUE, script)
    assert out == [[], [7], [None]]


def test_reading_counts_as_use_where_it_is_said():
    script = [(0, [("a", "set", 7)]), (9, [("a", "get", 0)]), (18, [("a", "get", 0)])]
    assert play(expiring(ValueStateDescriptor("v", LONG)), VALUE, script)[0][2] == [None]
    assert play(expiring(ValueStateDescriptor("v", LONG), on_read=True), VALUE, script)[0][2] == [7]


def test_what_has_expired_is_seen_once_where_it_may():
    script = [(0, [("a", "set", 7)]), (15, [("a", "get", 0), ("a", "get", 0)])]
    out, _ = play(expiring(ValueStateDescriptor("v", LONG), shows_expired=True), VALUE, script)
    assert out == [[], [7, None]]


def test_elements_of_a_list_expire_one_by_one():
    script = [(0, [("a", "add", 1)]), (5, [("a", "add", 2)]), (12, [("a", "get", 0)]), (20, [("a", "get", 0)])]
    assert play(expiring(ListStateDescriptor("l", LONG)), LIST, script)[0][2:] == [[[2]], [[]]]


def test_entries_of_a_map_expire_one_by_one():
    descriptor = expiring(MapStateDescriptor("m", LONG, LONG))
    script = [
        (0, [("a", "put", 1)]),
        (5, [("a", "put", 2)]),
        (12, [("a", "get", 1), ("a", "has", 1), ("a", "has", 2), ("a", "items", 0)]),
    ]
    assert play(descriptor, MAP, script)[0][2] == [None, False, True, {2: -2}]


def test_a_reduced_value_expires():
    descriptor = expiring(ReducingStateDescriptor("r", lambda a, b: a + b, LONG))
    script = [(0, [("a", "add", 1)]), (5, [("a", "add", 2)]), (14, [("a", "get", 0)]), (15, [("a", "get", 0)])]
    assert play(descriptor, REDUCING, script)[0][2:] == [[3], [None]]


def test_what_has_expired_leaves_the_checkpoint_though_its_key_is_not_touched():
    keys = [(f"key {number}", "set", number) for number in range(12_000)]
    descriptor = expiring(ValueStateDescriptor("v", LONG))
    _, before = play(descriptor, VALUE, [(0, keys)])
    _, after = play(descriptor, VALUE, [(0, keys), (5, [("other", "set", 1)]), (12, [("third", "set", 1)])])
    assert len(stored(before)) > 5
    assert len(stored(after)) <= 2
    _, gone = play(descriptor, VALUE, [(0, keys), (12, [("other", "get", 1)])])
    assert stored(gone) == []


def test_without_clean_up_in_the_background_expired_state_stays_until_it_is_read():
    script = [(0, [("a", "set", 7), ("b", "set", 8)]), (20, [("other", "get", 0)])]
    for options in ({}, {"until_read": True}):
        stays = bool(options)
        out, checkpoint = play(expiring(ValueStateDescriptor("v", LONG), shows_expired=True, **options), VALUE, script)
        assert bool(stored(checkpoint)) == stays
        checkpoint.offsets = {}
        reading = expiring(ValueStateDescriptor("v", LONG), shows_expired=True, until_read=True)
        out, _ = play(reading, VALUE, [(30, [("a", "get", 0), ("a", "get", 0)])], checkpoint)
        assert out == [[7 if stays else None, None]]


def test_a_full_snapshot_cleans_up_too():
    config = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS)).disable_cleanup_in_background()
    descriptor = ValueStateDescriptor("v", LONG)
    descriptor.enable_time_to_live(config.cleanup_full_snapshot().build())
    _, checkpoint = play(descriptor, VALUE, [(0, [("a", "set", 7)]), (20, [("other", "get", 0)])])
    assert stored(checkpoint) == []


def test_a_time_to_live_may_come_and_go_with_the_program():
    plain, timed = ValueStateDescriptor("v", LONG), expiring(ValueStateDescriptor("v", LONG))
    checkpoint = LocalCheckpoint()
    play(plain, VALUE, [(0, [("a", "set", 7)])], checkpoint)
    checkpoint.offsets = {}
    out, _ = play(timed, VALUE, [(100, [("a", "get", 0)]), (105, [("a", "get", 0)])], checkpoint)
    assert out == [[7], [7]]
    checkpoint.offsets = {}
    assert play(plain, VALUE, [(108, [("a", "get", 0)])], checkpoint)[0] == [[7]]
    checkpoint.offsets = {}
    assert play(plain, VALUE, [(10_000, [("a", "get", 0)])], checkpoint)[0] == [[7]]


@pytest.mark.parametrize(
    ("descriptor", "actions", "action", "expected"),
    [
        (ValueStateDescriptor, VALUE, "set", 7),
        (ListStateDescriptor, LIST, "add", [7]),
    ],
)
def test_without_a_time_to_live_in_a_later_program_state_stays_of_keys_that_it_does_not_touch(
    descriptor, actions, action, expected
):
    checkpoint = LocalCheckpoint()
    play(expiring(descriptor("v", LONG)), actions, [(0, [("a", action, 7), ("b", action, 7)])], checkpoint)
    for time_ms in (5, 500, 1_000):
        checkpoint.offsets = {}
        play(descriptor("v", LONG), actions, [(time_ms, [("b", "get", 0)])], checkpoint)
    checkpoint.offsets = {}
    keys = [("a", "get", 0), ("b", "get", 0)]
    assert play(descriptor("v", LONG), actions, [(2_000, keys)], checkpoint)[0] == [[expected, expected]]


def test_an_entry_that_is_read_is_kept_with_the_time_to_live_that_the_program_has_now():
    checkpoint, longer = LocalCheckpoint(), MapStateDescriptor("m", LONG, LONG)
    play(expiring(MapStateDescriptor("m", LONG, LONG), on_read=True), MAP, [(0, [("a", "put", 1)])], checkpoint)
    checkpoint.offsets = {}
    config = StateTtlConfig.new_builder(Time.milliseconds(10 * TTL_MS)).update_ttl_on_read_and_write()
    longer.enable_time_to_live(config.build())
    script = [(5, [("a", "get", 1)]), (20, [("other", "get", 1)]), (50, [("a", "get", 1)])]
    assert play(longer, MAP, script, checkpoint)[0] == [[-1], [None], [-1]]


def test_global_state_of_a_window_function_expires_and_state_of_a_window_does_not():
    class Counts(ProcessWindowFunction):
        def __init__(self, of_window):
            self.of_window = of_window

        def process(self, key, context, elements):
            store = context.window_state() if self.of_window else context.global_state()
            state = store.get_state(expiring(ValueStateDescriptor("n", LONG)))
            state.update((state.value() or 0) + 1)
            yield state.value()

    def run(*, of_window):
        stream = local_environment().from_collection([1, 2]).key_by(lambda _: 0)
        return list(stream.window(CountTumblingWindowAssigner.of(1)).process(Counts(of_window)).execute_and_collect())

    assert run(of_window=False) == [1, 2]
    with pytest.raises(ProgramError, match="the state 'n' of a window or trigger goes with its window"):
        run(of_window=True)


@pytest.mark.parametrize("what", [0, -5, Duration.of_millis(0)])
def test_a_time_to_live_is_positive(what):
    with pytest.raises(ProgramError, match="time to live: expected more than 0 ms"):
        StateTtlConfig.new_builder(what)


def test_all_options_of_pyflink_are_taken():
    config = (
        StateTtlConfig.new_builder(Time.seconds(1))
        .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
        .set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .cleanup_in_rocksdb_compact_filter(1000)
        .disable_cleanup_in_background()
        .set_ttl(Time.seconds(2))
        .build()
    )
    strategies = config.get_cleanup_strategies()
    assert config.get_ttl() == Time.seconds(2)
    assert strategies.in_full_snapshot()
    assert not strategies.is_cleanup_in_background()
    assert strategies.get_incremental_cleanup_strategy().get_cleanup_size() == 10
    assert strategies.get_rocksdb_compact_filter_cleanup_strategy().get_query_time_after_num_entries() == 1000
    disabled = ValueStateDescriptor("v", LONG)
    disabled.enable_time_to_live(
        StateTtlConfig.new_builder(Time.seconds(1)).set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    )
    assert disabled.ttl_config is None


_STEPS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.lists(
            st.tuples(st.sampled_from("ab"), st.sampled_from(["put", "get", "items"]), st.integers(0, 2)), max_size=4
        ),
    ),
    min_size=1,
    max_size=6,
)


@given(_STEPS, st.booleans())
@settings(max_examples=60)
def test_a_map_that_expires_is_a_dict_with_times(steps, on_read):
    now, script, used, expected = 0, [], {}, []
    for later_ms, actions in steps:
        now += later_ms
        script.append((now, actions))
        found = []
        for key, action, n in actions:
            living = {k: at for k, at in used.get(key, {}).items() if at + TTL_MS > now}
            if action == "put":
                living[n] = now
            elif action == "get":
                found.append(-n if n in living else None)
                if on_read and n in living:
                    living[n] = now
            else:
                found.append({k: -k for k in living})
                if on_read:
                    living = dict.fromkeys(living, now)
            used[key] = living
        expected.append(found)
    out, checkpoint = play(expiring(MapStateDescriptor("m", LONG, LONG), on_read=on_read), MAP, script)
    assert out == expected
    if not any(at + TTL_MS > now for times in used.values() for at in times.values()):
        assert stored(checkpoint) == []


@pytest.mark.parametrize("given", [dict, dict.items, lambda entries: [*entries.items()]])
def test_a_map_takes_pairs_as_well_as_a_mapping(given):
    actions = MAP | {"all": lambda state, _: state.put_all(dict_value=given({1: 2, 3: 4}))}
    script = [(0, [("a", "all", 0), ("a", "items", 0)])]
    for descriptor in (MapStateDescriptor("m", LONG, LONG), expiring(MapStateDescriptor("m", LONG, LONG))):
        assert play(descriptor, actions, script)[0] == [[{1: 2, 3: 4}]]
