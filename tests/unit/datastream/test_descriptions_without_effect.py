"""Objects that describe how Flink is to run a job: they can be made and asked, and are taken once with a warning."""

import warnings
from io import BytesIO

import pytest

from eventide.common import ConfigOptions, Configuration, Encoder
from eventide.common.serializer import VoidNamespaceSerializer
from eventide.datastream import (
    CheckpointConfig,
    CountWindow,
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    GlobalWindow,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    MemorySize,
    PredefinedOptions,
    SlotSharingGroup,
    TimeWindow,
)
from eventide.datastream.connectors.file_system import BucketAssigner, StreamingFileSink
from eventide.datastream.window import CountWindowSerializer, GlobalWindowSerializer, TimeWindowSerializer
from eventide.errors import ProgramError
from eventide.testing import local_environment


@pytest.fixture
def env():
    return local_environment()


SETTINGS = {
    "state_backend": HashMapStateBackend(),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_an_older_program_sets_is_kept_and_said_once(env, name):
    with pytest.warns(UserWarning, match=f"set_{name} has no effect"):
        assert getattr(env, f"set_{name}")(SETTINGS[name]) is env
    assert getattr(env, f"get_{name}")() == SETTINGS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(env, f"set_{name}")(SETTINGS[name])


def test_nothing_is_set_at_first(env):
    assert env.get_state_backend() is None
    assert env.get_default_savepoint_directory() is None


def test_where_savepoints_go_is_kept_and_an_option_says_it_too(env):
    assert (
        env.set_default_savepoint_directory("s3a://savepoints").get_default_savepoint_directory() == "s3a://savepoints"
    )
    env.configure(Configuration.from_dict({"execution.checkpointing.savepoint-dir": "/other"}))
    assert env.get_default_savepoint_directory() == "/other"


def test_the_interval_of_checkpoints_can_be_asked_for(env):
    assert env.get_checkpoint_interval() == -1
    assert env.enable_checkpointing(1_000).get_checkpoint_interval() == 1_000


def test_rocksdb_keeps_what_it_is_told():
    backend = EmbeddedRocksDBStateBackend()
    assert not backend.is_incremental_checkpoints_enabled()
    assert backend.get_predefined_options() is PredefinedOptions.DEFAULT
    assert backend.get_options() is None
    backend.set_db_storage_paths("/a", "/b")
    backend.set_options("org.Factory")
    backend.set_number_of_transfer_threads(8)
    assert backend.get_db_storage_paths() == ["/a", "/b"]
    assert backend.get_options() == "org.Factory"
    assert backend.get_number_of_transfer_threads() == 8


def test_the_directory_of_a_checkpoint_storage_is_that_of_the_checkpoint():
    config = CheckpointConfig()
    assert config.get_checkpoint_storage() is None
    config.set_checkpoint_storage(JobManagerCheckpointStorage())
    assert config.get_checkpoint_storage_dir() is None
    storage = FileSystemCheckpointStorage("s3a://checkpoints", 1_024)
    assert config.set_checkpoint_storage(storage).get_checkpoint_storage_dir() == "s3a://checkpoints"
    assert config.get_checkpoint_storage() == FileSystemCheckpointStorage("s3a://checkpoints")
    assert (storage.get_min_file_size_threshold(), storage.get_write_buffer_size()) == (1_024, 4_096)
    assert storage.get_savepoint_path() is None
    assert JobManagerCheckpointStorage().get_max_state_size() == JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE
    with pytest.raises(ProgramError, match="needs the path of a directory"):
        FileSystemCheckpointStorage()


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("file://var/checkpoints/", "file://var/checkpoints"),
        ("checkpoints//", "checkpoints"),
        ("s3a://bucket/", "s3a://bucket/"),
        ("/", "/"),
    ],
)
def test_a_checkpoint_path_has_no_slash_after_its_name(named, path):
    assert FileSystemCheckpointStorage(named).get_checkpoint_path() == path


def test_a_slot_sharing_group_says_all_that_it_must_or_nothing():
    assert SlotSharingGroup.builder("light").build() == SlotSharingGroup("light")
    group = SlotSharingGroup.builder("g").set_cpu_cores(1.0).set_task_heap_memory_mb(1).build()
    assert group.get_task_off_heap_memory() == group.get_managed_memory() == MemorySize(0)
    for builder in (
        SlotSharingGroup.builder("g").set_cpu_cores(1.0).set_task_off_heap_memory_mb(10),
        SlotSharingGroup.builder("g").set_cpu_cores(1.0).set_task_heap_memory(MemorySize(0)),
        SlotSharingGroup.builder("g").set_task_heap_memory_mb(1),
        SlotSharingGroup.builder("g").set_external_resource("gpu", 1.0),
    ):
        with pytest.raises(ProgramError, match=r"'g' has .* cores and .* on the heap; .* set_cpu_cores and set_task"):
            builder.build()


def test_a_slot_sharing_group_is_built_step_by_step(env):
    builder = SlotSharingGroup.builder("heavy").set_cpu_cores(0.5).set_task_heap_memory_mb(1)
    builder.set_task_off_heap_memory(MemorySize(10)).set_managed_memory_mb(2)
    builder.set_external_resource("gpu", 1.0)
    group = builder.build()
    assert group.get_name() == "heavy"
    assert group.get_task_heap_memory() == MemorySize.of_mebi_bytes(1) > group.get_task_off_heap_memory()
    assert group.get_managed_memory().get_bytes() == 2 * 1_024 * 1_024
    assert group.get_external_resources() == {"gpu": 1.0}
    assert len({group, SlotSharingGroup("heavy")}) == 2
    with pytest.warns(UserWarning, match="slot_sharing_group has no effect"):
        env.register_slot_sharing_group(group).from_collection([1]).slot_sharing_group(group)


@pytest.mark.parametrize(
    ("serializer", "window"),
    [
        (TimeWindowSerializer(), TimeWindow(-5, 2**40)),
        (CountWindowSerializer(), CountWindow(7)),
        (GlobalWindowSerializer(), GlobalWindow()),
        (VoidNamespaceSerializer(), b""),
    ],
)
def test_a_window_is_read_as_it_was_written(serializer, window):
    stream = BytesIO()
    serializer.serialize(window, stream)
    serializer.serialize(window, stream)
    stream.seek(0)
    assert [serializer.deserialize(stream), serializer.deserialize(stream)] == [window, window]
    assert stream.read() == b""
    assert len({serializer, type(serializer)()}) == 1


def test_a_file_sink_says_that_it_makes_no_subdirectories():
    builder = StreamingFileSink.for_row_format("out", Encoder.simple_string_encoder())
    with pytest.warns(UserWarning, match="with_bucket_check_interval has no effect"):
        builder = builder.with_bucket_check_interval(1_000)
    with pytest.warns(UserWarning, match="yyyy-MM-dd--HH.*: all files are in one directory"):
        builder.with_bucket_assigner(BucketAssigner.date_time_bucket_assigner()).build()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()


def test_an_option_is_declared_by_key_type_and_default():
    builder = ConfigOptions.key("limit")
    options = [builder.int_type(), builder.long_type(), builder.float_type(), builder.double_type()]
    assert {option.default_value(1) for option in options} == {builder.string_type().default_value(1)}
    declared = builder.boolean_type().no_default_value()
    assert (declared.key, declared.has_default_value()) == ("limit", False)
    assert Configuration().set_integer(declared.key, 3).get_integer(declared.key, None) == 3
