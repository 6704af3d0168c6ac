"""Settings of PyFlink's environment, streams and sinks for how Flink runs a job: without effect on Spark.

State backends of Flink 1 are here too: they also name the checkpoint directory, which `set_state_backend` takes over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

from eventide.common.accepted import GettingMethod, accept, always, gives, has_no_effect, sets, setting
from eventide.datastream.checkpoint_config import CheckpointConfig
from eventide.datastream.checkpointing_mode import CheckpointingMode
from eventide.datastream.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend
from eventide.errors import ProgramError

_CHAINED = "a function runs in the tasks of the operator before it, up to the next shuffle"
_NO_BUFFERS = "elements travel with their micro-batch"
_NO_SLOTS = "Spark has no slots that could be shared"
_NO_KRYO = "it is about classes of Java; get_config().register_type(...) takes those of Python"
_CHANGES = "state is stored as changes in any case"


class EnvironmentHints:
    """Settings of checkpoints, chaining, buffers, slots and state backends."""

    _checkpoint_config: CheckpointConfig

    def get_checkpoint_interval(self) -> int:
        """Return what the checkpoint settings say, in milliseconds; it has no effect."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return exactly-once, the only mode."""
        return self._checkpoint_config.get_checkpointing_mode()

    get_checkpointing_consistency_mode = get_checkpointing_mode

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return what the checkpoint settings say; it has no effect."""
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return what the checkpoint settings say; it has no effect."""
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    set_buffer_timeout, get_buffer_timeout = setting("set_buffer_timeout", "timeout_millis", 100, _NO_BUFFERS)
    disable_operator_chaining = sets("disable_operator_chaining", _CHAINED)
    is_chaining_enabled = always(True, _CHAINED)
    is_chaining_of_operators_with_different_max_parallelism_enabled = always(
        True, "the number of key groups is one for the whole job"
    )
    enable_changelog_state_backend = sets("enable_changelog_state_backend", _CHANGES, "enabled")
    is_changelog_state_backend_enabled = always(True, _CHANGES)
    get_state_backend: GettingMethod[StateBackend | None] = gives("set_state_backend", None)
    register_slot_sharing_group = sets("register_slot_sharing_group", _NO_SLOTS, "slot_sharing_group")

    register_type = sets("register_type", _NO_KRYO, "type_class_name")

    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> Self:
        """Accept the names of two Java classes without effect: there is no Kryo."""
        return accept(self, "add_default_kryo_serializer", (type_class_name, serializer_class_name), _NO_KRYO)

    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> Self:
        """Accept the names of two Java classes without effect: there is no Kryo."""
        return accept(self, "register_type_with_kryo_serializer", (type_class_name, serializer_class_name), _NO_KRYO)

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Accept a state backend without effect, for older programs: state is in the state store of the Spark session.

        The directory that a backend of Flink 1 names becomes the checkpoint directory.
        """
        if directory := getattr(state_backend, "checkpoint_path", None):
            self._checkpoint_config.set_checkpoint_storage_dir(directory)
        return accept(self, "set_state_backend", state_backend, "state lies in the state store of the Spark session")

    def close(self) -> None:
        """Do nothing: the session stays, because others may use it."""


class Hints:
    """Hints that streams and sinks have."""

    disable_chaining = sets("disable_chaining", _CHAINED)
    slot_sharing_group = sets("slot_sharing_group", _NO_SLOTS, "slot_sharing_group")
    set_uid_hash = sets("set_uid_hash", "it is about Flink's checkpoints; call uid(...)", "uid_hash")

    def set_description(self, description: str) -> Self:
        """Accept a description without effect: the `name` is shown."""
        return self


class StreamHints(Hints):
    """Hints that streams alone have."""

    start_new_chain = sets("start_new_chain", _CHAINED)
    set_buffer_timeout = sets("set_buffer_timeout", _NO_BUFFERS, "timeout_millis")
    set_max_parallelism = sets(
        "set_max_parallelism of one operator", "call env.set_max_parallelism(...)", "max_parallelism"
    )


class SinkHints(Hints):
    """Hints that sinks alone have."""

    set_parallelism = sets(
        "set_parallelism of a sink", "elements are written in the tasks that made them", "parallelism"
    )


class MemoryStateBackend(HashMapStateBackend):
    """State in memory, and checkpoints in a directory if one is named. Flink 1: ``MemoryStateBackend``."""

    def __init__(
        self,
        checkpoint_path: str | None = None,
        savepoint_path: str | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self.checkpoint_path = checkpoint_path


class FsStateBackend(HashMapStateBackend):
    """State in memory, and checkpoints in a directory. Flink 1: ``FsStateBackend``."""

    def __init__(
        self,
        checkpoint_directory_uri: str | None = None,
        default_savepoint_directory_uri: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self.checkpoint_path = checkpoint_directory_uri


class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """State in RocksDB, and checkpoints in a directory. Flink 1: ``RocksDBStateBackend``."""

    def __init__(
        self,
        checkpoint_data_uri: str | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: StateBackend | None = None,
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        self.checkpoint_path = checkpoint_data_uri or getattr(checkpoint_stream_backend, "checkpoint_path", None)


_NEEDLESS = re.compile(
    r"""(?:.*/)?
    (?: flink-(?:sql-)?(?:connector-)?
            (?: kafka(?:-0\.\d+|-universal|-base)? | files | file-sink-common | base | datagen | s3-fs-(?:hadoop|presto)
              | json | csv | avro(?:-confluent-registry)? | parquet | orc )
      | flink-(?:streaming-java|clients|core|java|python|dist|runtime|statebackend-rocksdb|shaded-jackson)
      | kafka-clients | avro )
    (?:[-_]2(?:\.1[123])?)?                   # of Scala
    (?:[-_](?:\d[^/]*|\$\{[^/]*\})?)?  # of the artifact; some build files leave a variable there
    (?:\.jar)?/*""",
    re.VERBOSE,
)


def is_needless(jar: str) -> bool:
    """Say, from the name of a jar's file, whether eventide does the jar's work itself.

    >>> is_needless("file:///opt/flink-sql-connector-kafka-3.1.0-1.18.jar")
    True
    >>> is_needless("file:///opt/flink-connector-kafka_2.11-1.12.0.jar")
    True
    >>> is_needless("file:///opt/flink-connector-jdbc-3.1.0-1.17.jar")
    False
    """
    return _NEEDLESS.fullmatch(jar) is not None


def take_jars(method: str, jars: Iterable[str]) -> None:
    """Ignore needless jars, with one warning.

    Args:
        method: The method that was given the jars, for messages.
        jars: URLs or paths of jars; one text may have several, separated by semicolons.

    Raises:
        ProgramError: A jar contains Java classes that have no replacement here, or is not text.
    """
    given = list(jars)
    if not all(isinstance(jar, str) for jar in given):
        raise ProgramError(f"{method} takes the URLs of jars, not {given!r}")
    names = [name.strip() for jar in given for name in jar.split(";") if name.strip()]
    if others := [name for name in names if not is_needless(name)]:
        raise ProgramError(
            f"{method} cannot take {', '.join(others)}: jars bring classes of Java to Flink, and programs of eventide "
            "run without them. Read with a Spark source, env.from_data_frame(...), and write with "
            "sink_to(function), which may call rows.write.jdbc(...), or with sink_to(FormatSink(...)); Spark takes its "
            "own jars when a session is made, with spark.jars or spark.jars.packages"
        )
    why = "eventide has these connectors and formats by itself, and needs no jars for them"
    has_no_effect(f"{method} of {', '.join(names)}", why, how_many=len(names[:1]))
