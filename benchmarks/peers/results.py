"""The results: what each program should give, and what it gave."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.peers.events import Events
from benchmarks.peers.programs.contract import GAP_MS, LEAST_VALUE, WINDOW_MS, WITHIN_MS

COLUMNS = {
    "stateless": ["user", "doubled"],
    "tumbling": ["user", "start", "total"],
    "sessions": ["user", "start", "total"],
    "process": ["user", "start", "highest"],
    "join": ["event", "value", "other"],
}
"""The columns of the results of each program."""

_OPEN_MS = 2 * WINDOW_MS
"""Results that begin less than this before the end are not compared: some engines close windows only when later events
come, and the end of the input closes none."""


def expected(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Results of a correct engine, computed by pandas from all events at once."""
    events, answers = tables["events"], tables["answers"]
    large = events[events["value"] >= LEAST_VALUE]
    periods = events.assign(start=events["at"] - events["at"] % WINDOW_MS).groupby(["user", "start"])["value"]
    ordered = events.sort_values(["user", "at"])
    new = (ordered["user"] != ordered["user"].shift()) | (ordered["at"].diff() > GAP_MS)
    by_session = ordered.groupby(new.cumsum())
    pairs = events.merge(answers, on="event", suffixes=("", "_of_answer"))
    waited = pairs["at_of_answer"] - pairs["at"]
    in_time = pairs[(waited >= 0) & (waited <= WITHIN_MS)]
    return {
        "stateless": pd.DataFrame({"user": large["user"].str.upper(), "doubled": large["value"] * 2}),
        "tumbling": periods.sum().reset_index(name="total"),
        "sessions": by_session.agg(user=("user", "first"), start=("at", "first"), total=("value", "sum")),
        "process": periods.max().reset_index(name="highest"),
        "join": in_time[["event", "value", "value_of_answer"]].rename(columns={"value_of_answer": "other"}),
    }


def written(program: str, folder: Path) -> pd.DataFrame:
    """Rows that an engine has written below a folder: Parquet, or lines of CSV with or without a heading."""
    columns = COLUMNS[program]
    tables = [pd.read_parquet(path) for path in sorted(folder.rglob("*.parquet"))]
    if not tables:
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]
        files = [path for path in files if path.parent.name != "_eventide"]  # the file that names its job
        tables = [_lines(path, columns) for path in files]
    rows = pd.concat(tables)
    if "window" in rows:
        starts = rows.pop("window").map(lambda window: window["start"])
        rows["start"] = pd.to_datetime(starts, utc=True).astype("datetime64[ms, UTC]").astype("int64")
    return rows[columns]


def _lines(path: Path, columns: list[str]) -> pd.DataFrame:
    with path.open() as file:
        has_heading = columns[0] in file.readline().replace('"', "").split(",")
    return pd.read_csv(path) if has_heading else pd.read_csv(path, names=columns)


def check(program: str, found: pd.DataFrame, wanted: pd.DataFrame, recipe: Events) -> int:
    """Compare two tables row by row; return how many rows that are.

    Raises:
        ValueError: with some of the rows that differ.
    """
    one, other = (_comparable(rows, recipe) for rows in (found, wanted))
    if one.equals(other):
        return len(one)
    counts = pd.concat([one.assign(of=1), other.assign(of=-1)]).groupby(COLUMNS[program])["of"].sum()
    more, less = counts[counts > 0], counts[counts < 0]
    raise ValueError(
        f"{program}: of {len(other)} rows, {-less.sum()} are missing, such as {less.index[:3].tolist()}, and "
        f"{more.sum()} are too many, such as {more.index[:3].tolist()}"
    )


def _comparable(rows: pd.DataFrame, recipe: Events) -> pd.DataFrame:
    if "start" in rows:
        rows = rows[rows["start"] < recipe.end_ms - _OPEN_MS]
    whole = rows.astype({name: "int64" for name in rows.columns if name not in ("user", "event")})
    return whole.sort_values(list(rows.columns)).reset_index(drop=True)
