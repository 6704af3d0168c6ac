"""Nexmark, the benchmark of event-time systems: an auction house, and questions about its stream of events.

    python -m examples.nexmark --query 5 --events 100000

`generator` makes the events, `source` is a source of them with splits, `files` writes and reads them as Parquet,
`queries` are the programs, a file each, and `sql` says in plain batch SQL what they should give. docs/nexmark.md tells
of it. The queries are those of https://github.com/nexmark/nexmark that are about time and state.
"""
