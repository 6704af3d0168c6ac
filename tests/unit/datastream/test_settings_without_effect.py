"""Settings of PyFlink programs that have no meaning on Spark: each is taken, can be asked for, and is said once."""

import json
import warnings

import pytest

from eventide.common import Duration, InputDependencyConstraint, Types
from eventide.common.execution_mode import ExecutionMode
from eventide.datastream import CheckpointingMode, ExternalizedCheckpointRetention
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError
from eventide.testing import local_environment
from support.twin import timed

CHECKPOINTS = {
    "checkpoint_interval": 5_000,
    "checkpoint_timeout": 60_000,
    "min_pause_between_checkpoints": 100,
    "max_concurrent_checkpoints": 2,
    "tolerable_checkpoint_failure_number": 3,
    "aligned_checkpoint_timeout": Duration.of_seconds(1),
}
EXECUTION = {
    "latency_tracking_interval": 100,
    "task_cancellation_interval": 10,
    "task_cancellation_timeout": 20,
    "execution_mode": ExecutionMode.BATCH,
    "default_input_dependency_constraint": InputDependencyConstraint.ALL,
}
HINTS = {
    "disable_chaining": (),
    "start_new_chain": (),
    "slot_sharing_group": ("default",),
    "set_buffer_timeout": (10,),
    "set_max_parallelism": (16,),
    "set_uid_hash": ("00",),
}


@pytest.fixture
def env():
    return local_environment()


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_setting_of_checkpoints_is_kept_and_said_once(env, name):
    config = env.get_checkpoint_config()
    with pytest.warns(UserWarning, match=f"{name} has no effect"):
        assert getattr(config, f"set_{name}")(CHECKPOINTS[name]) is config
    assert getattr(config, f"get_{name}")() == CHECKPOINTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(config, f"set_{name}")(CHECKPOINTS[name])


@pytest.mark.parametrize("name", EXECUTION)
def test_a_setting_of_the_job_is_kept(env, name):
    with pytest.warns(UserWarning, match=f"{name} has no effect"):
        getattr(env.get_config(), f"set_{name}")(EXECUTION[name])
    assert getattr(env.get_config(), f"get_{name}")() == EXECUTION[name]


SERIALIZERS = {
    "register_pojo_type": ("com.shop.Order",),
    "register_kryo_type": ("com.shop.Order",),
    "add_default_kryo_serializer": ("com.shop.Order", "com.shop.OrderSerializer"),
    "register_type_with_kryo_serializer": ("com.shop.Order", "com.shop.OrderSerializer"),
    "disable_auto_type_registration": (),
}


@pytest.mark.parametrize("name", SERIALIZERS)
def test_what_flink_1_was_told_of_classes_of_java_is_taken(env, name):
    with pytest.warns(UserWarning, match=f"{name} has no effect"):
        assert getattr(env.get_config(), name)(*SERIALIZERS[name]) is env.get_config()
    assert env.get_config().get_registered_types_with_kryo_serializer_classes() == {}


@pytest.mark.parametrize("name", ["register_type", "add_default_kryo_serializer", "register_type_with_kryo_serializer"])
def test_an_environment_takes_classes_of_java_and_says_what_takes_those_of_python(env, name):
    arguments = SERIALIZERS.get(name, ("com.shop.Order",))
    with pytest.warns(UserWarning, match=rf"{name} has no effect: .*get_config\(\)\.register_type"):
        assert getattr(env, name)(*arguments) is env


def test_the_defaults_of_checkpoints_have_names(env):
    config = env.get_checkpoint_config()
    assert config.get_checkpointing_mode() is config.DEFAULT_MODE
    assert config.get_checkpoint_timeout() == config.DEFAULT_TIMEOUT
    assert config.get_min_pause_between_checkpoints() == config.DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS
    assert config.get_max_concurrent_checkpoints() == config.DEFAULT_MAX_CONCURRENT_CHECKPOINTS


def test_a_preference_for_checkpoints_is_taken(env):
    config = env.get_checkpoint_config()
    with pytest.warns(UserWarning, match="prefer_checkpoint_for_recovery has no effect"):
        config.set_prefer_checkpoint_for_recovery(True)
    assert config.is_prefer_checkpoint_for_recovery()


@pytest.mark.parametrize("name", HINTS)
def test_a_hint_on_a_stream_is_taken(env, name):
    stream = env.from_collection([1])
    with pytest.warns(UserWarning, match=f"{name}.* has no effect"):
        assert getattr(stream, name)(*HINTS[name]) is stream


def test_what_is_so_in_any_case_needs_no_warning(env):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = env.enable_checkpointing(1_000, CheckpointingMode.EXACTLY_ONCE).get_checkpoint_config()
        config.set_checkpointing_mode(CheckpointingMode.EXACTLY_ONCE)
        config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
        env.from_collection([1]).set_description("numbers").print().set_description("to the terminal")
    assert env.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert config.is_checkpointing_enabled()
    assert env.is_chaining_enabled()


def test_some_fields_of_a_tuple_are_a_tuple(env):
    triples = env.from_collection([("a", 1, 2.5)], Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()]))
    projected = triples.project(2, 0)
    assert projected.get_type() == Types.TUPLE([Types.DOUBLE(), Types.STRING()])
    assert list(projected.execute_and_collect()) == [(2.5, "a")]
    with pytest.raises(ProgramError, match=r"there is no field 3 in TUPLE.*fields are 0 to 2"):
        triples.project(3)
    with pytest.raises(ProgramError, match="project is for tuples"):
        env.from_collection([1]).project(0)


def test_ids_can_be_asked_for(env):
    env.get_config().disable_auto_generated_uids()
    windows = timed(env, [("a", 1)]).window_all(TumblingEventTimeWindows.of(10)).reduce(lambda a, b: b)
    with pytest.raises(ProgramError, match=r"auto generated uids are disabled; .*: TumblingEventTimeWindows\.reduce"):
        windows.execute_and_collect()
    assert list(windows.uid("last").execute_and_collect()) == [("a", 1)]


def test_a_plan_can_be_had_as_json(env):
    with pytest.raises(ProgramError, match="the program has no sink"):
        env.get_execution_plan()
    env.from_collection([1]).name("numbers").key_by(abs).sum().print()
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [node["pact"] for node in nodes] == ["Data Source", "Operator", "Operator", "Data Sink"]
    assert nodes[0]["type"] == "numbers"
    assert nodes[2]["predecessors"][0]["ship_strategy"] == "HASH"


@pytest.mark.parametrize(
    ("redistribute", "strategy"),
    [
        (lambda stream: stream.rebalance(), "REBALANCE"),
        (lambda stream: stream.rescale(), "RESCALE"),
        (lambda stream: stream.shuffle(), "SHUFFLE"),
        (lambda stream: stream.broadcast(), "BROADCAST"),
        (lambda stream: stream.global_(), "GLOBAL"),
        (lambda stream: stream.partition_custom(lambda key, count: 0, abs), "CUSTOM"),
        (lambda stream: stream.rebalance().broadcast(), "BROADCAST"),
        (lambda stream: stream.forward(), "FORWARD"),
    ],
)
def test_a_way_to_the_subtasks_is_said_of_an_edge_of_the_plan(env, redistribute, strategy):
    redistribute(env.from_collection([1])).map(abs).print()
    source, behind, sink = json.loads(env.get_execution_plan())["nodes"]
    assert [(edge["id"], edge["ship_strategy"]) for edge in behind["predecessors"]] == [(source["id"], strategy)]
    assert [(edge["id"], edge["ship_strategy"]) for edge in sink["predecessors"]] == [(behind["id"], "FORWARD")]
