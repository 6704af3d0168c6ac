"""Keyed state and timers, kept as few large values in any store of bytes."""
