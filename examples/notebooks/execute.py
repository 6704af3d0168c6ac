"""Run each notebook of this folder from top to bottom, in a kernel of its own, and compare it with what is stored.

A notebook is stored with its outputs. It must print the same text again, and show as many pictures. With `--write` the
new outputs are stored. Names of notebooks may follow: `execute.py first_windows --write`.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOKS = Path(__file__).parent
PATIENCE_S = 600
"""Seconds after which a cell is taken to hang."""
PICTURE = "image/svg+xml"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="the notebooks to run; without any, all of them")
    parser.add_argument("--write", action="store_true", help="store the outputs")
    arguments = parser.parse_args()

    paths = [NOTEBOOKS / f"{name}.ipynb" for name in arguments.names] or sorted(NOTEBOOKS.glob("*.ipynb"))
    wrong = []
    for path in paths:
        started = time.monotonic()
        stored = nbformat.read(path, as_version=4)
        try:
            executed = run(path)
        except CellExecutionError as error:
            print(error)
            wrong.append(path.stem)
            continue
        print(f"{path.stem:<26}{time.monotonic() - started:6.1f} s", flush=True)
        if arguments.write:
            nbformat.write(executed, path)
        elif shown(stored) != shown(executed):
            print(f"{path.name} shows something else than is stored; `./run notebooks --write` stores it:")
            for before, now in itertools.zip_longest(shown(stored), shown(executed)):
                if before != now:
                    print(f"stored:\n{before}\nnow:\n{now}")
            wrong.append(path.stem)
    return 1 if wrong else 0


def run(path: Path) -> nbformat.NotebookNode:
    """Execute a notebook in an empty folder; return it with outputs that tell nothing of the machine."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=PATIENCE_S,
            kernel_name="python3",
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":  # the JVM writes to standard error when it starts
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the text below each cell, with a word for each picture, which is another one each time."""
    return [
        "".join(
            output.text
            if output.output_type == "stream"
            else "a picture\n"
            if PICTURE in output.data
            else str(output.data)
            for output in cell.outputs
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


if __name__ == "__main__":
    sys.exit(main())
