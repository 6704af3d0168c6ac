"""Messages of Avro that name their schema in a registry, in Confluent's wire format; with ``eventide[kafka]``."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.connectors.formats.avro_confluent import *
from eventide.connectors.formats.avro_confluent import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
