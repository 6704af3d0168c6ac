"""Savepoints that programs write, change and read: state from a table for a job to begin with, and state as a table.

Flink: the State Processor API, in a small form.
"""

from eventide.state_processor.reader import SavepointReader
from eventide.state_processor.transformations import (
    KeyedOperatorTransformation,
    KeyedStateBootstrapFunction,
    OneInputOperatorTransformation,
    OperatorTransformation,
    StateBootstrapTransformation,
)
from eventide.state_processor.writer import SavepointWriter

__all__ = [
    "OperatorTransformation",
    "OneInputOperatorTransformation",
    "KeyedOperatorTransformation",
    "StateBootstrapTransformation",
    "KeyedStateBootstrapFunction",
    "SavepointWriter",
    "SavepointReader",
]
