"""Figures of the counterexamples of each family in docs/images."""

import runpy

import pytest

from tests.conftest import ROOT

IMAGES = ROOT / "docs" / "images"
SCRIPT = runpy.run_path(str(IMAGES / "draw_families.py"))
FIGURES = SCRIPT["figures"]()
ABOVE = {
    "family-share": ("sum_of_squares", 10, 8),
    "family-streams": ("state_moves", 2, 0),
    "family-connect": ("task_topic_spread", 32, 16),
}
"""Measure that the assignor misses, with its value and the proven minimum."""


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_committed_figures_are_up_to_date(figure):
    file = IMAGES / f"{figure.name}.svg"
    assert file.read_text(encoding="utf-8") == SCRIPT["draw"](figure)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_the_assignor_misses_a_minimum_that_the_optimum_has(figure):
    answer, optimum = figure.compared
    name, value, minimum = ABOVE[figure.name]
    [missed] = [one for one in answer.measures if one.name == name]
    assert (missed.value, missed.minimum, missed.bound) == (value, minimum, minimum)
    assert not answer.invalid
    assert all(one.value == one.bound for one in optimum.measures)
