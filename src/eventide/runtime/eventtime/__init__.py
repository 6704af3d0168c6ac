"""How watermarks combine: one combiner, and the valve that feeds it from splits and subtasks."""
