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
SHORTER = {
    "minutes=4": "values=[16, 64], minutes=0.5",
    "minutes: 5": "minutes: 1.2",
    'ASKED = ["A", "B", "C", "D", "E", "E images"]': 'ASKED = ["C", "E"]',
    "blocks=8": "blocks=3",
    "MINUTES = 5": "MINUTES = 0.4",
    'OPTIMIZERS = ["noisy-gp", "tpe", "random"]': 'OPTIMIZERS = ["noisy-gp", "random"]',
    "SEEDS = [1, 2]": "SEEDS = [1]",
    "space: [nginx]\ntarget: {{": "space: [nginx, {{only: [keepalive_requests]}}, {{parameters: "
    "{{keepalive_requests: {{low: 1, high: 10, special: {{usual: 1000}}, default: usual}}}}}}]\ntarget: {{",
    "keepalive_requests, open_file_cache]}]": "keepalive_requests]}, {parameters: {keepalive_requests: "
    "{low: 3, default: 3}}}]",
}
"""What takes minutes in a notebook, and what it is here: nobody reads what it finds. Where a gain has to be
proven, the default makes connections all the time, so that any machine proves one in seconds. Where searches
are compared, every other value does: there is no gain whose confirmation takes longer than all else."""


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
    """Give what is measured a part of its time."""
    for cell in notebook.cells:
        for long, short in SHORTER.items():
            cell.source = cell.source.replace(long, short)
    return notebook


def test_every_notebook_has_a_budget_that_is_shortened_here() -> None:
    for path in NOTEBOOKS:
        sources = [cell.source for cell in nbformat.read(path, 4).cells]
        assert any(budget in source for source in sources for budget in SHORTER), path


def test_what_is_shortened_stands_in_a_notebook() -> None:
    everything = "".join(cell.source for path in NOTEBOOKS for cell in nbformat.read(path, 4).cells)

    assert [budget for budget in SHORTER if budget not in everything] == []


def printed_by(notebook: nbformat.NotebookNode) -> str:
    return "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream"
    )


def find_path(stem: str) -> Path:
    return next(path for path in NOTEBOOKS if path.stem == stem)


@pytest.mark.more
@pytest.mark.filterwarnings("default")  # what Jupyter's own packages warn of is not ours
def test_the_sweep_of_threads_per_child_ends_with_what_to_set(tmp_path: Path) -> None:
    notebook = execute(find_path("find_threads_per_child"), tmp_path)

    printed = printed_by(notebook)
    assert re.search(r"(Keep ThreadsPerChild at \d+|Set ThreadsPerChild to \d+): ", printed.splitlines()[-1])
    assert len(re.findall(r"\d+ threads  \d\.\d\d× \[", printed)) == 3
    pictures = [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type in {"display_data", "execute_result"}
    ]
    assert any("application/vnd.plotly.v1+json" in picture.data for picture in pictures)


@pytest.mark.more
@pytest.mark.filterwarnings("default")
def test_the_explanation_of_a_study_ends_with_what_to_do(tmp_path: Path) -> None:
    notebook = execute(find_path("explain_sensitivity"), tmp_path)

    printed = printed_by(notebook)
    assert re.search(r"^from \d+ trials$", printed, re.MULTILINE)
    assert re.search(r"^cannot act: ", printed, re.MULTILINE)
    assert re.search(r"^To do: \w.+\.$", printed.splitlines()[-1])


@pytest.mark.more
@pytest.mark.filterwarnings("default")
def test_an_export_is_undone_byte_for_byte(tmp_path: Path) -> None:
    notebook = execute(find_path("export_and_undo"), tmp_path)

    printed = printed_by(notebook)
    assert re.search(r"^active: shipped: ", printed, re.MULTILINE)
    # Which settings win is the measurement's to say.
    assert re.search(r"^\+\t\w+ [^;]+;$", printed, re.MULTILINE)
    assert "changed: nginx.conf\n" in printed
    assert "kept: True\n" in printed
    assert re.search(r"all \d+ files are as they were, byte for byte\.$", printed.splitlines()[-1])


@pytest.mark.more
@pytest.mark.filterwarnings("default")
def test_optimizers_end_with_who_is_ahead_of_whom(tmp_path: Path) -> None:
    notebook = execute(find_path("compare_optimizers"), tmp_path)

    printed = printed_by(notebook)
    assert (
        len(
            re.findall(
                r"^(?:noisy-gp|random) 1 +\d+ tried, +\d+\.\d s for suggestions; ", printed, re.MULTILINE
            )
        )
        == 2
    )
    assert len(re.findall(r"\d\.\d\d× \[.*\] of the default$", printed, re.MULTILINE)) == 2
    assert re.search(
        r"^noisy-gp is (ahead of|behind|not told apart from) random: \d\.\d\d× \[", printed.splitlines()[-1]
    )


@pytest.mark.more
@pytest.mark.filterwarnings("default")
def test_the_articles_end_with_which_of_their_conclusions_hold(tmp_path: Path) -> None:
    notebook = execute(find_path("the_articles_revisited"), tmp_path)

    printed = printed_by(notebook)
    verdict = r"(holds|turned round|does not tell)"
    claimed = re.findall(rf"^([CE])  .* then .* now .* {verdict}$", printed, re.MULTILINE)
    assert [letter for letter, _ in claimed] == ["C", "C", "E", "E"]
    assert len(re.findall(rf"^{verdict}: \d of 4$", printed, re.MULTILINE)) == 3
    assert len(re.findall(r"min \d.* mean \d.* max \d", printed)) == 3
