"""How it travels from task to task: frames of elements, and reports of event time."""
