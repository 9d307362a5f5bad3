"""Whether the order of the assignors hangs on how imbalance is measured."""

import math
from collections.abc import Sequence

import pandas as pd
from scipy.stats import kendalltau, spearmanr

from kassay.reference.model.metrics import MEASURES

PARAMETERS = ("members", "partitions", "owned", "mixed")


def mean_gaps(rows: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return each assignor's mean gap by each measure, over groups that all of them answered.

    Examples
    --------
    >>> gaps = {f"{name}_gap": [0, 4] for name in MEASURES}
    >>> rows = pd.DataFrame({"case": "x", "assignor": ["uniform", "range"], **gaps})
    >>> mean_gaps(rows, assignors=["uniform", "range"]).loc["range"].unique().tolist()
    [4.0]
    """
    columns = [f"{name}_gap" for name in MEASURES]
    known = rows[["case", "assignor", *columns]].dropna()
    answers = known.groupby("case", observed=True)["assignor"].nunique()
    shared = known[known["case"].isin(answers.index[answers == len(assignors)])]
    means = (
        shared.groupby("assignor", observed=True)[columns]
        .mean()
        .astype(float)
        .reindex(list(assignors))
    )
    return means.rename(columns=dict(zip(columns, map(str, MEASURES), strict=True)))


def agreement(gaps: pd.DataFrame) -> pd.DataFrame:
    """Return Kendall's tau-b between the orders that two measures put the assignors in.

    Not a number where a measure ties all of them.

    Examples
    --------
    >>> float(agreement(pd.DataFrame({"one": [1, 2], "two": [2, 1]})).loc["one", "two"])
    -1.0
    """
    names = list(gaps.columns)
    return pd.DataFrame(
        [[_tau(gaps[one], gaps[two]) for two in names] for one in names],
        index=pd.Index(names, name="measure"),
        columns=names,
    )


def _tau(one: pd.Series, two: pd.Series) -> float:
    if one.nunique() < 2 or two.nunique() < 2:
        return math.nan
    return round(float(kendalltau(one, two).statistic), 12)


def effects(rows: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return Spearman's rank correlation of each parameter with missing the least imbalance.

    Not a number where a parameter, or the outcome, is the same in all groups.

    Examples
    --------
    >>> rows = pd.DataFrame({name: [1, 2, 3, 4] for name in PARAMETERS})
    >>> rows = rows.assign(
    ...     assignor="range", proven=True, least_imbalance=[True, True, False, False]
    ... )
    >>> float(effects(rows, assignors=["range"]).loc["range", "members"].round(3))
    0.894
    """
    columns = ["assignor", "least_imbalance", *PARAMETERS]
    proven = rows.loc[rows["proven"].fillna(value=False).astype(bool), columns]
    table = {}
    for name in assignors:
        mine = proven[proven["assignor"] == name]
        missed = 1 - mine["least_imbalance"].fillna(value=False).astype(float)
        table[name] = [_rho(mine[parameter].astype(float), missed) for parameter in PARAMETERS]
    return pd.DataFrame.from_dict(table, orient="index", columns=list(PARAMETERS))


def _rho(one: pd.Series, two: pd.Series) -> float:
    if one.nunique() < 2 or two.nunique() < 2:
        return math.nan
    return float(spearmanr(one, two).statistic)
