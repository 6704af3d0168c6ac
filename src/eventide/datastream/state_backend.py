"""State backends: where Flink keeps state. On Spark it is the session's state store: descriptions, without effect."""

from __future__ import annotations

from abc import ABC
from enum import Enum

from eventide._absent import hand_out_names
from eventide.common.accepted import GettingMethod, gives, sets, setting

__all__ = ["EmbeddedRocksDBStateBackend", "HashMapStateBackend", "PredefinedOptions", "StateBackend"]


class StateBackend(ABC):
    """Where state is kept; ``env.set_state_backend`` takes one, without effect. Flink: ``StateBackend``.

    Spark keeps state in the store that ``spark.sql.streaming.stateStore.providerClass`` names: RocksDB, which replaces
    both backends of Flink here.
    """


class HashMapStateBackend(StateBackend):
    """State in memory. Flink: ``HashMapStateBackend``."""


class PredefinedOptions(Enum):
    """Storage that RocksDB is tuned for."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """State in RocksDB. Flink: ``EmbeddedRocksDBStateBackend``. Its settings can be read back.

    >>> backend = EmbeddedRocksDBStateBackend(True).set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    >>> backend.is_incremental_checkpoints_enabled(), backend.get_predefined_options().name
    (True, 'FLASH_SSD_OPTIMIZED')
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._incremental = bool(enable_incremental_checkpointing)
        self._paths: tuple[str, ...] = ()

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether checkpoints are to be incremental; on Spark they are with changelog checkpointing."""
        return self._incremental

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set the local directories of RocksDB, without effect: on Spark, ``spark.local.dir`` names them."""
        self._paths = paths

    def get_db_storage_paths(self) -> list[str]:
        """Return the local directories that were set."""
        return list(self._paths)

    set_predefined_options, get_predefined_options = setting("predefined_options", "options", PredefinedOptions.DEFAULT)
    set_options = sets("options", "", "options_factory_class_name")
    get_options: GettingMethod[str | None] = gives("options", None)
    set_number_of_transfer_threads, get_number_of_transfer_threads = setting(
        "number_of_transfer_threads", "number_of_transfering_threads", 4
    )


hand_out_names(__name__)
