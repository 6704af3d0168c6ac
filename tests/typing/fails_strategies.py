# pyright: standard
"""Mistakes between a strategy, an assigner or a source and the elements."""

from __future__ import annotations

from orders import Order, Payment, env, orders

from eventide.common import TimestampAssigner, WatermarkStrategy
from eventide.datastream.connectors import NumberSequenceSource


class PaymentTime(TimestampAssigner[Payment]):
    def extract_timestamp(self, value: Payment, record_timestamp: int) -> int:
        return value.time


ascending = WatermarkStrategy.for_monotonous_timestamps()
# error: attr-defined | reportAttributeAccessIssue
orders.assign_timestamps_and_watermarks(ascending.with_timestamp_assigner(lambda order, _: order.tmie))
# error: arg-type | reportArgumentType
orders.assign_timestamps_and_watermarks(ascending.with_timestamp_assigner(PaymentTime()))
# error: attr-defined | reportAttributeAccessIssue
strategy: WatermarkStrategy[Order] = ascending.with_timestamp_assigner(lambda order, _: order.tmie)
# error: misc | reportArgumentType
env.from_source(NumberSequenceSource(1, 5), strategy, "numbers")
# error: arg-type | reportArgumentType
ascending.with_idleness("a minute")
# error: arg-type | reportArgumentType
ascending.with_timestamp_assigner(3)
