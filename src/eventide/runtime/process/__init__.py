"""Process functions: what the user does with each element, with state and timers by key where there are keys."""
