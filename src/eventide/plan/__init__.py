"""From the logical graph to stages of operators that a host can run: without Spark, the same for every host."""
