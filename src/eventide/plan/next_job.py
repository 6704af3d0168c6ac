"""The operators and sinks of an environment's next job."""

from __future__ import annotations

from eventide.connectors.sink import CollectSink
from eventide.errors import ProgramError
from eventide.plan.graph import SinkTransformation, Transformation, reachable


class NextJob:
    """The operators and sinks that a program has made since its last job; each runs once, with all that it needs.

    An operator runs without a sink downstream, too: its function may have another effect.
    """

    def __init__(self) -> None:
        self._nodes: dict[int, Transformation] = {}

    def add(self, node: Transformation) -> None:
        """Take a node in, if it is an operator or a sink."""
        if node.is_operator:
            self._nodes[node.number] = node

    @property
    def collects(self) -> bool:
        """Whether the program takes elements while the job runs."""
        return any(isinstance(n, SinkTransformation) and isinstance(n.sink, CollectSink) for n in self._nodes.values())

    def nodes(self) -> list[Transformation]:
        """The nodes so far.

        Raises:
            ProgramError: if there are none.
        """
        if not self._nodes:
            raise ProgramError(
                "the program has no sink and no operator, so there is nothing to run; add one, such as print(), or "
                "call execute_and_collect()"
            )
        return [*self._nodes.values()]

    def taken(self) -> list[Transformation]:
        """The nodes so far, for the job that begins; the one after it starts with none.

        Raises:
            ProgramError: if there are none.
        """
        nodes = self.nodes()
        self._nodes.clear()
        return nodes

    def leave_out(self, sink: SinkTransformation) -> None:
        """Leave out operators that a user query runs for its own sink."""
        for node in reachable([sink]):
            self._nodes.pop(node.number, None)
