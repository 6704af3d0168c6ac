"""Elements, as Python objects or as Arrow columns; their bytes, and the hash of their keys."""
