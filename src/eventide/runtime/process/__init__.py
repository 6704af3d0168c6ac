"""Process functions, which handle each element, with state and timers by key where there are keys."""
