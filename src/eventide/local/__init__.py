"""The twin: a plan run in this process, without Spark."""
