"""The programs whose first result is timed; each is run as a process of its own, with a folder of Parquet."""
