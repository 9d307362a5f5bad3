"""Performance profiles and distributions of gaps."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import ecdf

from kassay.experiments.study.statistics.parameter_effects import proven_rows

RATIOS = (1.0, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)


def profile(
    rows: pd.DataFrame, measure: str, *, assignors: Sequence[str], ratios: Sequence[float] = RATIOS
) -> pd.DataFrame:
    """Return the share of groups in which an assignor is within each ratio of the optimum.

    Both sides of the ratio are increased by one, because the optimum of most measures can be 0.
    An assignor without a result is within no ratio. ``measure`` is a prefix of columns.

    References
    ----------
    Dolan, Moré. "Benchmarking optimization software with performance profiles".
    Mathematical Programming 91, 2002.

    Examples
    --------
    >>> rows = pd.DataFrame({"case": ["x", "y"], "assignor": "range", "proven": True})
    >>> rows = rows.assign(makespan_greedy=[1, 3], makespan_optimum=1)
    >>> profile(rows, "makespan", assignors=["range"], ratios=[1, 2])["range"].tolist()
    [0.5, 1.0]
    """
    columns = ["case", "assignor", f"{measure}_greedy", f"{measure}_optimum"]
    proven = proven_rows(rows)[columns]
    # A group counts if its optimum is known, even if this assignor has no result.
    optimum = proven.groupby("case", observed=True)[f"{measure}_optimum"].transform("max")
    known, optimum = proven[optimum.notna()], optimum.dropna()
    table = {}
    for name in assignors:
        part = known[known["assignor"] == name]
        greedy = part[f"{measure}_greedy"].astype("Float64").to_numpy(float, na_value=np.inf)
        least = optimum.loc[part.index].to_numpy(float)
        ratio = (greedy + 1) / (least + 1)
        table[name] = [float((ratio <= bound).mean()) if len(ratio) else None for bound in ratios]
    return pd.DataFrame(table, index=pd.Index(ratios, name="ratio"))


def distribution(rows: pd.DataFrame, column: str, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return the empirical distribution function of a gap, in long form."""
    parts = [pd.DataFrame(columns=["assignor", column, "share"])]
    for name in assignors:
        values = rows.loc[rows["assignor"] == name, column].dropna().to_numpy(float)
        if len(values):
            cdf = ecdf(values).cdf
            quantiles = cdf.quantiles.astype(int)
            parts.append(
                pd.DataFrame({"assignor": name, column: quantiles, "share": cdf.probabilities})
            )
    return pd.concat(parts[1:] or parts, ignore_index=True)
