"""From the logical graph to stages that a host can run: without Spark, the same for every host."""
