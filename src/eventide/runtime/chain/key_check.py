"""A look at the key of each element before it is dealt out, where those without one are to be sorted out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from eventide.api.functions import KeySelector
from eventide.common.typeinfo import TypeInformation
from eventide.runtime.chain.chained_operators import Call
from eventide.runtime.elements.columns import Batch
from eventide.runtime.elements.keys import stable_hash, unhashable

EXTRACTING = "when a key was extracted"


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """Hands on the elements that have a key; the key is found once more where they are dealt out."""

    name: str
    select: Callable[[Any], Any]
    key_type: TypeInformation
    user_function: KeySelector | None = None
    takes_columns: bool = False
    type_info: ClassVar[None] = None
    during: ClassVar[str] = EXTRACTING

    def caller(self, values: list[Any]) -> Call:
        """The element itself, or an error."""
        select, key_type = self.select, self.key_type

        def checked(value: Any, _: Any) -> list[Any]:
            key = select(value)
            try:
                hash(key)
                stable_hash(key)
            except TypeError as error:
                raise unhashable(key) from error
            if not key_type.is_pickled:
                key_type.as_declared([key])
            return [value]

        return checked

    def apply(self, batch: Batch) -> Batch:
        """The elements as they are."""
        return batch
