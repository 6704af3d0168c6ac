"""Measurements, a file for each kind of thing."""
