"""What users subclass and describe: functions, windows, state, sources (Flink: ``api.common``)."""
