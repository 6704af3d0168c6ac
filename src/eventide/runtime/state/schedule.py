"""When something is due in which bucket, known without reading the buckets."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from eventide.runtime.state.backend import Backend

_BUCKETS_OF_A_PAGE = 512
_NUMBERS = np.dtype("<u2")
_TIMES = np.dtype("<i8")


class Schedule:
    """The earliest time of each bucket, in pages of some hundred buckets, and the earliest time of each page.

    The earliest times of the pages are small, and kept by the user of the schedule; a page is read when its earliest
    time has come, or when the time of one of its buckets changes, and written if it did.
    """

    def __init__(self, backend: Backend, name: str, earliest: Iterable[tuple[int, int]]) -> None:
        self._backend = backend
        self._name = name
        self._earliest = dict(earliest)
        self._pages: dict[int, dict[int, int]] = {}
        self._changed: set[int] = set()
        self._coming: list[tuple[int, bool, int]] = []
        self._start()

    @property
    def earliest(self) -> list[tuple[int, int]]:
        """The earliest time of each page in which there is any, in milliseconds: what a schedule is opened with."""
        return sorted(self._earliest.items())

    def due(self, until_ms: int) -> list[int]:
        """The buckets whose time has come, each once."""
        coming = self._coming
        found = []
        while coming and coming[0][0] <= until_ms:
            _, is_bucket, number = heapq.heappop(coming)
            if is_bucket:
                found.append(number)
            else:
                self._unfold(number)
        return found

    def next(self) -> tuple[int, int] | None:
        """The earliest time and its bucket; None if there is none."""
        while self._coming and not self._coming[0][1]:
            self._unfold(heapq.heappop(self._coming)[2])
        return (self._coming[0][0], self._coming[0][2]) if self._coming else None

    def skip(self) -> None:
        """Take the bucket away that :meth:`next` gave."""
        heapq.heappop(self._coming)

    def next_of_untouched(self) -> int | None:
        """The earliest time, when no bucket was touched since the last :meth:`flush`: no page is read for it."""
        return self._coming[0][0] if self._coming else None

    def set(self, bucket: int, time_ms: int | None) -> None:
        """Have a bucket come up at another time from the next :meth:`flush` on; None for never."""
        number, position = divmod(bucket, _BUCKETS_OF_A_PAGE)
        page = self._page(number)
        if page.get(position) == time_ms:
            return
        self._changed.add(number)
        if time_ms is None:
            del page[position]
        else:
            page[position] = time_ms

    def flush(self) -> None:
        """Store the pages that changed, and start again with what is stored."""
        for number in sorted(self._changed):
            page = self._pages[number]
            if page:
                self._backend.put(f"{self._name}/{number}", _stored(page))
                self._earliest[number] = min(page.values())
            else:
                self._backend.delete(f"{self._name}/{number}")
                self._earliest.pop(number, None)
        self._changed.clear()
        self._pages.clear()
        self._start()

    def _start(self) -> None:
        self._coming = [(time_ms, False, page) for page, time_ms in self._earliest.items()]
        heapq.heapify(self._coming)

    def _unfold(self, number: int) -> None:
        first = number * _BUCKETS_OF_A_PAGE
        for position, time_ms in self._page(number).items():
            heapq.heappush(self._coming, (time_ms, True, first + position))

    def _page(self, number: int) -> dict[int, int]:
        page = self._pages.get(number)
        if page is None:
            stored = self._backend.get(f"{self._name}/{number}") if number in self._earliest else None
            page = self._pages[number] = {} if stored is None else _read(stored)
        return page


def _stored(page: dict[int, int]) -> bytes:
    """The times, then the buckets that they belong to."""
    return np.array([*page.values()], _TIMES).tobytes() + np.array([*page], _NUMBERS).tobytes()


def _read(stored: bytes) -> dict[int, int]:
    count = len(stored) // (_TIMES.itemsize + _NUMBERS.itemsize)
    times = np.frombuffer(stored, _TIMES, count)
    return dict(zip(np.frombuffer(stored, _NUMBERS, count, times.nbytes).tolist(), times.tolist(), strict=True))
