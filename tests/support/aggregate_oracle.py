"""Results of aggregates, found in plain Python, value by value."""

import math
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import pytest


def known(rows, name):
    """The values of a column that are not null; `rows` are pairs of time and row."""
    return [row[name] for _, row in rows if row[name] is not None]


def one(value):
    """NaN is one value, and -0.0 is 0.0."""
    if not isinstance(value, float):
        return value
    return "NaN" if math.isnan(value) else value + 0.0


def rank(value):
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0.0 if is_nan else value)


def different(values):
    return sorted({one(value): value for value in values}.values(), key=rank)


def exact(values):
    return [Fraction(value) for value in values]


def are_finite(values):
    return all(math.isfinite(value) for value in values)


def oracle_variance(values, divisor):
    if divisor <= 0:
        return None
    if not are_finite(values):
        return math.nan
    average = sum(exact(values)) / len(values)
    return float(sum((x - average) ** 2 for x in exact(values)) / divisor)


def oracle_sum(values):
    return sum(values, type(values[0])()) if values else None


def oracle_mean(values):
    if not values:
        return None
    if isinstance(values[0], Decimal):
        with localcontext(prec=100):
            average = sum(exact(values)) / len(values)
            quotient = Decimal(average.numerator) / Decimal(average.denominator)
            return quotient.quantize(Decimal(10) ** -18, ROUND_HALF_UP)
    return float(sum(exact(values)) / len(values)) if are_finite(values) else sum(values) / len(values)


def oracle_quantiles(values, probabilities):
    ordered = sorted((float(value) for value in values), key=rank)
    if not ordered:
        return None
    return [ordered[max(0, math.ceil(p * len(ordered)) - 1)] for p in probabilities]


def oracle_top(values, k):
    counts = Counter(one(value) for value in values)
    known = {one(value): value for value in values}

    def order(item):
        return (-counts[item], item is None, 0 if item is None else rank(known[item]))

    return [{"value": known[item], "count": counts[item]} for item in sorted(counts, key=order)[:k]]


def by_time(rows, name, *, latest, ignore_nulls):
    rows = [(time, row[name]) for time, row in rows if not ignore_nulls or row[name] is not None]
    if not rows:
        return None
    wanted = (max if latest else min)(time for time, _ in rows)
    return [value for time, value in rows if time == wanted][-1 if latest else 0]


def same(found, expected):
    """Equal up to the rounding of doubles, with NaN equal to NaN."""
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict) and isinstance(found, dict):
        return found.keys() == expected.keys() and all(same(found[name], expected[name]) for name in expected)
    if isinstance(expected, float) and isinstance(found, float):
        return (math.isnan(found) and math.isnan(expected)) or found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    return type(found) is type(expected) and found == expected
