"""Modules that are programs, which a collection with ``--doctest-modules`` must not import."""

collect_ignore = [
    "cluster/from_nothing.py",
    "cluster/killed_driver.py",
    "cluster/temporary_checkpoint.py",
    "connect/printing_job.py",
    "stores/moto_server.py",
    "stores/saved_driver.py",
]
