"""``eventide demo``: a day of readings that ships with the package, counted by eventide and by Spark alone."""
