"""strftime on columns is Python's, for times on either side of each step that a format shows."""

import datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.typeinfo import Types
from eventide.runtime.elements.elements import Columns
from eventide.runtime.tracing.column_functions import mapped

PARTS = ["%Y", "%m", "%d", "%H", "%M", "%S", "%f", "%j", "%p", "%I", "%y", "%-d", "%_H", "%%", "%%S", "%T", "%c", "%Z"]
FORMS = st.lists(st.sampled_from([*PARTS, "%R", "%F", "%a", "%G-%V", " ", "-", "S", "é"]), max_size=5).map("".join)
NEAR = st.builds(
    lambda at, step: at + step,
    st.sampled_from([datetime.datetime.fromisoformat(at) for at in ("1970-01-01", "1900-03-01", "2026-12-31 23:00")]),
    st.builds(
        datetime.timedelta,
        hours=st.integers(-2, 2),
        minutes=st.integers(-1, 1),
        seconds=st.integers(-1, 1),
        microseconds=st.sampled_from([-1, 0, 1]),
    ),
)
ANY = st.datetimes() | NEAR


@given(st.lists(ANY, min_size=1, max_size=20), FORMS)
def test_a_time_as_text_is_that_of_python(times, form):
    columns = Columns(Types.SQL_TIMESTAMP(), pa.array(times, pa.timestamp("us")), None, pa.array(range(len(times))))
    found, _ = mapped(lambda time: time.strftime(form), columns, Types.STRING())
    assert found.to_pylist() == [time.strftime(form) for time in times]


@given(st.lists(st.dates(), min_size=1, max_size=20), FORMS)
def test_a_date_as_text_is_that_of_python(dates, form):
    columns = Columns(Types.SQL_DATE(), pa.array(dates, pa.date32()), None, pa.array(range(len(dates))))
    found, _ = mapped(lambda day: day.strftime(form), columns, Types.STRING())
    assert found.to_pylist() == [day.strftime(form) for day in dates]
