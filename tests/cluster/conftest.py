"""The cluster that all tests of this folder share."""

from support.cluster.fixture import cluster

__all__ = ["cluster"]
