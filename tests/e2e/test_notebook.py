"""The notebooks: stored without output, and run for real."""

import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import tuner
from tests.testbed.processors import idle_processors_here

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
BUDGET = "minutes: 0.9"


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    return nbformat.read(request.param, as_version=4)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


def test_a_notebook_is_stored_without_output(notebook: nbformat.NotebookNode) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_a_notebook_uses_the_public_api_only(notebook: nbformat.NotebookNode) -> None:
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")

    imported = re.findall(r"^from (tuner[\w.]*) import (.+)", code, re.MULTILINE)
    assert imported
    for module, names in imported:
        assert module == "tuner"
        assert set(names.split(", ")) <= set(tuner.__all__)


def execute(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook as on a machine on which nothing else runs."""
    notebook = shortened(nbformat.read(path, as_version=4))
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    kernel = client.create_kernel_manager()
    with idle_processors_here() as through:
        _, *arguments = kernel.kernel_spec.argv
        kernel.kernel_spec.argv = [*through, sys.executable, *arguments]
        client.execute()
    return notebook


def shortened(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Give the study half of its time: nobody reads what it finds here."""
    for cell in notebook.cells:
        cell.source = cell.source.replace(BUDGET, BUDGET.replace("0.9", "0.45"))
    return notebook


def test_the_notebook_has_the_budget_that_is_shortened_here() -> None:
    assert any(BUDGET in cell.source for path in NOTEBOOKS for cell in nbformat.read(path, 4).cells)


@pytest.mark.filterwarnings("default")  # what Jupyter's own packages warn of is not ours
def test_the_study_of_threads_per_child_ends_with_the_best_value(tmp_path: Path) -> None:
    path = next(path for path in NOTEBOOKS if path.stem == "find_threads_per_child")
    notebook = execute(path, tmp_path)

    printed = "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream"
    )
    assert re.search(r"Best value for this machine: ThreadsPerChild \d+", printed)
    assert len(re.findall(r"\d+ threads  \d\.\d\d× \[", printed)) >= 2
    pictures = [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type in {"display_data", "execute_result"}
    ]
    assert any("application/vnd.plotly.v1+json" in picture.data for picture in pictures)
