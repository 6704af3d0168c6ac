"""Types of dates, times and points in time, each by a class of its own, as PyFlink has them."""

# ruff: noqa: N802

from __future__ import annotations

import datetime

from eventide._absent import says_what_is_absent
from eventide.common.typeinfo.basic import BasicTypeInfo


@says_what_is_absent
class DateTypeInfo(BasicTypeInfo[datetime.date]):
    """The type of dates, which `Types.SQL_DATE` gives. PyFlink: ``DateTypeInfo``.

    >>> DateTypeInfo()
    SQL_DATE
    """

    def __init__(self) -> None:
        super().__init__("SQL_DATE")


@says_what_is_absent
class TimeTypeInfo(BasicTypeInfo[datetime.time]):
    """The type of times of day, which `Types.SQL_TIME` gives. PyFlink: ``TimeTypeInfo``.

    >>> TimeTypeInfo()
    SQL_TIME
    """

    def __init__(self) -> None:
        super().__init__("SQL_TIME")


class TimestampTypeInfo(BasicTypeInfo[datetime.datetime]):
    """The type of points in time as ``datetime``, which `Types.SQL_TIMESTAMP` gives. PyFlink: ``TimestampTypeInfo``.

    >>> TimestampTypeInfo()
    SQL_TIMESTAMP
    """

    def __init__(self) -> None:
        super().__init__("SQL_TIMESTAMP")


class SqlTimeTypeInfo:
    """Makes the types of dates and times, as `Types` does. PyFlink: ``SqlTimeTypeInfo``.

    >>> SqlTimeTypeInfo.DATE(), SqlTimeTypeInfo.TIME(), SqlTimeTypeInfo.TIMESTAMP()
    (SQL_DATE, SQL_TIME, SQL_TIMESTAMP)
    """

    @staticmethod
    def DATE() -> DateTypeInfo:
        """The type of ``datetime.date``."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """The type of ``datetime.time``."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """The type of ``datetime.datetime``."""
        return TimestampTypeInfo()


BASIC_TYPES_BY_NAME = {type_info.name: type_info for type_info in (DateTypeInfo(), TimeTypeInfo(), TimestampTypeInfo())}
"""The basic types that have a class of their own, by name."""
