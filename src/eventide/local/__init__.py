"""The local host: a plan run in this process, without Spark."""
