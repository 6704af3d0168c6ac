"""Parquet files: read in large batches of columns, and written by tasks, or by Spark where it alone can."""

from eventide._absent import hand_out_names
from eventide.connectors.formats.parquet import *
from eventide.connectors.formats.parquet import __all__ as __all__

hand_out_names(__name__)
