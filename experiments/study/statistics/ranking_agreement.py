"""Compare the rankings of assignors under different imbalance measures."""

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kassay.reference.model.metrics import MEASURES


def ranking_agreement(gap_sums: pd.DataFrame) -> pd.DataFrame:
    """Return the agreement of each pair of measures on the order of two assignors.

    The value is Kendall's tau-b over the pairs of assignors: 1 if both measures order all pairs
    in the same way. The order of two assignors depends on the groups on which both have a result,
    so that an assignor that fails on many groups does not exclude these groups for the others.

    ``gap_sums`` has the sums of each gap on these groups, ``one_MEASURE`` and ``two_MEASURE``,
    by the assignors ``one`` and ``two``.

    Examples
    --------
    >>> sums = {f"{side}_{m}": [1, 3] for m in MEASURES for side in ("one", "two")}
    >>> rows = pd.DataFrame({"one": ["a", "a"], "two": ["b", "c"], **sums}).assign(one_spread=2)
    >>> float(ranking_agreement(rows).loc["spread", "spread"])
    1.0
    """
    names = [str(name) for name in MEASURES]
    sums = gap_sums.drop(columns=["family", "scope"], errors="ignore").groupby(["one", "two"]).sum()
    signs = {
        name: np.sign((sums[f"one_{name}"] - sums[f"two_{name}"]).to_numpy(float)) for name in names
    }
    return pd.DataFrame(
        [[_tau(signs[one], signs[two]) for two in names] for one in names],
        index=pd.Index(names, name="measure"),
        columns=names,
    )


def _tau(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    untied = math.sqrt(float(one @ one) * float(two @ two))
    return round(float(one @ two) / untied, 12) if untied else math.nan
