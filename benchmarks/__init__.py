"""Costs and gains of eventide, beside Spark's own windows: `./run bench`; docs/benchmarks.md tells of it."""
