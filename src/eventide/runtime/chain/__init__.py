"""Chains: the work between two shuffles, of the user's functions, timestamps, and the ways out of a task."""
