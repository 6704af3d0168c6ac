# pyright: standard
"""Mistakes in what is done with elements are found where they stand, each under mypy and under pyright."""

from __future__ import annotations

from orders import Order, Payment, env, orders, payments

from eventide.common import Types
from eventide.datastream import DataStream, OutputTag

# error: attr-defined | reportAttributeAccessIssue
orders.map(lambda order: order.amuont)
# error: attr-defined | reportAttributeAccessIssue
orders.filter(lambda order: order.amuont > 3)
# error: attr-defined | reportAttributeAccessIssue
orders.flat_map(lambda order: order.amuont)
# error: attr-defined | reportAttributeAccessIssue
orders.key_by(lambda order: order.usr)
# error: attr-defined | reportAttributeAccessIssue
orders.map(lambda order: order.amount).map(lambda amount: amount.user)
# error: attr-defined | reportAttributeAccessIssue
orders.key_by(lambda order: order.user).map(lambda order: order.usr)
# error: arg-type return-value | reportArgumentType
orders.flat_map(lambda order: order.amount)
# error: arg-type | reportArgumentType
orders.union(payments)
# error: arg-type return-value | reportArgumentType
orders.key_by(lambda order: order.user).reduce(lambda one, other: one.amount)
# error: attr-defined | reportAttributeAccessIssue
orders.connect(payments).key_by(lambda order: order.user, lambda payment: payment.usr)
# error: attr-defined | reportAttributeAccessIssue
orders.partition_custom(lambda key, n: key % n, lambda order: order.usr)


def cents(payment: Payment) -> int:
    return payment.cents


# error: arg-type | reportArgumentType
orders.map(cents)
# error: arg-type return-value | reportAssignmentType
texts: DataStream[str] = orders.map(lambda order: order.amount)
# error: arg-type | reportAssignmentType
tag: OutputTag[str] = OutputTag("counts", Types.LONG())
# error: arg-type | reportAssignmentType
late: DataStream[Payment] = orders.get_side_output(OutputTag[Order]("late"))
# error: assignment | reportAssignmentType
numbers: list[str] = env.from_collection([1]).execute_and_collect(limit=1)
