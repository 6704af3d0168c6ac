"""`InputDependencyConstraint`, which Flink's scheduler had once."""

from enum import Enum
from typing import TYPE_CHECKING

from eventide._absent import finder_of_names

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """When a task of Flink's could start: with any of its inputs, or with all. No setting takes it any more."""

    ANY = 0
    ALL = 1


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
