"""From the logical graph to levels of operators that a host can run: without Spark, the same for every host."""
