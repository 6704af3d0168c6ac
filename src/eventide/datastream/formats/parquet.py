"""Parquet files: read in large batches of columns, and written by Spark."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.connectors.formats.parquet import *
from eventide.connectors.formats.parquet import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
