"""Slot sharing groups of Flink, and their resources. Spark has no slots: descriptions, without effect."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from eventide._absent import hand_out_names, says_what_is_absent
from eventide.errors import ProgramError

__all__ = ["MemorySize", "SlotSharingGroup"]

_KIBI = 1024


@says_what_is_absent
@dataclass(frozen=True, order=True)
class MemorySize:
    """A number of bytes. Flink: ``MemorySize``.

    >>> MemorySize.of_mebi_bytes(3).get_kibi_bytes(), MemorySize(bytes_size=2047).get_kibi_bytes()
    (3072, 1)
    """

    bytes_size: int = 0

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """A number of MiB."""
        return MemorySize(mebi_bytes * _KIBI**2)

    def get_bytes(self) -> int:
        """The size in bytes."""
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        """The size in whole KiB."""
        return self.bytes_size // _KIBI

    def get_mebi_bytes(self) -> int:
        """The size in whole MiB."""
        return self.bytes_size // _KIBI**2

    def get_gibi_bytes(self) -> int:
        """The size in whole GiB."""
        return self.bytes_size // _KIBI**3

    def get_tebi_bytes(self) -> int:
        """The size in whole TiB."""
        return self.bytes_size // _KIBI**4

    def __str__(self) -> str:
        return f"{self.bytes_size} bytes"


_NONE = MemorySize()


@says_what_is_absent
@dataclass(frozen=True)
class SlotSharingGroup:
    """Operators that may share a slot, and what they need. Flink: ``SlotSharingGroup``.

    >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(1.5).set_task_heap_memory_mb(64).build()
    >>> group.get_name(), group.get_cpu_cores(), group.get_task_heap_memory().get_mebi_bytes()
    ('heavy', 1.5, 64)
    """

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: dict[str, float] = field(default_factory=dict, hash=False)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Start with the name of a group."""
        return SlotSharingGroup.Builder(SlotSharingGroup(name))

    def get_name(self) -> str:
        """The name of the group."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """The number of cores, if set."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """The memory on the heap, if set."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """The memory off the heap, if set."""
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """The memory that Flink manages, if set."""
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Other resources, such as GPUs, by name."""
        return dict(self.external_resources)

    class Builder:
        """Builds a ``SlotSharingGroup``."""

        def __init__(self, group: SlotSharingGroup) -> None:
            self._group = group

        def set_cpu_cores(self, cpu_cores: float) -> Self:
            """Set the number of cores."""
            return self._with(cpu_cores=cpu_cores)

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> Self:
            """Set the memory on the heap."""
            return self._with(task_heap_memory=task_heap_memory)

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> Self:
            """Set the memory on the heap, in MiB."""
            return self._with(task_heap_memory=MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> Self:
            """Set the memory off the heap."""
            return self._with(task_off_heap_memory=task_off_heap_memory)

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> Self:
            """Set the memory off the heap, in MiB."""
            return self._with(task_off_heap_memory=MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> Self:
            """Set the memory that Flink manages."""
            return self._with(managed_memory=managed_memory)

        def set_managed_memory_mb(self, managed_memory_mb: int) -> Self:
            """Set the memory that Flink manages, in MiB."""
            return self._with(managed_memory=MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> Self:
            """Set the amount of another resource."""
            return self._with(external_resources={**self._group.external_resources, name: value})

        def build(self) -> SlotSharingGroup:
            """The group: of its name alone, or with cores and memory on the heap, and other resources beside them.

            Raises:
                ProgramError: if it has some resources, but not these two, both above zero.
            """
            group = self._group
            if group == SlotSharingGroup(group.name):
                return group
            if not (group.cpu_cores or 0) > 0 or not (group.task_heap_memory or _NONE) > _NONE:
                raise ProgramError(
                    f"the slot sharing group {group.name!r} has {group.cpu_cores} cores and {group.task_heap_memory} "
                    "on the heap; a group that says what it needs must say both, above zero, with set_cpu_cores and "
                    "set_task_heap_memory"
                )
            return replace(
                group,
                task_off_heap_memory=group.task_off_heap_memory or _NONE,
                managed_memory=group.managed_memory or _NONE,
            )

        def _with(self, **settings: float | MemorySize | dict[str, float]) -> Self:
            self._group = replace(self._group, **settings)  # type: ignore[arg-type]
            return self


hand_out_names(__name__)
