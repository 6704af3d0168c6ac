"""Type variables of eventide's generic classes, with PyFlink's names, also for the generic classes of a program.

A class without its parameters has ``Any`` for each of them, so a program without annotations passes a strict type
checker. Checkers know such defaults from ``typing_extensions``. A running program does not need that package: its
variables are those of ``typing``, without a default.

The variables of methods, and of data that is both read and written, are invariant. A stream, a source or a type is as
general as its elements (``_co``); a function, an assigner or a trigger for any event also accepts an order
(``_contra``).
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

from eventide.common.windows import Window

if TYPE_CHECKING:
    from typing_extensions import TypeVar
else:

    def TypeVar(name, *, default, **options):  # noqa: N802 - checkers know calls of this name alone
        return typing.TypeVar(name, **options)


__all__ = ["IN", "IN1", "IN2", "K", "KEY", "OUT", "T", "V", "W", "W2"]

IN = TypeVar("IN", default=Any)
IN1 = TypeVar("IN1", default=Any)
IN2 = TypeVar("IN2", default=Any)
ACC = TypeVar("ACC", default=Any)
K = TypeVar("K", default=Any)
KEY = TypeVar("KEY", default=Any)
OUT = TypeVar("OUT", default=Any)
R = TypeVar("R", default=Any)
S = TypeVar("S", default=Any)
T = TypeVar("T", default=Any)
V = TypeVar("V", default=Any)
W = TypeVar("W", bound=Window, default=Any)
W2 = TypeVar("W2", bound=Window, default=Any)

IN_contra = TypeVar("IN_contra", contravariant=True, default=Any)
IN1_contra = TypeVar("IN1_contra", contravariant=True, default=Any)
IN2_contra = TypeVar("IN2_contra", contravariant=True, default=Any)
KEY_co = TypeVar("KEY_co", covariant=True, default=Any)
KEY_contra = TypeVar("KEY_contra", contravariant=True, default=Any)
OUT_co = TypeVar("OUT_co", covariant=True, default=Any)
S_co = TypeVar("S_co", covariant=True, default=Any)
T_co = TypeVar("T_co", covariant=True, default=Any)
T_contra = TypeVar("T_contra", contravariant=True, default=Any)
T1_co = TypeVar("T1_co", covariant=True, default=Any)
T2_co = TypeVar("T2_co", covariant=True, default=Any)
W_co = TypeVar("W_co", bound=Window, covariant=True, default=Any)
W_contra = TypeVar("W_contra", bound=Window, contravariant=True, default=Any)
