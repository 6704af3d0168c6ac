"""Functions as sources: what ``StreamExecutionEnvironment.add_source`` reads."""

from eventide.datastream.connectors.function_source._face import SourceFace
from eventide.datastream.connectors.function_source._source import FunctionSource

__all__ = ["FunctionSource", "SourceFace"]
