"""What a task does in one micro-batch, behind a shuffle."""
