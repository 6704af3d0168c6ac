"""Stretches of the calendar: every time is in one, which begins when clocks first show its beginning."""

import pickle
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.calendar import UNITS, Calendar
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.errors import ProgramError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
STEP_MS = 15 * MINUTE_MS
ZONES = sorted(available_timezones() - {"localtime"})
CALENDARS = st.one_of(
    st.builds(Calendar, st.sampled_from(UNITS), st.sampled_from(ZONES)),
    st.builds(Calendar, st.just("hour"), st.sampled_from(ZONES), st.sampled_from([2, 3, 4, 6, 8, 12, 24])),
    st.builds(Calendar, st.just("month"), st.sampled_from(ZONES), st.sampled_from([2, 3, 4, 6, 12])),
)
SINCE_1970 = st.integers(0, 70 * 366 * DAY_MS)


def ms(text):
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


def shown(time_ms, zone):
    return (EPOCH + timedelta(milliseconds=time_ms)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


@lru_cache
def days_with_a_change(zone):
    """The days, in UTC, on which the clocks of a zone are set."""
    found, days = [], range(0, 70 * 365, 7)
    offsets = [_offset(zone, day) for day in days]
    for week, (before, after) in enumerate(pairwise(offsets)):
        if before != after:
            found += [
                day for day in range(days[week] + 1, days[week + 1] + 1) if _offset(zone, day - 1) != _offset(zone, day)
            ]
    return found


def _offset(zone, day):
    return (EPOCH + timedelta(days=day)).astimezone(ZoneInfo(zone)).utcoffset()


def begins_when_clocks_first_show_it(calendar, number):
    start, beginning = calendar.start(number), calendar.shown_at_start(number)
    before = range(start - STEP_MS, start - 30 * HOUR_MS, -STEP_MS)
    return (
        shown(start, calendar.zone) >= beginning
        and shown(start - 1, calendar.zone) < beginning
        and all(shown(time, calendar.zone) < beginning for time in before)
    )


@given(CALENDARS, SINCE_1970)
def test_every_time_is_in_one_stretch(calendar, time):
    number = calendar.number_at(time)
    assert calendar.start(number) <= time < calendar.start(number + 1)
    assert calendar.number_at(calendar.start(number)) == number
    assert calendar.number_at(calendar.start(number) - 1) < number


@given(CALENDARS, SINCE_1970)
def test_it_begins_when_clocks_first_show_its_beginning(calendar, time):
    assert begins_when_clocks_first_show_it(calendar, calendar.number_at(time))


@given(st.sampled_from(ZONES), st.sampled_from(["hour", "day"]), st.data())
def test_it_does_so_where_clocks_are_set(zone, unit, data):
    calendar = Calendar(unit, zone)
    day = data.draw(st.sampled_from(days_with_a_change(zone) or [0]))
    first, last = calendar.number_at((day - 1) * DAY_MS), calendar.number_at((day + 1) * DAY_MS)
    for number in range(first, last + 1):
        assert begins_when_clocks_first_show_it(calendar, number)
        assert calendar.start(number) <= calendar.start(number + 1)


@pytest.mark.long
@pytest.mark.parametrize("unit", ["hour", "day", "month"])
def test_it_does_so_at_every_change_of_every_zone_since_1970(unit):
    for zone in ZONES:
        calendar = Calendar(unit, zone)
        for day in days_with_a_change(zone):
            for number in range(calendar.number_at((day - 1) * DAY_MS), calendar.number_at((day + 1) * DAY_MS) + 1):
                start, beginning = calendar.start(number), calendar.shown_at_start(number)
                assert shown(start - 1, zone) < beginning <= shown(start, zone), (zone, beginning)
                assert start <= calendar.start(number + 1)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2024-03-31", 23),
        ("Europe/Berlin", "2024-10-27", 25),
        ("Australia/Lord_Howe", "2024-04-07", 24.5),
        ("Pacific/Apia", "2011-12-30", 0),  # Samoa went over the date line
        ("America/Sao_Paulo", "2018-11-04", 23),  # it has no midnight
        ("America/St_Johns", "2010-11-06", 24),  # one minute past midnight, clocks went back into the day before
        ("America/St_Johns", "2010-11-07", 25),
        ("UTC", "2024-03-31", 24),
    ],
)
def test_days_have_the_hours_that_they_have(zone, day, hours):
    calendar = Calendar("day", zone)
    number = date.fromisoformat(day).toordinal()
    assert (calendar.start(number + 1) - calendar.start(number)) / HOUR_MS == hours


def test_units_begin_where_people_expect_it():
    at = ms("2024-05-15T13:30:00+00:00")
    starts = {unit: Calendar(unit, "Europe/Berlin") for unit in UNITS}
    assert {unit: calendar.start(calendar.number_at(at)) for unit, calendar in starts.items()} == {
        "hour": ms("2024-05-15T15:00:00+02:00"),
        "day": ms("2024-05-15T00:00:00+02:00"),
        "week": ms("2024-05-13T00:00:00+02:00"),
        "month": ms("2024-05-01T00:00:00+02:00"),
        "quarter": ms("2024-04-01T00:00:00+02:00"),
        "year": ms("2024-01-01T00:00:00+01:00"),
    }
    shifts = Calendar("hour", "Europe/Berlin", 8)
    assert shifts.start(shifts.number_at(at)) == ms("2024-05-15T08:00:00+02:00")
    halves = Calendar("month", "Europe/Berlin", 6)
    assert halves.start(halves.number_at(at)) == ms("2024-01-01T00:00:00+01:00")


@pytest.mark.parametrize("unit", UNITS)
def test_times_at_the_ends_of_the_range_are_in_a_stretch_too(unit):
    calendar = Calendar(unit, "Asia/Tokyo")
    for time in (MIN_MS, MAX_MS - 1):
        number = calendar.number_at(time)
        assert calendar.start(number) <= time < calendar.start(number + 1)
    assert calendar.start(calendar.number_at(MIN_MS)) == MIN_MS
    assert calendar.start(calendar.number_at(MAX_MS) + 1) == MAX_MS


def test_it_travels_to_workers():
    calendar = Calendar("week", "Europe/Berlin")
    assert pickle.loads(pickle.dumps(calendar)) == calendar


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("days",), "expected a unit out of hour, day, week, month, quarter, year, got 'days'"),
        (("hour", "UTC", 5), "every has to be 1 or 2 or 3 or 4 or 6 or 8 or 12 or 24 for the unit 'hour', not 5"),
        (("day", "UTC", 2), "every has to be 1 for the unit 'day', not 2"),
        (("day", "Berlin"), "no time zone 'Berlin' is known here; give a name of the IANA database"),
        (("day", "../etc/passwd"), "no time zone '../etc/passwd' is known here"),
    ],
)
def test_what_is_no_calendar_is_refused(arguments, said):
    with pytest.raises(ProgramError, match=said):
        Calendar(*arguments)
