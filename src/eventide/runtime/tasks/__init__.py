"""Tasks that run after a shuffle, and their work in one micro-batch."""
