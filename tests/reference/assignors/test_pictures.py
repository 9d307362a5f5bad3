"""The pictures in docs/ show what the ports do."""

import runpy
from pathlib import Path

import pytest

IMAGES = Path(__file__).parents[3] / "docs" / "images"
SCRIPT = runpy.run_path(str(IMAGES / "draw_assignors.py"))


@pytest.mark.parametrize("picture", SCRIPT["pictures"](), ids=lambda picture: picture.name)
def test_a_committed_picture_is_what_its_script_draws(picture: object) -> None:
    drawn = SCRIPT["draw"](picture)
    assert (IMAGES / f"{picture.name}.svg").read_text(encoding="utf-8") == drawn  # type: ignore[attr-defined]
