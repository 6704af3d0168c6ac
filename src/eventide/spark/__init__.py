"""A plan as one Structured Streaming query; the only package that knows Spark, and no rule of event time."""
