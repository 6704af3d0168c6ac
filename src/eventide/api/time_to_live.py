"""Time to live of unused state."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

from eventide._absent import says_what_is_absent
from eventide.common.ms import to_positive_ms
from eventide.common.time import Duration, Time


class StateTtlConfig:
    """Configuration of state that expires when it was not used for some time, and is then removed.

    One value, one element of a list, or one entry of a map expires by itself. Time is that of the micro-batch by the
    clock. Expired values leave the checkpoint with the next micro-batch, even if their key is not touched. With
    `disable_cleanup_in_background`, and without another cleanup, they stay until they are read; state that was stored
    before this setting changed follows it when it is next written. Flink's kinds of cleanup make no difference.

    Make one with `new_builder`. Flink: ``StateTtlConfig``.

    >>> config = StateTtlConfig.new_builder(Time.hours(1)).update_ttl_on_read_and_write().build()
    >>> config.get_ttl().to_milliseconds(), config.get_update_type().name
    (3600000, 'OnReadAndWrite')
    """

    class UpdateType(Enum):
        """Kind of access that counts as use."""

        Disabled = 0
        """Nothing expires."""

        OnCreateAndWrite = 1
        """A write renews the time."""

        OnReadAndWrite = 2
        """A write or a read renews the time."""

    class StateVisibility(Enum):
        """Whether expired state may still be seen."""

        ReturnExpiredIfNotCleanedUp = 0
        """Expired state may be seen until it is removed."""

        NeverReturnExpired = 1
        """Expired state is never seen."""

    class TtlTimeCharacteristic(Enum):
        """The kind of time that counts."""

        ProcessingTime = 0
        """The time by the clock."""

    @says_what_is_absent
    class CleanupStrategies:
        """Flink's cleanup of expired state; here, any of its strategies cleans up with each micro-batch."""

        class Strategies(Enum):
            """Flink's ways of cleaning up."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class IncrementalCleanupStrategy:
            """Some keys at each access."""

            def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
                self._cleanup_size = cleanup_size
                self._run_cleanup_for_every_record = run_cleanup_for_every_record

            def get_cleanup_size(self) -> int:
                """Return how many keys."""
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                """Say whether every record counts as access."""
                return self._run_cleanup_for_every_record

        @dataclass(frozen=True)
        class RocksdbCompactFilterCleanupStrategy:
            """When RocksDB compacts its files."""

            query_time_after_num_entries: int
            periodic_compaction_time: Duration = field(default_factory=lambda: Duration.of_days(30))

            def get_query_time_after_num_entries(self) -> int:
                """Return after how many entries Flink looks at the clock."""
                return self.query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Duration:
                """Return the time after which RocksDB compacts in any case."""
                return self.periodic_compaction_time

        def __init__(
            self, strategies: dict[StateTtlConfig.CleanupStrategies.Strategies, Any], is_cleanup_in_background: bool
        ) -> None:
            self._strategies = strategies
            self._is_cleanup_in_background = is_cleanup_in_background

        def is_cleanup_in_background(self) -> bool:
            """Say whether `disable_cleanup_in_background` was not called."""
            return self._is_cleanup_in_background

        def in_full_snapshot(self) -> bool:
            """Say whether `cleanup_full_snapshot` was called."""
            return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def get_incremental_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy | None:
            """Return what `cleanup_incrementally` was called with, or what Flink does in the background."""
            default = self.IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None
            return self._strategies.get(self.Strategies.INCREMENTAL_CLEANUP, default)

        def get_rocksdb_compact_filter_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy | None:
            """Return what `cleanup_in_rocksdb_compact_filter` was called with, or what Flink does in the background."""
            default = self.RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None
            return self._strategies.get(self.Strategies.ROCKSDB_COMPACTION_FILTER, default)

    def __init__(
        self,
        update_type: UpdateType,
        state_visibility: StateVisibility,
        ttl_time_characteristic: TtlTimeCharacteristic,
        ttl: Time | Duration,
        cleanup_strategies: CleanupStrategies,
    ) -> None:
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = Time.milliseconds(to_positive_ms(ttl, "time to live"))
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Time | Duration) -> Builder:
        """Start with the time that unused state lives.

        Raises:
            ProgramError: it is not a positive length of time.
        """
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        """Return what counts as use."""
        return self._update_type

    def get_state_visibility(self) -> StateVisibility:
        """Return whether expired state may be seen."""
        return self._state_visibility

    def get_ttl(self) -> Time:
        """Return how long unused state lives."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """Return the kind of time that counts."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Say whether anything expires."""
        return self._update_type is not self.UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """Return how expired state is cleaned up."""
        return self._cleanup_strategies

    def __repr__(self) -> str:
        return f"StateTtlConfig({self._ttl!r}, {self._update_type.name}, {self._state_visibility.name})"

    class Builder:
        """Builds a `StateTtlConfig`, step by step."""

        def __init__(self, ttl: Time | Duration) -> None:
            self.set_ttl(ttl)
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._state_visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._in_background = True
            self._strategies: dict[StateTtlConfig.CleanupStrategies.Strategies, Any] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> Self:
            """Set what counts as use."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> Self:
            """Let only writing count as use: the default."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> Self:
            """Let reading count as use, too."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateTtlConfig.StateVisibility) -> Self:
            """Set whether expired state may be seen until it is removed."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> Self:
            """Let expired state be seen until it is removed."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> Self:
            """Never show expired state: the default."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic) -> Self:
            """Set the kind of time that counts."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> Self:
            """Let state expire by the time of the clock, which is the only choice."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> Self:
            """Accepted for compatibility with PyFlink: expired state goes with the next micro-batch."""
            self._strategies[StateTtlConfig.CleanupStrategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = None
            return self

        def cleanup_incrementally(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> Self:
            """Accepted for compatibility with PyFlink: expired state goes with the next micro-batch."""
            strategies = StateTtlConfig.CleanupStrategies
            strategy = strategies.IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
            self._strategies[strategies.Strategies.INCREMENTAL_CLEANUP] = strategy
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None
        ) -> Self:
            """Accepted for compatibility with PyFlink: expired state goes with the next micro-batch."""
            strategies = StateTtlConfig.CleanupStrategies
            strategy = strategies.RocksdbCompactFilterCleanupStrategy(
                query_time_after_num_entries, periodic_compaction_time or Duration.of_days(30)
            )
            self._strategies[strategies.Strategies.ROCKSDB_COMPACTION_FILTER] = strategy
            return self

        def disable_cleanup_in_background(self) -> Self:
            """Keep expired state until it is read, as Flink does, unless another cleanup is set."""
            self._in_background = False
            return self

        def set_ttl(self, ttl: Time | Duration) -> Self:
            """Set how long unused state lives."""
            self._ttl = Time.milliseconds(to_positive_ms(ttl, "time to live"))
            return self

        def build(self) -> StateTtlConfig:
            """Return the configuration."""
            return StateTtlConfig(
                self._update_type,
                self._state_visibility,
                self._ttl_time_characteristic,
                self._ttl,
                StateTtlConfig.CleanupStrategies(dict(self._strategies), self._in_background),
            )
