"""Small multiples: one small figure a family, all alike, so that families can be compared."""

from collections.abc import Iterator, Mapping

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from kassay.experiments.plotting import svg_figures as figures
from kassay.experiments.report.study_summary import Figures

MISSED, WASTEFUL = figures.EQUAL, figures.MIXED
_KINDS = (("missed", MISSED, "o", -0.16), ("wasteful", WASTEFUL, "s", 0.16))


def figures_by_family(families: Mapping[str, Mapping[str, Figures]]) -> Iterator[figures.Plot]:
    """Draw for each family how often each assignor falls short, with intervals.

    Parameters
    ----------
    families
        Figures by family, then by assignor.
    """
    for family, found in families.items():
        rows = [
            {
                "assignor": name,
                "outcome": kind,
                "count": share.count,
                "groups": share.total,
                "share": share.value,
                "low": share.interval[0],
                "high": share.interval[1],
            }
            for name, each in found.items()
            for kind, _, _, _ in _KINDS
            for share in [getattr(each, kind)]
        ]
        table = pd.DataFrame(rows)
        known = table[table["groups"] > 0]
        if known.empty:
            continue
        yield figures.Plot(
            name=f"family-{family}",
            title=family,
            svg=_draw(known, list(found), f"{family}: how often each assignor falls short"),
            csv=table.to_csv(index=False),
        )


def _draw(known: pd.DataFrame, names: list[str], title: str) -> str:
    height = 0.25 * len(names) + 0.42
    with mpl.rc_context(figures.STYLE):
        figure = Figure(figsize=(figures.WIDTH, height))
        axes = figure.add_axes((0.33, 0.3 / height, 0.635, 1 - 0.34 / height))
        for kind, colour, marker, shift in _KINDS:
            mine = known[known["outcome"] == kind]
            y = [names.index(name) + shift for name in mine["assignor"]]
            axes.hlines(y, mine["low"], mine["high"], color=colour, alpha=0.35, linewidth=2.5)
            axes.plot(mine["share"].astype(float), y, marker, color=colour, markersize=4)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(-0.015, 1.015)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 %"])
        axes.grid(visible=True, axis="x")
        return figures.svg_of(figure, title)
