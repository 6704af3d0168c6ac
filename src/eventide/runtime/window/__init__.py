"""Windows: the rules of time, the operator that applies them, and what it keeps per window."""
