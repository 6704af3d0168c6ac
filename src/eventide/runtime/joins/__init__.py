"""Joins: elements of two streams that have equal keys and belong together in time."""
