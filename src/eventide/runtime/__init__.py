"""The semantics: operators, watermarks, timers and state, without Spark, clocks, threads or files."""
