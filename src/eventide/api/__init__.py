"""The vocabulary of programs: functions, windows, state, sources (Flink: ``api.common``)."""
