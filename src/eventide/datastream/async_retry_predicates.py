"""Predicates for common reasons to retry: an empty result, or an exception."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """Say whether a result is empty.

    >>> empty_result_predicate([]), empty_result_predicate([1])
    (True, False)
    """
    return not result


def has_exception_predicate(error: Exception | None) -> bool:
    """Say whether there is an exception."""
    return error is not None


def exception_type_predicate(error: Exception, expected_error_type: type[Exception]) -> bool:
    """Say whether an exception is of a type.

    >>> exception_type_predicate(KeyError(), LookupError)
    True
    """
    return isinstance(error, expected_error_type)
