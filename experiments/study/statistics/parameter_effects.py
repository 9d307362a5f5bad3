"""Effects of the families' parameters on how often an assignor misses the optimum."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import binomtest, spearmanr

CONFIDENCE = 0.95
MEASURED = ("members", "topics", "partitions", "partitions per member", "overlap", "owned")
"""Parameters that are numbers of a group."""
CHOSEN = ("event", "shape", "weights", "racks", "mixed")
"""Parameters that are equal for all groups of a family."""
OUTCOMES = ("missed", "wasteful")
PARAMETERS = ("members", "partitions", "owned", "mixed")
"""Parameters of `effects`."""
_SHARES = ("overlap", "owned")
_LEVELS = ["parameter", "level", "assignor", "outcome", "count", "groups", "share", "low", "high"]


def proven_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons with a proven optimum."""
    return rows[rows["proven"].fillna(value=False).astype(bool)]


def with_parameters(
    rows: pd.DataFrame, families: Iterable[Mapping[str, object]] = ()
) -> pd.DataFrame:
    """Return the comparisons with a proven optimum, with a column per parameter and outcome.

    ``overlap`` is the mean share of members that subscribe to a topic; it is absent in tables
    without the number of subscriptions. ``owned`` is the share of partitions with an owner.
    ``missed`` is 1 if the assignor misses the minimum imbalance. ``wasteful`` is 1 if it makes
    unnecessary moves, and missing if that is not known or nothing was owned. ``families`` are
    the parameters in the manifest.
    """
    proven = proven_rows(rows)
    members = _floats(proven, "participants")
    partitions = _floats(proven, "partitions")
    topics = _floats(proven, "consumed" if "consumed" in proven else "topics")
    result = proven[["assignor", "family"]].assign(
        members=members,
        topics=topics,
        partitions=partitions,
        owned=_floats(proven, "owned") / partitions,
    )
    result["partitions per member"] = partitions / members
    if "subscriptions" in proven:
        result["overlap"] = _floats(proven, "subscriptions") / (members * topics)
    chosen = {str(family["name"]): _chosen_parameters(family) for family in families}
    for name in CHOSEN[:-1]:
        result[name] = proven["family"].map(
            {family: values[name] for family, values in chosen.items() if name in values}
        )
    result["mixed"] = proven["mixed"].map({True: "yes", False: "no"})
    result["missed"] = _missed(proven)
    moves = _floats(proven, "unnecessary_moves")
    known = moves.notna() & (result["owned"] > 0)
    return result.assign(wasteful=(moves > 0).astype(float).where(known))


def levels(rows: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return the frequency of each outcome per level of each parameter, in long form.

    The levels of counts are octaves, those of shares are quarters. ``low`` and ``high`` are
    Wilson's 95 % interval. ``rows`` is a result of `with_parameters`.
    """
    result: list[tuple[object, ...]] = []
    for parameter in (*MEASURED, *CHOSEN):
        if parameter not in rows:
            continue
        known = rows.loc[rows[parameter].notna(), [parameter, "assignor", *OUTCOMES]]
        level = _levels_of(known[parameter], parameter)
        parts = known.groupby([level, "assignor"], observed=True)[list(OUTCOMES)]
        sums, counts = parts.sum(), parts.count()
        for key, assignor, outcome in itertools.product(sorted(set(level)), assignors, OUTCOMES):
            groups = int(counts[outcome].get((key, assignor), 0))
            if groups:
                count = int(sums.loc[(key, assignor), outcome])
                interval = binomtest(count, groups).proportion_ci(CONFIDENCE, method="wilson")
                names = (parameter, _level_name(key, parameter), assignor, outcome)
                share = (count / groups, float(interval.low), float(interval.high))
                result.append((*names, count, groups, *share))
    return pd.DataFrame(result, columns=_LEVELS)


def within_families(rows: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return Spearman's rank correlation of parameters with outcomes per family.

    Groups of one family differ in their seeds only, so that the choice of families does not
    affect the correlation. Combinations without variation are omitted.
    """
    columns = ["family", "parameter", "assignor", "outcome", "groups", "rho", "p_value"]
    parameters = [parameter for parameter in MEASURED if parameter in rows]
    result = []
    for (family, assignor), part in rows.groupby(["family", "assignor"], observed=True):
        if assignor not in assignors:
            continue
        for outcome, parameter in itertools.product(OUTCOMES, parameters):
            pairs = part[[parameter, outcome]].dropna().astype(float)
            rho, p_value = _rank_correlation(pairs[parameter], pairs[outcome])
            if not math.isnan(rho):
                result.append((family, parameter, assignor, outcome, len(pairs), rho, p_value))
    return pd.DataFrame(result, columns=columns)


def effects(rows: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return Spearman's rank correlation of parameters with a missed minimum imbalance.

    NaN if the parameter or the outcome does not vary.
    """
    proven = proven_rows(rows)
    table = {}
    for name in assignors:
        part = proven[proven["assignor"] == name]
        missed = _missed(part)
        table[name] = [
            _rank_correlation(part[parameter].astype(float), missed)[0] for parameter in PARAMETERS
        ]
    return pd.DataFrame.from_dict(table, orient="index", columns=list(PARAMETERS))


def _rank_correlation(one: pd.Series, two: pd.Series) -> tuple[float, float]:
    """Return Spearman's rank correlation and its p-value, or NaN if a column is constant."""
    if one.nunique() < 2 or two.nunique() < 2:
        return math.nan, math.nan
    result = spearmanr(one, two)
    return float(result.statistic), float(result.pvalue)


def _missed(rows: pd.DataFrame) -> pd.Series:
    return 1 - rows["least_imbalance"].fillna(value=False).astype(float)


def _floats(rows: pd.DataFrame, name: str) -> pd.Series:
    return pd.to_numeric(rows[name]).astype("Float64").astype(float)


def _chosen_parameters(family: Mapping[str, object]) -> dict[str, str]:
    """Return the parameters of a family and of its base, as text."""
    base = family.get("base")
    chosen = _chosen_parameters({"name": "", **base}) if isinstance(base, Mapping) else {}
    for name in CHOSEN:
        value = family.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            chosen[name] = str(value)
    if "event" not in chosen and int(str(family.get("steps", 1))) > 1:
        chosen["event"] = "several"
    return chosen


def _levels_of(values: pd.Series, parameter: str) -> npt.NDArray[np.object_]:
    codes, distinct = pd.factorize(values)
    return np.array([_level(value, parameter) for value in distinct], dtype=object)[codes]


def _level(value: object, parameter: str) -> object:
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
