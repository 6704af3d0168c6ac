"""Pages as they are stored, and buckets of objects as pages, for keyed state on columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.typeinfo.widening import has_text
from eventide.errors import DataError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.fields import columns_of_fields
from eventide.runtime.state.bucket import Bucket, expiry_of_page, read_bucket
from eventide.runtime.state.bucket_store import NoColumns
from eventide.runtime.state.expiring import expiry_of
from eventide.runtime.state.keyed_rows import Part
from eventide.runtime.state.pages import HASH, NO_TIMERS, Page, PageTypes, is_page, read_parts
from eventide.runtime.state.timers import NO_PLACE

ANYTHING = Types.PICKLED_BYTE_ARRAY()


class PageReader:
    """Reads pages and buckets of objects.

    Args:
        key: the type of the keys.
        is_exact: whether objects have to come back as they are, type for type.

    Attributes:
        kinds: the types of values by name, where they are known.
    """

    def __init__(self, key: TypeInformation, *, is_exact: bool) -> None:
        self._key = key
        self._is_exact = is_exact
        self.kinds: dict[str, TypeInformation] = {}

    def declare(self, name: str, kind: TypeInformation) -> None:
        """Say the type of the values of a name."""
        self.kinds[name] = kind if has_text(kind) else ANYTHING

    def read(self, content: bytes) -> list[Part]:
        """A page, or a bucket of objects as a page, and its changes, if there are any.

        Raises:
            NoColumns: if columns cannot hold what it is.
        """
        if is_page(content):
            return [self._part(self._with_key(page), page.types) for page in read_parts(content)]
        return [self._part(self._page_of(*of_bucket), None) for of_bucket in read_bucket(content)]

    def _part(self, page: Page, stored: PageTypes | None) -> Part:
        """A page as it was read, which is stored with these types; None for a bucket of objects."""
        timers, expiry = [(of_kind,) for of_kind in page.timers], expiry_of_page(page)
        of_page = (page.rows, len(page.rows), timers, page.size, expiry)
        return Part(page.types.values, *of_page, stored, stored is not None)

    def _with_key(self, page: Page) -> Page:
        """A page whose keys are of the type that they have now."""
        if page.types.key == self._key:
            return page
        keys = self._as_keys(page.types.key.from_arrow(page.types.keys_of(page.rows)))
        hashes, values = page.rows.column(HASH).to_numpy(), page.types.values_of(page.rows)
        types = PageTypes(self._key, page.types.values)
        return page._replace(types=types, rows=types.rows(keys, hashes, values))

    def _page_of(self, bucket: Bucket, size: int) -> Page:
        if bucket.spaces or any(spaced for _, spaced in bucket.timers):
            raise NoColumns("there is state or there are timers of windows, which a function on columns has not")
        count = len(bucket.keys)
        found: dict[tuple[str, TypeInformation], pa.Array] = {}
        for name, (owners, are_pickled, values) in bucket.values.items():
            kind = self.kinds.get(name, ANYTHING)
            if not kind.is_pickled:
                objects = list(map(loads, values)) if are_pickled else values
                if not kind.keeps(objects):
                    kind = ANYTHING
            if kind.is_pickled:
                array = pa.array(values if are_pickled else list(map(dumps, values)), pa.binary())
            else:
                array = kind.to_arrow(objects)
            where = np.full(count, NO_PLACE)
            where[range(count) if owners is None else owners] = np.arange(len(array))
            found[name, kind] = array.take(pa.array(where, mask=where == NO_PLACE))
        types = PageTypes(self._key, tuple(found))
        rows = types.rows(self._as_keys(bucket.keys), bucket.hashes, [*found.values()])
        return Page(types, rows, tuple(plain for plain, _ in bucket.timers) or NO_TIMERS, size)

    def _as_keys(self, keys: list[Any]) -> list[pa.Array]:
        """Some keys that are stored as objects, by their parts."""
        kind = self._key
        try:
            if not self._is_exact or kind.keeps(keys):
                return columns_of_fields(kind.to_arrow(keys), kind)
        except (DataError, ValueError, OverflowError) as error:
            raise NoColumns(f"keys are stored that are not of their type {kind}: {error}") from error
        raise NoColumns(f"keys are stored that are not as columns of {kind} have them")


def expiries_of(values: pa.Array) -> list[int | None]:
    """When each of some values expires first, in milliseconds; None for one that stays until it is read."""
    return [expiry_of(stored) for stored in ANYTHING.from_arrow(values)]
