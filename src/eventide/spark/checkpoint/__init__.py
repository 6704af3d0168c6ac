"""The record of a program beside Spark's checkpoint, and readers of both."""
