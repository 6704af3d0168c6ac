"""Messages of Avro, each a record without its schema; read and written by fastavro, which ``eventide[avro]`` brings."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.connectors.formats.avro import *
from eventide.connectors.formats.avro import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
