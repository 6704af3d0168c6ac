"""The name of a side output."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.api.functions.output_tag import *
from eventide.api.functions.output_tag import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
