"""Functions as sources: what ``StreamExecutionEnvironment.add_source`` reads."""

from eventide.connectors.function_source._source import FunctionSource, SourceFace

__all__ = ["FunctionSource", "SourceFace"]
