"""Functions as sources: what ``StreamExecutionEnvironment.add_source`` reads."""

from eventide.connectors.function_source._face import SourceFace
from eventide.connectors.function_source._source import FunctionSource

__all__ = ["FunctionSource", "SourceFace"]
