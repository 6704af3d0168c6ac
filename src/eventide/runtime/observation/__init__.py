"""Observation of tasks, for whatever looks at a job: results depend on none of it."""
