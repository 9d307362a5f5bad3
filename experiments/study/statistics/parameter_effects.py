"""Effects of group and family parameters on how often an assignor misses the optimum.

Tables of counts have the columns ``groups`` with a proven optimum; ``missed``, of these groups
without minimum imbalance; ``known``, of these groups with owned partitions and known unnecessary
moves; ``wasteful``, of the known groups with unnecessary moves. Groups without a result of the
assignor are in none of them.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, t

CONFIDENCE = 0.95
MEASURED = ("members", "topics", "partitions", "partitions per member", "overlap", "owned")
"""Parameters that are numbers of a group.

``overlap`` is the mean share of members that subscribe to a topic; ``owned`` is the share of
partitions with an owner.
"""
CHOSEN = ("event", "shape", "weights", "racks", "mixed")
"""Parameters that are equal for all groups of a family."""
OUTCOMES = {"missed": "groups", "wasteful": "known"}
"""Outcomes of an assignor, with the column that counts the groups with this information."""
_COUNTS = ["groups", "missed", "known", "wasteful"]
_SHARES = ("overlap", "owned")
_LEVELS = [
    *("parameter", "level", "assignor", "outcome", "count", "groups", "share", "low", "high"),
    "within",
]


def levels(
    parameters: pd.DataFrame,
    outcomes: pd.DataFrame,
    *,
    families: Iterable[Mapping[str, object]] = (),
    assignors: Sequence[str],
) -> pd.DataFrame:
    """Return the frequency of each outcome per range of values of each parameter.

    Ranges of counts are powers of two, ranges of proportions are quarters. ``low`` and ``high``
    are the limits of Wilson's 95 % interval. ``within`` is the difference between the share at
    this level and the share at the other levels of the same family, averaged over the families
    by the method of Mantel and Haenszel. It does not depend on the families that a level
    contains, unlike the share. ``parameters`` has counts by ``family``, ``assignor``,
    ``parameter`` and ``value``; ``outcomes`` has counts by ``family``, ``mixed`` and ``assignor``;
    ``families`` are the parameters in the manifest.
    """
    result: list[tuple[object, ...]] = []
    for parameter, rows in _rows_by_parameter(parameters, outcomes, families):
        if rows.empty:
            continue
        counted = rows.assign(step=[_level(value, parameter) for value in rows["value"]])
        table = counted.groupby(["assignor", "step", "family"])[_COUNTS].sum()
        steps = sorted(set(counted["step"]), key=_sort_key)
        for step, assignor, outcome in itertools.product(steps, assignors, OUTCOMES):
            if (assignor, step) not in table.index:
                continue
            per_family: Any = table.loc[assignor]
            own = per_family.loc[step]
            count, groups = int(own[outcome].sum()), int(own[OUTCOMES[outcome]].sum())
            if groups:
                interval = binomtest(count, groups).proportion_ci(CONFIDENCE, method="wilson")
                names = (parameter, _level_name(step, parameter), assignor, outcome)
                share = (count / groups, float(interval.low), float(interval.high))
                within = _difference_within(own, per_family.groupby("family").sum(), outcome)
                result.append((*names, count, groups, *share, within))
    return pd.DataFrame(result, columns=_LEVELS)


def _difference_within(own: Any, families: Any, outcome: str) -> float:
    """Average the difference between a level and the other levels within each family."""
    ones, groups = own[outcome], own[OUTCOMES[outcome]]
    rest_ones = families[outcome].reindex(own.index) - ones
    rest = families[OUTCOMES[outcome]].reindex(own.index) - groups
    both = (groups > 0) & (rest > 0)
    if not both.any():
        return math.nan
    n, other = groups[both].astype(float), rest[both].astype(float)
    differences = ones[both].astype(float) / n - rest_ones[both].astype(float) / other
    weights = n * other / (n + other)
    return float((differences * weights).sum() / weights.sum())


def _rows_by_parameter(
    parameters: pd.DataFrame, outcomes: pd.DataFrame, families: Iterable[Mapping[str, object]]
) -> Iterable[tuple[str, pd.DataFrame]]:
    for parameter in MEASURED:
        yield parameter, parameters[parameters["parameter"] == parameter]
    chosen = {str(family["name"]): _chosen_parameters(family) for family in families}
    for parameter in CHOSEN:
        if parameter == "mixed":
            values = outcomes["mixed"].map({True: "yes", False: "no"})
        else:
            values = outcomes["family"].map(
                {name: found[parameter] for name, found in chosen.items() if parameter in found}
            )
        yield parameter, outcomes.assign(value=values).dropna(subset=["value"])


def within_families(parameters: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return Spearman's rank correlation of parameters with outcomes, for each family.

    Groups of one family differ in their seeds only, so that the choice of families does not
    affect the correlation. Combinations without variation are omitted. ``p_adjusted`` is the
    p-value adjusted for the number of rows. ``parameters`` has counts by ``family``,
    ``assignor``, ``parameter`` and ``value``.
    """
    columns = ["family", "parameter", "assignor", "outcome", "groups", "rho", "p_value"]
    result: list[tuple[object, ...]] = []
    for (family, assignor), own in parameters.groupby(["family", "assignor"], observed=True):
        if assignor not in assignors:
            continue
        parts = dict(iter(own.groupby("parameter")))
        for outcome, parameter in itertools.product(OUTCOMES, MEASURED):
            if parameter not in parts:
                continue
            part = parts[parameter]
            groups = int(part[OUTCOMES[outcome]].sum())
            rho, p_value = rank_correlation(part["value"], part[OUTCOMES[outcome]], part[outcome])
            if not math.isnan(rho):
                result.append((family, parameter, assignor, outcome, groups, rho, p_value))
    table = pd.DataFrame(result, columns=columns)
    return table.assign(p_adjusted=_holm(table["p_value"].tolist()))


def _holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for the number of tests, by Holm's method.

    Examples
    --------
    >>> _holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def rank_correlation(values: pd.Series, groups: pd.Series, ones: pd.Series) -> tuple[float, float]:
    """Return Spearman's correlation of values with a binary outcome, and the p-value.

    The groups with a value have the same mean rank, and so have the groups with an outcome.
    NaN if the value or the outcome is the same for all groups.

    Parameters
    ----------
    values, groups, ones
        Values, the number of groups with each value, and how many of them have the outcome.

    Examples
    --------
    >>> rank_correlation(pd.Series([1, 2, 3]), pd.Series([2, 1, 1]), pd.Series([0, 1, 1]))[0]
    0.9...
    """
    counts = pd.DataFrame({"n": groups.astype(float), "ones": ones.astype(float)})
    counts = counts.groupby(values.astype(float).to_numpy()).sum()
    counts = counts[counts["n"] > 0]
    n, yes = float(counts["n"].sum()), float(counts["ones"].sum())
    if len(counts) < 2 or yes in (0.0, n):
        return math.nan, math.nan
    # Deviations of the ranks from their mean (n + 1) / 2.
    ranks = counts["n"].cumsum() - counts["n"] / 2 - n / 2
    low, high = -yes / 2, (n - yes) / 2
    covariance = float(
        (ranks * ((counts["n"] - counts["ones"]) * low + counts["ones"] * high)).sum()
    )
    variance = float((counts["n"] * ranks**2).sum()) * ((n - yes) * low**2 + yes * high**2)
    rho = max(-1.0, min(1.0, covariance / math.sqrt(variance)))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = rho * np.sqrt(np.float64(n - 2) / ((1 + rho) * (1 - rho)))
    return rho, float(2 * t.sf(abs(statistic), n - 2))


def _chosen_parameters(family: Mapping[str, object]) -> dict[str, str]:
    """Return the parameters that a family sets for all of its groups, as text."""
    base = family.get("base")
    chosen = _chosen_parameters({"name": "", **base}) if isinstance(base, Mapping) else {}
    for name in CHOSEN:
        value = family.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            chosen[name] = str(value)
    if "event" not in chosen and int(str(family.get("steps", 1))) > 1:
        chosen["event"] = "several"
    return chosen


def _sort_key(level: float | str) -> tuple[float, str]:
    return (0.0, level) if isinstance(level, str) else (level, "")


def _level(value: object, parameter: str) -> float | str:
    if parameter in CHOSEN:
        return str(value)
    number = float(str(value))
    if parameter in _SHARES:
        return math.ceil(round(4 * number, 9))
    return max(0, math.floor(math.log2(number))) if number > 0 else -1


def _level_name(key: object, parameter: str) -> str:
    if parameter in CHOSEN:
        return str(key)
    step = int(str(key))
    if parameter in _SHARES:
        return f"{25 * step - 25}–{25 * step} %" if step > 0 else "0 %"
    return f"{2**step}–{2 ** (step + 1) - 1}" if step > 0 else str(step + 1)
