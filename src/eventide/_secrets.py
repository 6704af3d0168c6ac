"""Keeps keys and passwords out of what people and other programs read."""

from __future__ import annotations

import re
from typing import TypeVar

_T = TypeVar("_T")

_LOGIN = re.compile(
    r"""\b(s3[an]?://)[^\s/@:'"]*:[^\s@'"]*@|\b([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@:'"]*:[^\s/'"]*@""", re.IGNORECASE
)
"""A bucket has no port, so what follows a colon is a key, which may have slashes. A login goes up to the last ``@``."""

_PARAMETER = re.compile(r"""([?&](?:(?:access|secret)_key|(?:session_)?token|password|sig)=)[^\s&'"]+""", re.IGNORECASE)
"""Parameters with which Arrow's ``s3`` and signed addresses bring a key along."""


def without_secrets(text: str) -> str:
    """A text in which URIs have no name and password; a name alone stays, as the container of ``abfss`` is one.

    Parameters of an address that are keys lose their values.

    >>> without_secrets("cannot open 's3://KEY:SECRET@bucket/in', nor http://me:word@registry:8081")
    "cannot open 's3://bucket/in', nor http://registry:8081"
    >>> without_secrets("abfss://container@account/in hdfs://name:8020/a@b")
    'abfss://container@account/in hdfs://name:8020/a@b'
    >>> without_secrets("s3://bucket/in?region=eu-1&secret_key=SECRET")
    's3://bucket/in?region=eu-1&secret_key='
    """
    return _PARAMETER.sub(r"\1", _LOGIN.sub(r"\1\2", text)) if "://" in text else text


def shown_without_secrets(cls: type[_T]) -> type[_T]:
    """Decorate a class that has locations: its ``repr`` is without the name and password of a URI.

    >>> from dataclasses import dataclass
    >>> @shown_without_secrets
    ... @dataclass
    ... class Place:
    ...     path: str
    >>> Place("s3://KEY:SECRET@bucket/in")
    Place(path='s3://bucket/in')
    """
    with_secrets = cls.__repr__

    def shown(self: _T) -> str:
        return without_secrets(with_secrets(self))

    cls.__repr__ = shown  # type: ignore[assignment,method-assign]
    return cls
