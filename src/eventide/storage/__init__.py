"""Where data lie: every location that a program names, as a file system."""
