"""The Spark session: Java, Python processes, files of the program, locations, settings."""
