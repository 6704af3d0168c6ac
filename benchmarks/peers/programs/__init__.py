"""The five programs, for each engine in its own words; each file runs in the environment of its engine."""
