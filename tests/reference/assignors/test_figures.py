"""Figures of the assignors in docs/images."""

import runpy
from pathlib import Path

import pytest

IMAGES = Path(__file__).parents[3] / "docs" / "images"
SCRIPT = runpy.run_path(str(IMAGES / "draw_assignors.py"))


@pytest.mark.parametrize("figure", SCRIPT["figures"](), ids=lambda figure: figure.name)
def test_committed_figures_are_up_to_date(figure) -> None:
    file = IMAGES / f"{figure.name}.svg"
    assert file.read_text(encoding="utf-8") == SCRIPT["draw"](figure)
