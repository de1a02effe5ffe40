"""Runs a quick study of every server from `tuner init` to its verdict, and writes a table.

    python -m benchmarks.servers --folder DIR [--rows NAME,…] [--table FILE] [--again] [-- OPTION…]

Rows that have a verdict in the folder are not run again, and a study that was interrupted resumes. A row
whose programs are missing, or whose host was too noisy, says so. Exit status 1 while one has no verdict.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.servers.rows import ROWS, choose_rows
from benchmarks.servers.run import Result, run_row
from benchmarks.servers.table import write_table


def main() -> int:
    """Run the rows one after the other; the table is written after each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="Where studies and results are kept.")
    parser.add_argument("--rows", default="", help="Names with commas between; all when left out.")
    parser.add_argument("--table", type=Path, help="File for the table.")
    parser.add_argument("--again", action="store_true", help="Forget the results of these rows.")
    parser.add_argument("options", nargs="*", help="Of `tuner run`; --preset quick when left out.")
    given = parser.parse_args()
    try:
        rows = choose_rows([name for name in given.rows.split(",") if name])
    except ValueError as error:
        parser.error(f"--rows: {error}")
    given.folder.mkdir(parents=True, exist_ok=True)
    table = given.table or given.folder / "table.md"
    results = []
    for row in rows:
        options = given.options or ["--preset", "quick"]
        results.append(run_row(row, given.folder, options=options, again=given.again))
        print(f"{row.title}: {results[-1].verdict or results[-1].reason}", flush=True)
        table.write_text(write_table(read_all(given.folder)))
    print(f"\n{write_table(results)}\n{table}")
    return int(any(not each.verdict for each in results))


def read_all(folder: Path) -> list[Result]:
    """Return all results of a folder, in the order of the rows."""
    found = (Result.read(folder / f"{row.name}.json") for row in ROWS)
    return [result for result in found if result is not None]


if __name__ == "__main__":
    sys.exit(main())
