"""How many digits the decimals in a trace have, before and after the point."""

from __future__ import annotations

from decimal import Decimal

from eventide.common.typeinfo import DecimalTypeInfo
from eventide.runtime.tracing.expressions import Computation, Constant, Expression, Field
from eventide.runtime.tracing.kinds import WHOLE
from eventide.runtime.tracing.number_kernels import CONTEXT_DIGITS

_WHOLE_DIGITS = {"BYTE": 3, "SHORT": 5, "INT": 10}
_LONG_DIGITS = 19


def decimal_size(expression: Expression) -> tuple[int, int] | None:
    """How many digits a decimal or whole number has at most, and how many of them after the point.

    None if that is not known, or is more than Python computes with.
    """
    size = _size(expression)
    return size if size is not None and size[0] <= CONTEXT_DIGITS else None


def _size(expression: Expression) -> tuple[int, int] | None:
    match expression:
        case Constant(values=(Decimal() as value,)):
            return _size_of_constant(value)
        case Constant(values=(int() as value,)):
            return len(str(abs(value))), 0
        case Field(type_info=DecimalTypeInfo(precision, scale)):
            return precision, scale
        case Field(type_info=kind) if expression.kind in WHOLE:
            return _WHOLE_DIGITS.get(str(kind), _LONG_DIGITS), 0
        case Computation(kind=kind) if kind in WHOLE:
            return _LONG_DIGITS, 0
        case Computation(name="any round", operands=(_, Constant(values=(places,)), _)):
            return CONTEXT_DIGITS, places
        case Computation(name="round decimal", operands=(rounded, Constant(values=(places,)))):
            size = decimal_size(rounded)
            return None if size is None else (size[0] - size[1] + 1 + places, places)
        case Computation(kind=kind, operands=(operand,)) if kind is Decimal:
            return decimal_size(operand)
        case Computation(kind=kind, name=name, operands=(left, right)) if kind is Decimal:
            first, second = decimal_size(left), decimal_size(right)
            if first is None or second is None:
                return None
            before = first[0] - first[1], second[0] - second[1]
            scale = first[1] + second[1] if name == "mul" else max(first[1], second[1])
            if name in ("floordiv", "mod"):
                digits = before[0] + second[1]  # of the quotient: Python refuses one that has too many
                if digits > CONTEXT_DIGITS:
                    return None
                return (max(digits, 1), 0) if name == "floordiv" else (max(min(before) + scale, 1), scale)
            return (sum(before) if name == "mul" else max(before) + 1) + scale, scale
    return None


def _size_of_constant(value: Decimal) -> tuple[int, int] | None:
    if not value.is_finite() or (not value and value.is_signed()):
        return None
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > 0:
        return None
    return max(len(digits), -exponent), -exponent
