"""Where sources stand, what a micro-batch reads of them, and the tasks that read it."""
