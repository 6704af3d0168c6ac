"""The name of a side output."""

from eventide._absent import hand_out_names
from eventide.api.functions.output_tag import *
from eventide.api.functions.output_tag import __all__ as __all__

hand_out_names(__name__)
