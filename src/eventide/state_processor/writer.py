"""Savepoints that programs write, and change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from eventide import __version__
from eventide.common.execution_config import MAX_PARALLELISM
from eventide.errors import ProgramError
from eventide.runtime.state.operators import FORMAT
from eventide.savepoint import Header, Savepoint, StateWriter
from eventide.savepoint.bootstrapping import Bootstrap
from eventide.savepoint.directory import Directory
from eventide.savepoint.rows import Small
from eventide.savepoint.saved import copy_state
from eventide.state_processor.transformations import StateBootstrapTransformation, elements_here, is_data_frame


@dataclass(frozen=True)
class SavepointWriter:
    """Builder of a savepoint. It is a value: each call returns another one, and `write` writes it.

    >>> import tempfile
    >>> from eventide.common import Types
    >>> from eventide.api.state import ValueStateDescriptor
    >>> from eventide.state_processor import KeyedStateBootstrapFunction, OperatorTransformation, SavepointReader
    >>> class Totals(KeyedStateBootstrapFunction):
    ...     def open(self, runtime_context):
    ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
    ...
    ...     def process_element(self, value, ctx):
    ...         self.total.update(value[1])
    >>> totals = OperatorTransformation.bootstrap_with([("a", 1), ("b", 2)]).key_by(lambda pair: pair[0])
    >>> with tempfile.TemporaryDirectory() as location:
    ...     SavepointWriter.new_savepoint().with_operator("totals", totals.transform(Totals())).write(location)
    ...     SavepointReader.read(location).read_keyed_state("totals").to_pylist()
    [{'key': 'a', 'total': 1}, {'key': 'b', 'total': 2}]
    """

    max_parallelism: int
    parallelism: int | None = None
    existing: Savepoint | None = None
    removed: frozenset[str] = frozenset()
    added: Mapping[str, StateBootstrapTransformation] = field(default_factory=lambda: MappingProxyType({}))

    @staticmethod
    def new_savepoint(max_parallelism: int = MAX_PARALLELISM, parallelism: int | None = None) -> SavepointWriter:
        """Begin with nothing.

        Args:
            max_parallelism: the number of key groups, which is that of the job: see
                `StreamExecutionEnvironment.set_max_parallelism`.
            parallelism: that of a job that begins with it and says none; and how many tasks write what comes from a
                Spark DataFrame.

        Raises:
            ProgramError: if a number is out of range.
        """
        if not 1 <= max_parallelism <= MAX_PARALLELISM or not 1 <= (parallelism or 1) <= max_parallelism:
            raise ProgramError(
                f"a savepoint needs a max parallelism from 1 to {MAX_PARALLELISM}, and a parallelism up to it; got "
                f"{max_parallelism} and {parallelism}"
            )
        return SavepointWriter(max_parallelism, parallelism)

    @staticmethod
    def from_existing_savepoint(location: str) -> SavepointWriter:
        """Begin with all that a savepoint has; it stays as it is.

        Raises:
            ProgramError: if Arrow cannot open it.
            StateError: if the savepoint is missing or incomplete, or was changed after it was written.
        """
        found = Savepoint(location, verify=True)
        return SavepointWriter(found.header.program["max parallelism"], found.header.parallelism, found)

    def with_operator(self, uid: str, transformation: StateBootstrapTransformation) -> SavepointWriter:
        """Have the state of one more operator.

        Args:
            uid: its ``uid``.
            transformation: what makes it.

        Raises:
            ProgramError: if there is state of it already, or that is no `StateBootstrapTransformation`.
        """
        if not isinstance(transformation, StateBootstrapTransformation):
            raise ProgramError(
                f"with_operator needs what bootstrap_with(...).key_by(...).transform(...) gives, not {transformation!r}"
            )
        if not isinstance(uid, str) or not uid:
            raise ProgramError(f"with_operator needs the uid of an operator, not {uid!r}")
        if uid in self.added or (uid in self._operators and uid not in self.removed):
            raise ProgramError(f"there is state of the operator {uid!r} already; call remove_operator({uid!r}) before")
        return replace(self, added={**self.added, uid: transformation})

    def remove_operator(self, uid: str) -> SavepointWriter:
        """Have no state of an operator: of its ``uid``, or of the id that `SavepointReader.operators` shows.

        Raises:
            ProgramError: if there is none.
        """
        if uid in self.added:
            return replace(self, added={one: how for one, how in self.added.items() if one != uid})
        if uid not in self._operators or uid in self.removed:
            there = ", ".join(map(repr, [*self._operators, *self.added])) or "no operator"
            raise ProgramError(f"there is no state of the operator {uid!r}; there is that of {there}")
        return replace(self, removed=self.removed | {uid})

    def write(self, location: str) -> None:
        """Write it into a new directory, on any store that Arrow opens.

        Without a scheme it is a local one, or, with a Spark DataFrame among the data, what Spark takes it for; Spark's
        workers must reach it then.

        Raises:
            ProgramError: if Arrow cannot open it.
            StateError: if there is something.
            UserFunctionError: if a function raised.
        """
        frames = [how.data for how in self.added.values() if is_data_frame(how.data)]
        if frames:
            from eventide.spark.session.locations import resolved

            location = resolved(frames[0].sparkSession, location)
        writer = StateWriter(location, self.max_parallelism)
        writer.begin()
        small: list[Small] = []
        try:
            if self.existing is not None:
                small += copy_state(self.existing, Directory(location), self.removed)
            for uid, transformation in self.added.items():
                bootstrap = transformation.bootstrap.named(uid)
                small += _written(transformation.data, bootstrap, writer, f"bootstrapped/{quote(uid, safe='')}", self)
            writer.finish(self._header(), small)
        except BaseException:
            writer.abandon()
            raise

    @property
    def _operators(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = {} if self.existing is None else self.existing.header.program["operators"]
        return found

    def _header(self) -> Header:
        kept = {operator: one for operator, one in self._operators.items() if operator not in self.removed}
        made = {uid: how.bootstrap.named(uid).identity() for uid, how in self.added.items()}
        if self.existing is None:
            program: dict[str, Any] = {
                "format": FORMAT,
                "parallelism": self.parallelism,
                "max parallelism": self.max_parallelism,
                "sources": [],
                "operators": made,
                "sinks": [],
            }
            return Header(None, None, self.parallelism, program, None, (), {"eventide": __version__})
        header = self.existing.header
        return replace(header, program={**header.program, "operators": {**kept, **made}})


def _written(data: Any, bootstrap: Bootstrap, writer: StateWriter, place: str, what: SavepointWriter) -> list[Small]:
    """Write the state that is made of data, and return what is small of it."""
    if is_data_frame(data):
        from eventide.spark.checkpoint.bootstrap import bootstrap_on_spark

        return bootstrap_on_spark(data, bootstrap, writer, place, what.parallelism)
    keyed = ((element, bootstrap.select(element)) for element in elements_here(data))
    return writer.write(f"{place}/0", 0, bootstrap.run(keyed, writer.max_parallelism))
