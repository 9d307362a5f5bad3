from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import kassay
from tests.tiers import short_and_long

NOTEBOOKS = sorted(Path("experiments/notebooks").glob("*.ipynb"))
(QUICK_START,) = (path for path in NOTEBOOKS if path.stem == "quick-start")
OTHERS = [path for path in NOTEBOOKS if path != QUICK_START]
SECONDS = 300


def test_the_page_of_the_notebooks_lists_each_of_them():
    page = Path("docs/notebooks.md").read_text(encoding="utf-8")
    site = Path("docs/index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) >= 8
    for path in NOTEBOOKS:
        assert f"(../{path})" in page
        assert f"../{path.with_suffix('')}\n" in site


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def has_figure(cells):
    outputs = [output for cell in cells for output in cell.outputs]
    return any({"image/svg+xml", "image/png"} & output.get("data", {}).keys() for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_notebooks_contain_a_figure_and_no_errors(path):
    cells = code_cells(path)
    assert has_figure(cells)
    assert "error" not in {output.output_type for cell in cells for output in cell.outputs}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_first_cells_find_the_examples_if_kassay_is_installed_elsewhere(path, monkeypatch):
    cell = code_cells(path)[0]
    monkeypatch.setattr(kassay, "__file__", "/site-packages/kassay/__init__.py")
    monkeypatch.chdir(path.parent)
    exec(cell.source, {"__name__": "__main__"})


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("path", short_and_long(QUICK_START, *OTHERS), ids=lambda path: path.stem)
def test_notebooks_run_in_their_folder_and_show_a_figure(path):
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        cell.pop("outputs", None)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(book, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    assert has_figure(cell for cell in book.cells if cell.cell_type == "code")
