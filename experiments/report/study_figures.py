"""Figures of the study report: shares per assignor and distributions of gaps."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from kassay.experiments.plotting.page_templates import BLUE, ORANGE
from kassay.experiments.plotting.svg_figures import DotStyle, Plot, dot_plot, stacked_bars
from kassay.experiments.report.study_summary import (
    AssignorSummary,
    Proportion,
    assignors_of,
    families_of,
)

_SUBSCRIPTIONS = {"equal": DotStyle(BLUE), "mixed": DotStyle(ORANGE)}
_OUTCOMES = {"missed": DotStyle(BLUE), "wasteful": DotStyle(ORANGE, "s")}
_DOTS_CAPTION = "x: share of groups in %, with its 95 % confidence interval. y: assignor."


@dataclass(frozen=True, slots=True)
class GapBins:
    """Ranges of a gap, both ends included; an end of None means no upper limit.

    Examples
    --------
    >>> MOVE_BINS.labels
    ['0', '1', '2–3', '4–7', '8 or more']
    """

    ranges: tuple[tuple[int, int | None], ...]

    @property
    def labels(self) -> list[str]:
        """Names of the ranges."""
        return [
            str(low) if low == high else f"{low} or more" if high is None else f"{low}–{high}"
            for low, high in self.ranges
        ]


GAP_BINS = GapBins(((0, 0), (1, 2), (3, 8), (9, 32), (33, None)))
MOVE_BINS = GapBins(((0, 0), (1, 1), (2, 3), (4, 7), (8, None)))


def subscription_plots(
    summaries: Mapping[str, tuple[AssignorSummary, AssignorSummary]],
) -> tuple[Plot, ...]:
    """Draw two shares of each assignor for groups with equal and with mixed subscriptions."""
    return tuple(
        _dot_plot(
            {
                (assignor, kind): getattr(summary, field)
                for assignor, pair in summaries.items()
                for kind, summary in zip(_SUBSCRIPTIONS, pair, strict=True)
            },
            _SUBSCRIPTIONS,
            series="subscriptions",
            name=name,
            title=title,
        )
        for field, name, title in (
            ("minimum_imbalance", "minimum-imbalance", "Groups with minimum imbalance"),
            ("with_unnecessary_moves", "unnecessary-moves", "Groups with unnecessary moves"),
        )
    )


def family_plots(families: Mapping[str, Mapping[str, AssignorSummary]]) -> Iterator[Plot]:
    """Draw for each family how often each assignor misses the two optima."""
    for family, summaries in families.items():
        shares = {
            (assignor, outcome): share
            for assignor, summary in summaries.items()
            for outcome, share in zip(
                _OUTCOMES, (summary.missed, summary.with_unnecessary_moves), strict=True
            )
        }
        if any(share.total for share in shares.values()):
            yield _dot_plot(
                shares, _OUTCOMES, series="outcome", name=f"family-{family}", title=family
            )


def distributions(rows: pd.DataFrame, column: str, bins: GapBins, *, name: str) -> Iterator[Plot]:
    """Draw the distribution of a gap per family as stacked bars, one figure per assignor."""
    for assignor in assignors_of(rows):
        known = rows.loc[(rows["assignor"] == assignor) & rows[column].notna(), ["family", column]]
        if known.empty:
            continue
        counts = _count_in_bins(known, column, bins)
        yield Plot(
            name=f"{name}-{assignor}",
            title=assignor,
            caption="x: share of groups in %. y: family.",
            svg=stacked_bars(counts, label=f"{name.replace('-', ' ')}, {assignor}, by family"),
            csv=counts.to_csv(index_label="family"),
        )


def _dot_plot(
    shares: Mapping[tuple[str, str], Proportion],
    styles: Mapping[str, DotStyle],
    *,
    series: str,
    name: str,
    title: str,
) -> Plot:
    table = pd.DataFrame(
        [
            {
                "assignor": assignor,
                "series": kind,
                "groups": share.total,
                "count": share.count,
                "share": share.value,
                "low": share.interval[0],
                "high": share.interval[1],
            }
            for (assignor, kind), share in shares.items()
        ]
    )
    return Plot(
        name=name,
        title=title,
        caption=_DOTS_CAPTION,
        svg=dot_plot(table, styles, label=f"{title}, by assignor"),
        csv=table.rename(columns={"series": series}).to_csv(index=False),
    )


def _count_in_bins(rows: pd.DataFrame, column: str, bins: GapBins) -> pd.DataFrame:
    """Count the groups per family (rows) and bin (columns)."""
    counts = pd.DataFrame(
        {
            label: rows[column].between(low, sys.maxsize if high is None else high).astype(int)
            for label, (low, high) in zip(bins.labels, bins.ranges, strict=True)
        }
    )
    return counts.groupby(rows["family"], observed=True).sum().reindex(list(families_of(rows)))
