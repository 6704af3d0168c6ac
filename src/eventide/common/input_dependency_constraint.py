"""`InputDependencyConstraint`, of an earlier scheduler of Flink."""

from enum import Enum

from eventide._absent import hand_out_names

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """When a Flink task could start: with any of its inputs, or with all. No setting uses it any more."""

    ANY = 0
    ALL = 1


hand_out_names(__name__)
