"""Standardised marginal effects of covariates, from a regression model with strata.

The model is a Poisson regression with one intercept per stratum. Its covariates are the binary
logarithms of the numbers of members and of partitions, mixed subscriptions, and the kind of event.
An effect is the mean change of the predicted rate over all groups or rebalances of the model, if
one covariate changes and all others stay the same. The variance is a sandwich estimate: it is
valid if the counts are not Poisson distributed and if the rebalances of a stream depend on each
other.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from kassay.experiments.study.statistics.significance import UPPER_QUANTILE
from kassay.experiments.study.summary_columns import SumColumn

MEMBERS, PARTITIONS, MIXED = "members doubled", "partitions doubled", "mixed subscriptions"
_SLOPES = {MEMBERS: "members", PARTITIONS: "partitions"}
NO_EVENT = "none"
"""Kind of event of a stratum without events, which is in no contrast of events."""
_SEPARATING = ("stratum", "event", "mixed")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rate of a model: sum of a column divided by the sum of another, times a factor."""

    column: str
    per: str
    factor: float


OUTCOMES: Mapping[str, Outcome] = {
    "excess of the maximum load, %": Outcome(SumColumn.EXCESS_PPM, SumColumn.ANSWERED, 1e-4),
    "unnecessary moves per rebalance": Outcome(SumColumn.UNNECESSARY_MOVES, SumColumn.KNOWN, 1.0),
    "maximum load above the minimum, %": Outcome(
        SumColumn.ABOVE_MAXIMUM, SumColumn.ANSWERED, 100.0
    ),
    "with unnecessary moves, %": Outcome(SumColumn.WASTEFUL, SumColumn.KNOWN, 100.0),
}
"""Rates that are modelled: practical units first, then shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalEffect:
    """Change of a rate if one covariate changes, with a 95 % interval and a p-value."""

    assignor: str
    outcome: str
    contrast: str
    value: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalEffects:
    """Effects on one outcome of one assignor.

    Parameters
    ----------
    total, modelled
        Groups or rebalances with the outcome known, and those in the model. The model leaves out
        the levels of a covariate at which the outcome never occurs: their rate is 0.
    mean
        Rate over the groups or rebalances of the model.
    """

    assignor: str
    outcome: str
    total: int
    modelled: int
    mean: float
    effects: tuple[MarginalEffect, ...]


def marginal_effects(cells: pd.DataFrame, assignor: str, outcome: str) -> MarginalEffects:
    """Fit the model of one assignor and outcome, and compute the effects of its covariates.

    ``cells`` has sums by ``assignor``, ``stratum``, ``event``, ``mixed``, and the exponents
    ``members`` and ``partitions`` of powers of two. If a cell has a ``seed``, all cells of a
    stratum with this seed depend on each other. An event is compared with the most frequent one,
    over the groups with an event. There are no effects if the streams or the independent cells are
    not more than the coefficients of the model.
    """
    chosen = OUTCOMES[outcome]
    rows = cells[(cells["assignor"] == assignor) & (cells[chosen.per] > 0)]
    total = int(rows[chosen.per].sum())
    rows = _occurring(rows, chosen)
    modelled, ones = int(rows[chosen.per].sum()), float(rows[chosen.column].sum())
    return MarginalEffects(
        assignor=assignor,
        outcome=outcome,
        total=total,
        modelled=modelled,
        mean=chosen.factor * ones / modelled if modelled else math.nan,
        effects=tuple(_effects(rows, assignor, outcome)) if modelled else (),
    )


def _occurring(rows: pd.DataFrame, outcome: Outcome) -> pd.DataFrame:
    """Drop the levels of each categorical covariate at which the outcome never occurs."""
    before = -1
    while len(rows) != before:
        before = len(rows)
        for covariate in _SEPARATING:
            sums = rows.groupby(covariate)[outcome.column].transform("sum")
            rows = rows[sums > 0]
    return rows


def _effects(rows: pd.DataFrame, assignor: str, outcome: str) -> Iterator[MarginalEffect]:
    import statsmodels.api as sm  # noqa: PLC0415
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning  # noqa: PLC0415

    chosen = OUTCOMES[outcome]
    design, contrasts = _design(rows)
    clusters = _clusters(rows)
    if len(set(clusters)) <= design.shape[1]:
        return
    exposure = rows[chosen.per].to_numpy(np.float64)
    model = sm.GLM(
        rows[chosen.column].to_numpy(np.float64),
        design.to_numpy(),
        family=sm.families.Poisson(),
        offset=np.log(exposure),
    )
    with warnings.catch_warnings():
        # An exact fit is no separation: levels without the outcome are not in the model.
        warnings.simplefilter("ignore", PerfectSeparationWarning)
        fitted: Any = model.fit(cov_type="cluster", cov_kwds={"groups": clusters})
    beta, covariance = np.asarray(fitted.params), np.asarray(fitted.cov_params())
    weights = chosen.factor * exposure
    for contrast, (low, high) in contrasts.items():
        affected = (low != high).any(axis="columns").to_numpy()
        share = weights[affected] / exposure[affected].sum()
        value, gradient = 0.0, np.zeros(len(beta))
        for sign, matrix in ((1, high), (-1, low)):
            values = matrix.to_numpy()[affected]
            rates = share * np.exp(values @ beta)
            value, gradient = value + sign * float(rates.sum()), gradient + sign * (rates @ values)
        error = math.sqrt(max(0.0, float(gradient @ covariance @ gradient)))
        radius = float(norm.ppf(UPPER_QUANTILE)) * error
        yield MarginalEffect(
            assignor=assignor,
            outcome=outcome,
            contrast=contrast,
            value=value,
            low=value - radius,
            high=value + radius,
            p_value=float(2 * norm.sf(abs(value) / error)) if error else math.nan,
        )


def _clusters(rows: pd.DataFrame) -> NDArray[np.int64]:
    """Give each stream a number of its own, and each cell of independent groups."""
    keys = rows[["stratum", "seed"]].astype("object")
    alone = keys["seed"].isna()
    numbers = keys.groupby(["stratum", "seed"], dropna=False).ngroup().to_numpy(np.int64)
    return np.where(alone, len(rows) + np.arange(len(rows)), numbers)


def _design(
    rows: pd.DataFrame,
) -> tuple[pd.DataFrame, dict[str, tuple[pd.DataFrame, pd.DataFrame]]]:
    """Create the design matrix, and for each contrast the matrices before and after it."""
    design = pd.get_dummies(rows["stratum"].astype(str), prefix="stratum", dtype=float)
    events = _by_frequency(rows)
    for event in events[1:]:
        design[f"event {event}"] = (rows["event"] == event).astype(float)
    if len(set(rows["mixed"])) > 1:
        design[MIXED] = rows["mixed"].astype(float)
    contrasts = {}
    for contrast, column in _SLOPES.items():
        if len(set(rows[column])) > 1:
            design[contrast] = rows[column].astype(float)
    design = _independent(design)
    for contrast in (name for name in _SLOPES if name in design):
        contrasts[contrast] = (design, design.assign(**{contrast: design[contrast] + 1}))
    if MIXED in design:
        contrasts[MIXED] = (design.assign(**{MIXED: 0.0}), design.assign(**{MIXED: 1.0}))
    kinds = [name for name in (f"event {event}" for event in events[1:]) if name in design]
    base = design.assign(**dict.fromkeys(kinds, 0.0))
    has_event = (rows["event"] != NO_EVENT).astype(float)
    for kind in kinds:
        name = f"{kind.removeprefix('event ')} instead of {events[0]}"
        contrasts[name] = (base, base.assign(**{kind: has_event}))
    return design, contrasts


def _by_frequency(rows: pd.DataFrame) -> Sequence[str]:
    """Return the kinds of events, the most frequent first."""
    counts = rows[rows["event"] != NO_EVENT].groupby("event")["answered"].sum()
    return [str(name) for name in counts.sort_values(ascending=False, kind="stable").index]


def _independent(design: pd.DataFrame) -> pd.DataFrame:
    """Drop the columns that are linear combinations of earlier columns."""
    kept: list[str] = []
    for name in design.columns:
        if np.linalg.matrix_rank(design[[*kept, name]].to_numpy()) > len(kept):
            kept.append(name)
    return design[kept]
