"""A source over a Python collection: one split, in its order."""

from eventide.connectors.sources import CollectionSource

__all__ = ["CollectionSource"]
