"""What each parameter of a family does: level by level, and within every family."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import binomtest, spearmanr

CONFIDENCE = 0.95
MEASURED = ("members", "topics", "partitions", "partitions a member", "overlap", "owned")
"""Numbers that a group has: who consumes, what, and how much of it had an owner."""
CHOSEN = ("event", "shape", "weights", "racks", "mixed")
"""What a family fixes for all of its groups."""
OUTCOMES = ("missed", "wasteful")
_SHARES = ("overlap", "owned")
_LEVELS = ["parameter", "level", "assignor", "outcome", "count", "groups", "share", "low", "high"]


def with_parameters(
    rows: pd.DataFrame, families: Iterable[Mapping[str, object]] = ()
) -> pd.DataFrame:
    """Return comparisons with a column for every parameter, and for both outcomes.

    ``overlap`` is the share of members that consume a topic, on average; ``owned`` the share
    of partitions that had an owner. Tables without the number of subscriptions leave
    ``overlap`` out. ``missed`` says whether the least imbalance was missed, ``wasteful``
    whether more was moved than need be; missing where that is not known, or nothing was
    owned.

    Parameters
    ----------
    rows
        Comparisons, with the columns of their groups.
    families
        The parameters of the families, as the manifest records them.

    Examples
    --------
    >>> rows = pd.DataFrame(
    ...     {
    ...         "family": ["mixed-join"],
    ...         "participants": [4],
    ...         "topics": [3],
    ...         "consumed": [2],
    ...         "subscriptions": [6],
    ...         "partitions": [10],
    ...         "owned": [5],
    ...         "mixed": [True],
    ...         "proven": [True],
    ...         "least_imbalance": [False],
    ...         "unnecessary_moves": [0],
    ...     }
    ... )
    >>> found = with_parameters(rows, [{"name": "mixed-join", "event": "join"}]).iloc[0]
    >>> print(*found[["overlap", "owned", "event", "missed", "wasteful"]])
    0.75 0.5 join 1.0 0.0
    """
    proven = rows[rows["proven"].fillna(value=False).astype(bool)]
    number = {name: _floats(proven, name) for name in ("participants", "partitions", "owned")}
    told = proven[["assignor", "family"]] if "assignor" in proven else proven[["family"]]
    told = told.assign(
        members=number["participants"],
        topics=_floats(proven, "consumed" if "consumed" in proven else "topics"),
        partitions=number["partitions"],
        owned=number["owned"] / number["partitions"],
    )
    told["partitions a member"] = number["partitions"] / number["participants"]
    if "subscriptions" in proven:
        told["overlap"] = _floats(proven, "subscriptions") / (told["members"] * told["topics"])
    chosen = {str(family["name"]): _flat(family) for family in families}
    for name in CHOSEN[:-1]:
        told[name] = proven["family"].map(
            {family: values[name] for family, values in chosen.items() if name in values}
        )
    told["mixed"] = proven["mixed"].map({True: "yes", False: "no"})
    least = proven["least_imbalance"].fillna(value=False).astype(float)
    told["missed"] = 1 - least
    moves = _floats(proven, "unnecessary_moves")
    known = moves.notna() & (told["owned"] > 0)
    return told.assign(wasteful=(moves > 0).astype(float).where(known))


def levels(rows: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return how often each outcome comes at each level of each parameter, in long form.

    Numbers fall into levels: octaves of counts, quarters of shares. The intervals are
    Wilson's, at 95 % confidence.

    Parameters
    ----------
    rows
        What `with_parameters` returned.
    assignors
        For whom.

    Examples
    --------
    >>> rows = pd.DataFrame(
    ...     {"assignor": "range", "members": [2, 3, 9], "missed": [0, 1, 1], "wasteful": None}
    ... )
    >>> levels(rows, assignors=["range"])[["level", "count", "groups"]].to_numpy().tolist()
    [['2–3', 1, 2], ['8–15', 1, 1]]
    """
    found: list[dict[str, object]] = []
    for parameter in (*MEASURED, *CHOSEN):
        if parameter not in rows:
            continue
        known = rows.loc[rows[parameter].notna(), [parameter, "assignor", *OUTCOMES]]
        place = _places(known[parameter], parameter)
        parts = known.groupby([place, "assignor"], observed=True)[list(OUTCOMES)]
        sums, counts = parts.sum(), parts.count()
        for key, assignor, outcome in itertools.product(sorted(set(place)), assignors, OUTCOMES):
            groups = int(counts[outcome].get((key, assignor), 0))
            if groups:
                told = (parameter, _label(key, parameter), assignor, outcome)
                share = _share(int(sums.loc[(key, assignor), outcome]), groups)
                found.append(dict(zip(_LEVELS, told, strict=False)) | share)
    return pd.DataFrame(found, columns=_LEVELS)


def within_families(rows: pd.DataFrame, *, assignors: Sequence[str]) -> pd.DataFrame:
    """Return Spearman's rank correlation of parameters with outcomes, family by family.

    Within a family nothing differs but what its seeds draw, so that families do not
    stand in for their parameters. Combinations without any variation are left out.

    Parameters
    ----------
    rows
        What `with_parameters` returned.
    assignors
        For whom.

    Examples
    --------
    >>> rows = pd.DataFrame(
    ...     {
    ...         "assignor": "range",
    ...         "family": "demo",
    ...         "members": [2, 3, 4, 5],
    ...         "missed": [0, 0, 1, 1],
    ...         "wasteful": None,
    ...     }
    ... )
    >>> found = within_families(rows, assignors=["range"])
    >>> found[["family", "parameter", "rho"]].round(3).to_numpy().tolist()
    [['demo', 'members', 0.894]]
    """
    columns = ["family", "parameter", "assignor", "outcome", "groups", "rho", "p_value"]
    found = []
    for (family, assignor), mine in rows.groupby(["family", "assignor"], observed=True):
        for outcome in OUTCOMES if assignor in assignors else ():
            for parameter in MEASURED:
                if parameter not in rows:
                    continue
                pairs = mine[[parameter, outcome]].dropna().astype(float)
                if pairs[parameter].nunique() < 2 or pairs[outcome].nunique() < 2:
                    continue
                result = spearmanr(pairs[parameter], pairs[outcome])
                found.append(
                    (
                        family,
                        parameter,
                        assignor,
                        outcome,
                        len(pairs),
                        float(result.statistic),
                        float(result.pvalue),
                    )
                )
    return pd.DataFrame(found, columns=columns)


def _floats(rows: pd.DataFrame, name: str) -> pd.Series:
    return pd.to_numeric(rows[name]).astype("Float64").astype(float)


def _flat(family: Mapping[str, object]) -> dict[str, str]:
    """Return what a family fixes, its base's included, as text."""
    base = family.get("base")
    found = _flat({"name": "", **base}) if isinstance(base, Mapping) else {}
    for name in CHOSEN:
        value = family.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            found[name] = str(value)
    if "event" not in found and int(str(family.get("steps", 1))) > 1:
        found["event"] = "several"
    return found


def _places(values: pd.Series, parameter: str) -> npt.NDArray[np.object_]:
    """Return the level of each value, as something that sorts."""
    codes, distinct = pd.factorize(values)
    levels = [_place(value, parameter) for value in distinct]
    return np.array(levels, dtype=object)[codes]


def _place(value: object, parameter: str) -> object:
    if parameter in CHOSEN:
        return str(value)
    number = float(str(value))
    if parameter in _SHARES:
        return math.ceil(round(4 * number, 9))
    return max(0, math.floor(math.log2(number))) if number > 0 else -1


def _label(key: object, parameter: str) -> str:
    if parameter in CHOSEN:
        return str(key)
    step = int(str(key))
    if parameter in _SHARES:
        return f"{25 * step - 25}–{25 * step} %" if step > 0 else "0 %"
    return f"{2**step}–{2 ** (step + 1) - 1}" if step > 0 else str(step + 1)


def _share(count: int, groups: int) -> dict[str, object]:
    interval = binomtest(count, groups).proportion_ci(CONFIDENCE, method="wilson")
    return {
        "count": count,
        "groups": groups,
        "share": count / groups,
        "low": float(interval.low),
        "high": float(interval.high),
    }
