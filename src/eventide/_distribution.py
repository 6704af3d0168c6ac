"""The name of eventide for pip, and the commands that install its extras."""

NAME = "eventide-spark"
"""On the public index, `eventide` is another project."""


def getting(extra: str) -> str:
    """The command that installs eventide with an extra.

    >>> getting("kafka")
    "pip install 'eventide-spark[kafka]'"
    """
    return f"pip install '{NAME}[{extra}]'"
