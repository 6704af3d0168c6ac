"""What eventide costs and what it gains, beside Spark's own windows: `./run bench`; docs/benchmarks.md tells of it."""
