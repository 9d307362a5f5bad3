"""Performance profiles of assignors, and distributions of their heuristic gaps."""

from collections.abc import Sequence

import pandas as pd

PROFILED = ("sum_of_squares", "makespan", "movement")
"""Measures with a performance profile."""
RATIOS = (1.0, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)


def profile(profiles: pd.DataFrame, measure: str, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return the fraction of groups on which each assignor is within a ratio of the optimum.

    Both sides of the ratio are increased by one, because the optimum of most measures can be 0.
    A group counts if its optimum is known, even if the assignor has no result; then it is
    within no ratio. For movement, only groups with owned partitions count, and the optimum is the
    minimum at the imbalance of the assignor. ``profiles`` has the number of ``groups`` and the
    groups ``within_0``, ``within_1``, … of `RATIOS`, by ``measure`` and ``assignor``.

    References
    ----------
    Dolan, Moré. "Benchmarking optimization software with performance profiles".
    Mathematical Programming 91, 2002.
    """
    within = [f"within_{place}" for place in range(len(RATIOS))]
    own = profiles[profiles["measure"] == measure].groupby("assignor")[["groups", *within]].sum()
    counts = own[within].astype(float)
    shares = counts.div(own["groups"].astype(float), axis="index").T.reindex(
        columns=list(assignors)
    )
    return shares.set_axis(pd.Index(RATIOS, name="ratio"), axis="index").rename_axis(columns=None)


def distribution(gaps: pd.DataFrame, column: str, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return the empirical distribution function of a heuristic gap, per assignor.

    ``gaps`` counts ``groups`` by ``gap``, ``assignor`` and ``value``. The value is missing for
    groups without a result: they count in the total, so that the shares end below 1.

    Examples
    --------
    >>> gaps = pd.DataFrame({"gap": "moves", "assignor": "range", "value": [0, 2]})
    >>> distribution(gaps.assign(groups=[3, 1]), "moves", assignors=["range"])["share"].tolist()
    [0.75, 1.0]
    """
    own = gaps[gaps["gap"] == column]
    parts = [pd.DataFrame(columns=["assignor", column, "share"])]
    for name in assignors:
        rows = own[own["assignor"] == name]
        counts = rows.dropna(subset=["value"]).groupby("value")["groups"].sum()
        if len(counts):
            shares = (counts.cumsum() / rows["groups"].sum()).astype(float).to_numpy()
            values = counts.index.astype(int)
            parts.append(pd.DataFrame({"assignor": name, column: values, "share": shares}))
    return pd.concat(parts[1:] or parts, ignore_index=True)
