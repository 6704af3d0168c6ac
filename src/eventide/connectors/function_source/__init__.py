"""Functions as sources, for ``StreamExecutionEnvironment.add_source``."""

from eventide.connectors.function_source._source import FunctionSource, SourceFace

__all__ = ["FunctionSource", "SourceFace"]
