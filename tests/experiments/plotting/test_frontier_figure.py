import re

import pytest

from kassay.experiments.plotting.frontier_figure import FrontierCurve, frontier_svg


@pytest.mark.parametrize("points", [[(0, 5)], [(4, 1003)], [(7, 0)], [(0, 5), (1, 4)], []])
def test_axes_of_a_frontier_have_integer_ticks(points):
    texts = re.findall(
        r"<text[^>]*>([^<]*)</text>", frontier_svg(FrontierCurve(points=points), measure="spread")
    )
    ticks = {text for text in texts if any(letter.isdigit() for letter in text)}
    assert {str(number) for point in points for number in point} <= ticks
    assert [tick for tick in ticks if not tick.isdecimal()] == []
