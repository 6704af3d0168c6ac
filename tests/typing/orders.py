"""The elements of the programs in this folder."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.datastream import DataStream
from eventide.testing import local_environment


@dataclass(frozen=True)
class Event:
    time: int


@dataclass(frozen=True)
class Order(Event):
    user: str
    amount: int


@dataclass(frozen=True)
class Payment(Event):
    user: str
    cents: int


env = local_environment()
orders: DataStream[Order] = env.from_collection([Order(1, "ann", 3)])
payments: DataStream[Payment] = env.from_collection([Payment(2, "ann", 300)])
