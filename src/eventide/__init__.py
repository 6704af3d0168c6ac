"""eventide: the event-time system of Apache Flink for PySpark, with PyFlink's API."""

import sys

from eventide._absent import AbsentNames

__version__ = "0.2.0"

sys.meta_path.append(AbsentNames())
