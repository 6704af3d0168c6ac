"""Proof, by its code, that a function or a trigger of a user sets no timers of processing time."""

from __future__ import annotations

import inspect
from itertools import pairwise
from typing import Any

from eventide.api.functions import Function
from eventide.api.windows.triggers import Trigger
from eventide.common.code import argument, codes, keeps_methods, steps

_HANDLERS = {
    "process_element": 2,
    "process_element1": 2,
    "process_element2": 2,
    "process_broadcast_element": 2,
    "on_timer": 2,
    "process_batch": 2,
    "on_timers": 2,
}
_HANDLERS_OF_TRIGGER = {"on_element": 4, "on_event_time": 3, "on_processing_time": 3, "on_merge": 2, "clear": 2}
"""Methods that get a context with timers, and its place among their arguments."""

_OF_CLOCK = "processing_time_timer"
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")


def may_set_timers_of_clock(of_user: Function | Trigger[Any, Any]) -> bool:
    """Whether a function or a trigger may set timers of processing time, as far as its code shows.

    It sets none if all that its handlers do with their context, and with the timers that this has, is to call methods
    of them there and then: so no other code can set one.
    """
    is_trigger = isinstance(of_user, Trigger)
    handlers = _HANDLERS_OF_TRIGGER if is_trigger else _HANDLERS
    kind, names = type(of_user), frozenset(handlers)
    if names & getattr(of_user, "__dict__", {}).keys() or not keeps_methods(
        kind, names, Trigger if is_trigger else Function
    ):
        return True
    found = ((inspect.getattr_static(kind, name, None), place) for name, place in handlers.items())
    return any(method is not None and not _sets_none(method, place) for method, place in found)


def _sets_none(handler: object, place_of_context: int) -> bool:
    found = argument(handler, place_of_context)
    if found is None:
        return False
    code, context = found
    names = {name for part in codes(code) for name in part.co_names}
    if "__self__" in names or any(_OF_CLOCK in name for name in names):
        return False
    done = [*steps(code), ("", None)]
    timers: set[Any] = set()
    for place, (step, name) in enumerate(done):
        if name != context or step in _ATTRIBUTE:
            continue
        if step != "LOAD_FAST" or done[place + 1][0] not in _ATTRIBUTE:
            return False
        if done[place + 1][1] == "timer_service":
            called, taken = [one for one in done[place + 2 :] if one[0] != "PUSH_NULL"][:2]
            if called != ("CALL", 0):
                return False
            if taken[0] == "STORE_FAST":
                timers.add(taken[1])
            elif taken[0] not in (*_ATTRIBUTE, "POP_TOP"):
                return False
    return all(
        step in ("STORE_FAST", *_ATTRIBUTE) or (step == "LOAD_FAST" and after in _ATTRIBUTE)
        for (step, name), (after, _) in pairwise(done)
        if name in timers
    )
