"""What runs between two shuffles: the user's functions, timestamps, and the ways out of a task."""
