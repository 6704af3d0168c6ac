"""Tests whose meaning is in several micro-batches of a source of eventide's."""

from __future__ import annotations

import pytest

from eventide.spark.query.data_source import CAN_LIMIT

in_steps = pytest.mark.skipif(not CAN_LIMIT, reason="PySpark 4.1 reads a source of eventide's in one micro-batch")
