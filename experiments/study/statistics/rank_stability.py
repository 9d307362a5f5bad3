"""Compare the rankings of assignors under different imbalance measures."""

from collections.abc import Sequence

import pandas as pd
from scipy.stats import kendalltau

from kassay.reference.model.metrics import MEASURES


def mean_gaps(gap_sums: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return the mean heuristic gap per assignor and measure, over groups with all gaps known.

    ``gap_sums`` has the number of these ``groups`` and the sum of each gap by ``assignor``.
    """
    sums = gap_sums.set_index("assignor")
    means = sums[[f"{name}_gap" for name in MEASURES]].astype(float)
    means = means.div(sums["groups"].astype(float), axis="index")
    means.columns = [str(name) for name in MEASURES]
    return means.reindex(list(assignors))


def agreement(gaps: pd.DataFrame) -> pd.DataFrame:
    """Return Kendall's tau-b between the assignor rankings of each pair of measures."""
    names = list(gaps.columns)
    return pd.DataFrame(
        [
            [round(float(kendalltau(gaps[one], gaps[two]).statistic), 12) for two in names]
            for one in names
        ],
        index=pd.Index(names, name="measure"),
        columns=names,
    )
