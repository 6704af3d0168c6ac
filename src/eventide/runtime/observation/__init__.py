"""Observation of tasks, for those who look at a job: results depend on none of it."""
