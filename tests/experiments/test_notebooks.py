from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_contain_outputs_without_errors(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    assert outputs
    assert not [output for output in outputs if output.output_type == "error"]


def has_figure(book):
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    return any({"image/svg+xml", "image/png"} & output.get("data", {}).keys() for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_notebooks_contain_a_figure(path):
    assert has_figure(nbformat.read(path, as_version=4))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("path", short_and_long(QUICK_START, *OTHERS), ids=lambda path: path.stem)
def test_notebooks_run_in_any_directory_and_show_a_figure(path, tmp_path):
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        cell.pop("outputs", None)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    assert has_figure(book)
