"""Type variables with the names that PyFlink's modules give them, for the generic classes of a program's own."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["IN", "IN1", "IN2", "K", "KEY", "OUT", "T", "V", "W", "W2"]

IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
K = TypeVar("K")
KEY = TypeVar("KEY")
OUT = TypeVar("OUT")
T = TypeVar("T")
V = TypeVar("V")
W = TypeVar("W")
W2 = TypeVar("W2")
