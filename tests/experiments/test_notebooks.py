from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted(Path("experiments/notebooks").glob("*.ipynb"))
SECONDS = 300


def test_all_notebooks_are_found():
    assert len(NOTEBOOKS) >= 6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_contain_outputs_without_errors(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    assert outputs
    assert not [output for output in outputs if output.output_type == "error"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_in_any_directory(path, tmp_path):
    book = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=SECONDS, kernel_name="python3", resources=resources).execute()


@pytest.mark.parametrize("name", ["planning-a-scale-out", "weights-and-the-frontier"])
def test_notebooks_show_figures(name):
    book = nbformat.read(f"experiments/notebooks/{name}.ipynb", as_version=4)
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs)
