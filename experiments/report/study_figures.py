"""Figures of the study report: results per assignor and distributions of heuristic gaps."""

import math
import sys
from collections.abc import Iterator, Mapping
from functools import partial

import pandas as pd

from kassay.experiments.plotting.page_figures import Plot, dot_plot, stacked_bars
from kassay.experiments.plotting.page_templates import BLUE, ORANGE
from kassay.experiments.report.assignor_summary import AssignorSummary, Proportion
from kassay.experiments.study.summary_columns import SumColumn, assignors_of, families_of

_SUBSCRIPTIONS = {"equal": BLUE, "mixed": ORANGE}
_OUTCOMES: dict[str, str] = {SumColumn.MISSED: BLUE, SumColumn.WASTEFUL: ORANGE}


_NO_RESULT = "no result"
GAP_BINS = {"0": 0, "1–2": 1, "3–8": 3, "9–32": 9, "33 or more": 33, _NO_RESULT: sys.maxsize}
MOVE_BINS = {"0": 0, "1": 1, "2–3": 2, "4–7": 4, "8 or more": 8, _NO_RESULT: sys.maxsize}
"""Lowest number of unnecessary moves in each histogram bin, by the label of the bin.

The last bin contains the groups on which the assignor has no result.
"""


def subscription_plots(
    summaries: Mapping[str, tuple[AssignorSummary, AssignorSummary]],
) -> tuple[Plot, ...]:
    """Draw the results of each assignor, separately for equal and mixed subscriptions."""
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
    """Draw one figure per family: how often each assignor misses the optimum."""
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


def distributions(
    gaps: pd.DataFrame, gap: str, bins: Mapping[str, int], *, name: str
) -> Iterator[Plot]:
    """Draw one figure per assignor: the distribution of a heuristic gap in each family.

    ``gaps`` counts ``groups`` by ``gap``, ``family``, ``assignor`` and ``value``. The value is
    missing if the assignor has no result.
    """
    rows = gaps[gaps["gap"] == gap]
    for assignor in assignors_of(rows["assignor"]):
        counts = _count_in_bins(rows[rows["assignor"] == assignor], bins)
        yield Plot(
            name=f"{name}-{assignor}",
            title=assignor,
            caption="x: share of groups in %. y: family.",
            draw=partial(
                stacked_bars, counts, label=f"{name.replace('-', ' ')}, {assignor}, by family"
            ),
            csv=counts.to_csv(index_label="family"),
        )


def _dot_plot(
    shares: Mapping[tuple[str, str], Proportion],
    colours: Mapping[str, str],
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
                **dict(zip(("low", "high"), share.interval or (None, None), strict=True)),
            }
            for (assignor, kind), share in shares.items()
        ]
    )
    return Plot(
        name=name,
        title=title,
        caption="x: share of groups in %, with its 95 % confidence interval if the groups are a "
        "sample. y: assignor.",
        draw=partial(dot_plot, table, colours, label=f"{title}, by assignor"),
        csv=table.rename(columns={"series": series}).to_csv(index=False),
    )


def _count_in_bins(rows: pd.DataFrame, bins: Mapping[str, int]) -> pd.DataFrame:
    """Count the groups per family (rows) and histogram bin (columns)."""
    values = rows["value"].fillna(sys.maxsize).astype("int64")
    bin_of = pd.cut(values, [*bins.values(), math.inf], right=False, labels=list(bins))
    counts = pd.crosstab(
        rows["family"], bin_of, values=rows["groups"].astype("int64"), aggfunc="sum", dropna=False
    )
    return counts.fillna(0).astype(int).reindex(list(families_of(rows["family"])))
