"""Outputs of the functions of an operator: results, and dead letters in place of what cannot be handled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from sys import getrefcount
from typing import Any, TypeAlias

from eventide._secrets import without_secrets
from eventide.api.functions.output_tag import DEAD_LETTER, OutputTag
from eventide.api.source import Unreadable
from eventide.common.typeinfo import TypeInformation
from eventide.common.types import Row
from eventide.errors import DEAD_LETTER_ADVICE, DataError, UserFunctionError
from eventide.pickling.pickles import dumps
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ownership import FIXED, UNSHARED, is_flat, own
from eventide.runtime.invoke import is_of_the_data, repr_of, shown, user_function_error
from eventide.runtime.metrics import Metrics
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.transaction import TransactionalState

OutputMark: TypeAlias = tuple[int, dict[str, int]]
"""How many elements the main output and each side output have emitted."""

FIELDS = tuple(DEAD_LETTER.names or ())

_LONGEST = 300


class Collector:
    """Gathers elements by side output (None: the main one).

    A function emits ``(tag, value)``, whose tag is an ``OutputTag``, for a side output, and anything else for the main
    one. What can be changed is copied (decision 40); not so without ``copies``. ``advice`` is what an error says
    of results that are not of their declared type. Flink: ``Collector``.
    """

    def __init__(
        self, operator: str, type_info: TypeInformation | None, *, copies: bool = True, advice: str = DEAD_LETTER_ADVICE
    ) -> None:
        self._operator = operator
        self._advice = advice
        self._copies = copies
        self._begin()
        self._types: dict[str | None, TypeInformation | None] = {None: type_info}
        self._is_typed = type_info is not None and not type_info.is_pickled

    def put_beside(self, tag: str, value: object, timestamp: int | None, number: int | None = None) -> None:
        """Put one element out on a side output; without a number, it has that of its place there."""
        self.put_letter(tag, own(value) if self._copies else value, timestamp, number)

    def put_letter(self, tag: str, value: object, timestamp: int | None, number: int | None = None) -> None:
        """Put one element out on a side output, without a copy: it has no other owner."""
        output = self._beside[tag]
        output.append(value, timestamp, len(output) if number is None else number)

    def put_results(self, results: Iterable[Any], timestamp: int | None, number: int | None = None) -> None:
        """Emit what a function returned; without a number, elements have the numbers of their places."""
        values, timestamps, sequence = self._values, self._timestamps, self._sequence
        fixed, are_fixed = FIXED, FIXED.issuperset  # most results, and none with a tag: no more calls for these
        for result in results:
            kind = type(result)
            if kind not in fixed and not (kind is tuple and are_fixed(map(type, result))):
                if is_tagged(result):
                    tag, value = result
                    self._put_tagged(tag, value, timestamp, number)
                    continue
                if self._copies and not (getrefcount(result) == UNSHARED and is_flat(result)):
                    result = own(result)  # noqa: PLW2901 - one that has no other owner stands for it
            sequence.append(len(values) if number is None else number)
            timestamps.append(timestamp)
            values.append(result)

    def _put_tagged(self, tag: OutputTag, value: object, timestamp: int | None, number: int | None) -> None:
        self._types[tag.tag_id] = kind = tag.type_info
        self._is_typed = self._is_typed or not kind.is_pickled
        self.put_beside(tag.tag_id, value, timestamp, number)

    def mark(self) -> OutputMark:
        """How much was emitted since the last :meth:`take`."""
        in_main, beside = len(self._values), self._beside
        return in_main, {tag: len(output) for tag, output in beside.items()} if beside else {}

    def cut(self, mark: OutputMark) -> None:
        """Take back the results after a mark."""
        in_main, beside = mark
        self._main.shorten(in_main)
        for tag, output in self._beside.items():
            output.shorten(beside.get(tag, 0))

    def check_from(self, mark: OutputMark) -> None:
        """Convert the results after a mark to the declared types.

        Raises:
            DataError: if a value does not fit; also one that would be found out only when it is sent.
        """
        if self._is_typed:
            in_main, beside = mark
            self._check(None, self._main, in_main)
            for tag, output in self._beside.items():
                self._check(tag, output, beside.get(tag, 0))

    def _begin(self) -> None:
        self._main = Elements()
        self._values, self._timestamps, self._sequence = self._main.values, self._main.timestamps, self._main.sequence
        self._beside: defaultdict[str, Elements] = defaultdict(Elements)

    def _check(self, tag: str | None, output: Elements, begin: int) -> None:
        kind = self._types.get(tag)
        if kind is not None and not kind.is_pickled and len(output.values) > begin:
            output.values[begin:] = kind.as_declared(output.values[begin:])

    def take(self) -> dict[str | None, Elements]:
        """Give away the results since the last call, by side output, converted to the declared types.

        Raises:
            DataError: if a value does not fit the type of its output.
        """
        outputs: dict[str | None, Elements] = {None: self._main} if self._main else {}
        outputs.update(self._beside)
        self._begin()
        for tag, elements in outputs.items():
            elements.values = as_results(self._operator, elements.values, self._types.get(tag), self._advice)
        return outputs


def is_tagged(result: object) -> bool:
    """Whether a result is for a side output: a pair of an ``OutputTag`` and a value.

    >>> is_tagged((OutputTag("late"), 1)), is_tagged(("late", 1))
    (True, False)
    """
    return isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag)


class TagsAmongResults:
    """Copies results as `own` does, and notices whether one is for a side output; then it is ``found``."""

    def __init__(self) -> None:
        self.found = False

    def copied(self, result: Any) -> Any:
        """A result that has no other owner; of one for a side output, its tag stays the same object."""
        if not is_tagged(result):
            return own(result)
        self.found = True
        return result[0], own(result[1])

    def by_output(
        self, operator: str, results: Elements, type_info: TypeInformation | None
    ) -> dict[str | None, Elements]:
        """All results by side output (None: the main one), converted to the declared types.

        Raises:
            DataError: if a value does not fit the type of its output.
        """
        if not self.found:
            results.values = as_results(operator, results.values, type_info)
            return {None: results}
        out = Collector(operator, type_info, copies=False)
        for value, timestamp, number in zip(results.values, results.timestamps, results.sequence, strict=True):
            out.put_results((value,), timestamp, number)
        return out.take()


def as_results(
    operator: str, values: list[Any], type_info: TypeInformation | None, advice: str = DEAD_LETTER_ADVICE
) -> list[Any]:
    """Turn results of a function into values of its declared type: so the next function finds its fields.

    Raises:
        DataError: naming the operator, and the first value that does not fit.
    """
    if type_info is None:
        return values
    try:
        return type_info.converted(values)
    except DataError as error:
        during = "when its results were converted to their declared type"
        raise user_function_error(operator, error, during=during, advice=advice) from error


class DeadLetterOutput:
    """Puts the dead letters of an operator out beside its results, and counts them.

    Where the state of the operator has transactions, what fails is rolled back.
    """

    def __init__(
        self, operator: str, tag: str, out: Collector, metrics: Metrics, keyed: KeyedState | None = None
    ) -> None:
        self._operator = operator
        self._tag = tag
        self._out = out
        self._metrics = metrics
        self._state = keyed if isinstance(keyed, TransactionalState) else None

    def call(
        self,
        act: Callable[..., Iterable[Any] | None],
        args: tuple[Any, ...],
        during: str,
        time_ms: int | None,
        key: object = None,
        *,
        element: object = None,
        window: object = None,
    ) -> bool:
        """Call a function and put its results out, or its dead letter, and nothing else; return whether it was done.

        ``during`` is its work in words, and ``time_ms`` the time of its results and of the letter, whose ``element`` is
        as it was before.

        Raises:
            Exception: the error of the function, if the data is not to blame.
        """
        out, state = self._out, self._state
        before = out.mark()
        if state is not None:
            state.begin(key)
        try:
            results = act(*args)
            if results is not None:
                out.put_results(results, time_ms)
            out.check_from(before)
        except Exception as error:
            if state is not None:
                state.rollback()
            if not is_of_the_data(error):
                raise
            self.put(before, during, error, time_ms, key=key, element=element, window=window)
            return False
        if state is not None:
            state.commit()
        return True

    def put(
        self,
        before: OutputMark,
        during: str,
        error: Exception,
        time_ms: int | None,
        number: int | None = None,
        **what: object,
    ) -> None:
        """Emit a dead letter in place of all that was emitted after a mark.

        Raises:
            EventideError: if the data is not to blame for the error.
        """
        letter = dead_letter(self._operator, during, error, timestamp=time_ms, **what)
        self._out.cut(before)
        if self._metrics.count_dead_letters(self._operator, [letter]):
            self._out.put_letter(self._tag, letter, time_ms, number)


def dead_letter(operator: str, during: str, error: Exception, *, window: object = None, **what: Any) -> Row:
    """The dead letter that tells of an error; ``what`` are its other fields, as far as they are known.

    A ``window`` that could not fire is named in ``during``.

    Raises:
        EventideError: if the data is not to blame: the program or its state is wrong, or memory is short.

    >>> letter = dead_letter("parse", "while it handled an element", ValueError("no number"), element="x")
    >>> letter.error_type, letter.error, letter.element, letter.key
    ('ValueError', 'no number', 'x', None)
    """
    if not is_of_the_data(error):
        raise user_function_error(operator, error, during=during, **what) from error
    cause = error.__cause__ if isinstance(error, UserFunctionError) and error.__cause__ is not None else error
    fields = dict.fromkeys(FIELDS) | what
    fields |= {
        "operator": operator,
        "during": during if window is None else f"when the window {shown(window)} fired",
        "error_type": type(cause).__name__,
        "error": without_secrets(_text(cause, str)),
    }
    fields["text"] = as_text(fields["element"])
    for name in ("error", "text", "split"):
        fields[name] = _in_unicode(fields[name])
    if not _can_travel(fields["element"]):
        fields["element"] = None
    return Row(**fields)


def as_text(element: object) -> str | None:
    r"""An element of any type as text; None stays None.

    >>> as_text(b"caf\xc3\xa9 \xff"), as_text("one"), as_text(("a", 1))
    ('café \\xff', 'one', "('a', 1)")
    """
    if element is None or isinstance(element, str):
        return element
    if isinstance(element, bytes | bytearray):
        return element.decode("utf-8", "backslashreplace")
    return _text(element, repr)


def cannot_be_read(bad: Unreadable) -> DataError:
    """The error of a source that cannot read a record."""
    where = ["record" if bad.position is None else f"record {bad.position}", *([bad.split] if bad.split else [])]
    said = str(bad.error) if isinstance(bad.error, DataError) else repr(bad.error)
    cut = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
    return DataError(f"{' of '.join(where)} cannot be read: {cut}")


def described(tag: str | None) -> list[tuple[str, str]]:
    """The line of ``explain`` about an operator's dead letters; no line where it has none."""
    return [] if tag is None else [("bad data", f"to side output {tag!r}, as dead letters")]


def _text(value: object, form: Callable[[Any], str]) -> str:
    try:
        return form(value)
    except Exception as error:
        return f"<a {type(value).__name__} whose text raised {repr_of(error)}>"


def _in_unicode(text: str | None) -> str | None:
    r"""A text that a column can hold: a surrogate without its other half, as JSON allows it, is written out.

    >>> _in_unicode("\ud83d!")
    '\\ud83d!'
    """
    return None if text is None else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _can_travel(element: object) -> bool:
    try:
        dumps(element)
    except Exception:  # whatever a user's class raises, or what is too deep to be pickled
        return False
    return True
