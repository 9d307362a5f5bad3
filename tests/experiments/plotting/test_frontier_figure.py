import re

import pytest

from kassay.experiments.plotting.matplotlib_figures import (
    frontier_figure,
    frontier_svg,
    save_figure,
)
from kassay.experiments.plotting.svg_drawings import FrontierCurve


def ticks(svg: str) -> set[str]:
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return {text.replace(",", "") for text in texts if any(map(str.isdigit, text))}


@pytest.mark.parametrize("points", [[(0, 5)], [(4, 1003)], [(7, 0)], [(0, 5), (1, 4)], []])
def test_axes_of_a_plot_have_integer_ticks(points, tmp_path):
    figure = frontier_figure(FrontierCurve(points=points), measure="spread")
    save_figure(figure, tmp_path / "plot.svg")
    found = ticks((tmp_path / "plot.svg").read_text())
    assert {str(number) for point in points for number in point} <= found
    assert [tick for tick in found if not tick.isdecimal()] == []


def test_a_page_shows_points_bounds_and_the_list_of_moves():
    curve = FrontierCurve(
        points=[(0, 30), (2, 20)], bounds=[(0, 30), (2, 18)], prefixes=[(0, 30), (1, 24)]
    )
    svg = frontier_svg(curve, measure="sum_of_squares")
    assert 'aria-label="sum of squares from 30 at 0 moves to 20 at 2 moves"' in svg
    assert "lower bound" in svg
    assert "list of moves" in svg
