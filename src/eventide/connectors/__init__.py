"""Engines of the connectors: they read, write and commit."""
