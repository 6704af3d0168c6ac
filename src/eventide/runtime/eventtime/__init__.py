"""How watermarks combine: one combiner, and the gate that feeds it from splits and subtasks."""
