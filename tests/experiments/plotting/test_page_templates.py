"""Tests of the templates that all HTML pages share."""

import re

import pandas as pd

from kassay.experiments.plotting.matplotlib_figures import Plot, dot_plot
from kassay.experiments.plotting.page_templates import BLUE, environment

SHARED = environment(autoescape=True)


def test_figures_have_the_colours_of_the_theme_on_pages_only():
    share = {"share": 0.5, "low": 0.4, "high": 0.6}
    rows = pd.DataFrame([{"assignor": "a", "subscriptions": "s", **share}])
    item = Plot(
        name="shares",
        title="Shares",
        caption="share",
        draw=lambda: dot_plot(rows, {"s": BLUE}, label="shares"),
        csv="",
    )
    page = SHARED.get_template("macros.html.j2").module.plot(item)
    assert BLUE in item.svg
    assert "var(--accent)" in page
    unknown = set(re.findall(r"var\((--\w+)\)", page + style())) - set(
        re.findall(r"(--\w+):", style())
    )
    assert not unknown


def style() -> str:
    return str(SHARED.globals["style"])
