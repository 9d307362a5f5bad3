"""Performance profiles and distributions: the share of groups within a factor, or a gap."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import ecdf

RATIOS = (1.0, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)


def profile(
    rows: pd.DataFrame, measure: str, *, assignors: Sequence[str], ratios: Sequence[float] = RATIOS
) -> pd.DataFrame:
    """Return the share of groups in which an assignor is within each ratio of the optimum.

    Both sides of the ratio are raised by one, for the optimum of most measures may be 0.
    An assignor that gave no answer is within no ratio.

    Parameters
    ----------
    rows
        Comparisons.
    measure
        Prefix of its columns, as ``makespan``.
    assignors, ratios
        Columns and index of the result.

    References
    ----------
    Dolan, Moré. "Benchmarking optimization software with performance profiles".
    Mathematical Programming 91, 2002.

    Examples
    --------
    >>> rows = pd.DataFrame(
    ...     {
    ...         "case": ["x", "y"],
    ...         "assignor": "range",
    ...         "proven": True,
    ...         "makespan_greedy": [1, 3],
    ...         "makespan_optimum": [1, 1],
    ...     }
    ... )
    >>> profile(rows, "makespan", assignors=["range"], ratios=[1, 2])["range"].tolist()
    [0.5, 1.0]
    """
    columns = ["case", "assignor", f"{measure}_greedy", f"{measure}_optimum"]
    proven = rows.loc[rows["proven"].fillna(value=False).astype(bool), columns]
    # A group counts if its least value is known, whether or not this assignor answered.
    optimum = proven.groupby("case", observed=True)[f"{measure}_optimum"].transform("max")
    known, optimum = proven[optimum.notna()], optimum.dropna()
    table = {}
    for name in assignors:
        mine = known[known["assignor"] == name]
        greedy = mine[f"{measure}_greedy"].astype("Float64").to_numpy(float, na_value=np.inf)
        least = optimum.loc[mine.index].to_numpy(float)
        ratio = (greedy + 1) / (least + 1)
        table[name] = [float((ratio <= bound).mean()) if len(ratio) else None for bound in ratios]
    return pd.DataFrame(table, index=pd.Index(ratios, name="ratio"))


def distribution(rows: pd.DataFrame, column: str, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return the empirical distribution function of a gap, in long form.

    Examples
    --------
    >>> rows = pd.DataFrame({"assignor": "range", "makespan_gap": [0, 0, 2, 1]})
    >>> distribution(rows, "makespan_gap", assignors=["range"])["share"].tolist()
    [0.5, 0.75, 1.0]
    """
    parts = []
    for name in assignors:
        values = rows.loc[rows["assignor"] == name, column].dropna().to_numpy(float)
        if len(values):
            found = ecdf(values).cdf
            parts.append(
                pd.DataFrame(
                    {
                        "assignor": name,
                        column: found.quantiles.astype(int),
                        "share": found.probabilities,
                    }
                )
            )
    return (
        pd.concat(parts, ignore_index=True)
        if parts
        else pd.DataFrame(columns=["assignor", column, "share"])
    )
