"""Figures of the counterexamples of each kind of groups in docs/images."""

import runpy

import pytest

from tests.conftest import ROOT

IMAGES = ROOT / "docs" / "images"
ABOVE = {
    "kind-share": ("sum_of_squares", 10, 8),
    "kind-streams": ("state_moves", 1, 0),
    "kind-streams-group": ("stateful_sum_of_squares", 4, 2),
    "kind-connect": ("task_topic_spread", 5, 3),
}
"""Measure that the assignor misses, with its value and the proven minimum."""


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(IMAGES / "draw_kinds.py"))


@pytest.fixture(scope="module")
def figures(script):
    return {figure.name: figure for figure in script["figures"]()}


def test_every_figure_has_a_measure(figures):
    assert figures.keys() == ABOVE.keys()


@pytest.mark.parametrize("name", ABOVE)
def test_committed_figures_are_up_to_date(script, figures, name):
    file = IMAGES / f"{name}.svg"
    assert file.read_text(encoding="utf-8") == script["draw"](figures[name])


@pytest.mark.parametrize("figure", ABOVE)
def test_the_assignor_misses_a_minimum_that_the_optimum_has(figures, figure):
    answer, optimum = figures[figure].compared
    name, value, minimum = ABOVE[figure]
    [missed] = [one for one in answer.measures if one.name == name]
    assert (missed.value, missed.minimum, missed.bound) == (value, minimum, minimum)
    assert not answer.invalid
    proven = [one for one in optimum.measures if one.bound is not None]
    assert all(one.value == one.bound for one in proven)
