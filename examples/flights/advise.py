"""How large must the bound be for the flights? What the reports of a year say: `python examples/flights/advise.py`.

    python examples/flights/advise.py [--days N] [--picture FILE]

Writes the reports in the order of their arrival, measures how far they are out of order, prints what follows, and draws
the curve.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from flights import SCHEMA, read_reports

from eventide.advisor import advise


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how far the reports of flights are out of order.")
    parser.add_argument("--days", type=int, default=365, choices=range(1, 366), metavar="1..365", help="days of 2013")
    parser.add_argument("--picture", type=Path, default=Path("build/advise-flights.png"), help="the file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flights-") as folder:
        path = Path(folder) / "reports.parquet"
        rows = read_reports(options.days).rows.reindex(columns=SCHEMA.names)
        pq.write_table(pa.Table.from_pandas(rows, SCHEMA, preserve_index=False), path)
        advice = advise(path, time="took_off", split_by="origin", order_by="reported")
    print(advice)
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    advice.plot(options.picture)
    print(f"\nThe curve is in {options.picture}")


if __name__ == "__main__":
    main()
