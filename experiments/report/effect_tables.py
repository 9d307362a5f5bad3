"""Tables of a study report on random effects of families and marginal effects of covariates."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from kassay.experiments.plotting.page_figures import Plot, forest_plot
from kassay.experiments.plotting.page_templates import digits_in_groups
from kassay.experiments.report.assignor_summary import scope_rows
from kassay.experiments.report.report_table import ReportTable, interval_text, number_text, p_text
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.statistics.marginal_effects import (
    NO_EVENT,
    OUTCOMES,
    MarginalEffect,
    MarginalEffects,
    marginal_effects,
)
from kassay.experiments.study.statistics.random_effects import (
    FamilyEffect,
    RandomEffects,
    combine,
    mean_effect,
    moment_effect,
    share_effect,
)
from kassay.experiments.study.statistics.significance import SIGNIFICANT, holm
from kassay.experiments.study.summary_columns import GENERATED, SumColumn

_COLUMNS = (
    *("families", "groups"),
    *("mean of the families (95 %)", "another family (95 %)", "τ", "I²", "Q"),
)
_P_COLUMNS = {
    "p_homogeneous_adjusted": "p of equal families",
    "p_adjusted": "p of no difference",
}
_SHARES: dict[str, str] = {
    SumColumn.ABOVE_MAXIMUM: SumColumn.MISSED_MAXIMUM,
    SumColumn.WASTEFUL: SumColumn.WASTEFUL,
}
_PAIRED = ("unnecessary moves per rebalance", "minimum imbalance not reached, points")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Estimates of one measure for all families, and their combination."""

    measure: str
    name: str  # an assignor, or a pair of assignors
    effects: tuple[FamilyEffect, ...]
    combined: RandomEffects | None


def effect_section(
    results: StudySummary, families: Iterable[Mapping[str, object]], compared: Sequence[str]
) -> Mapping[str, object] | None:
    """Create the tables of effects in the random groups, or None if there are none.

    The p-values of all tables together are adjusted by Holm's method.
    """
    outcomes = scope_rows(results.outcomes, GENERATED)
    mixed = sorted(set(outcomes.loc[outcomes["mixed"].fillna(value=False), "family"]))
    if len(mixed) < 2:
        return None
    single = list(_single_pools(results, outcomes, mixed, compared))
    pairs = list(_pair_pools(results, mixed, compared))
    models = _models(_cells(results, families), compared)
    p_values = [
        *(pool.combined.p_homogeneous if pool.combined else math.nan for pool in single),
        *(pool.combined.p_homogeneous if pool.combined else math.nan for pool in pairs),
        *(pool.combined.p_value if pool.combined else math.nan for pool in pairs),
        *(effect.p_value for model in models for effect in model.effects),
    ]
    adjusted = iter(holm(p_values))
    equal_single, equal_pairs, zero_pairs = (
        list(itertools.islice(adjusted, len(pools))) for pools in (single, pairs, pairs)
    )
    return {
        "tests": sum(not math.isnan(p_value) for p_value in p_values),
        "families": _pool_table(
            "random-effects", single, "assignor", {"p_homogeneous_adjusted": equal_single}
        ),
        "pairs": _pool_table(
            "random-effects-of-pairs",
            pairs,
            "from → to",
            {"p_homogeneous_adjusted": equal_pairs, "p_adjusted": zero_pairs},
        ),
        "effects": effects_table("marginal-effects", models, list(adjusted)),
        "forests": tuple(_forests(single, pairs)),
    }


def stream_models(cells: pd.DataFrame, compared: Sequence[str]) -> list[MarginalEffects]:
    """Fit the models of the event streams of one family."""
    return _models(cells.assign(stratum=cells["family"]), compared)


def effects_table(
    name: str, models: Sequence[MarginalEffects], adjusted: Sequence[float]
) -> ReportTable:
    """Create the table of marginal effects. ``adjusted`` are the p-values of all effects."""
    assignors = tuple(dict.fromkeys(model.assignor for model in models))
    found = [effect for model in models for effect in model.effects]
    p_values = dict(zip(found, adjusted, strict=True))
    rows: list[tuple[str, ...]] = []
    for outcome in dict.fromkeys(model.outcome for model in models):
        own = {model.assignor: model for model in models if model.outcome == outcome}
        rows.append((outcome, "number in the model", *map(_modelled, own.values())))
        rows.append((outcome, "mean in the model", *(number_text(m.mean) for m in own.values())))
        effects = {
            (effect.contrast, name): _effect_text(effect, p_values[effect])
            for name, model in own.items()
            for effect in model.effects
        }
        for contrast in dict.fromkeys(contrast for contrast, _ in effects):
            cells = (effects.get((contrast, name), "–") for name in assignors)
            rows.append((outcome, contrast, *cells))
    sizes = [
        {key: getattr(model, key) for key in ("total", "modelled", "mean")} for model in models
    ]
    data = [
        asdict(effect) | size | {"p_adjusted": p_values[effect]}
        for model, size in zip(models, sizes, strict=True)
        for effect in model.effects
    ]
    return ReportTable.of(name, ("rate", "change", *assignors), rows, data=data)


def _single_pools(
    results: StudySummary, outcomes: pd.DataFrame, families: Sequence[str], names: Sequence[str]
) -> Iterable[_Pool]:
    gaps = scope_rows(results.gaps, GENERATED)
    gaps = gaps[(gaps["gap"] == "unnecessary_moves") & gaps["owned"].fillna(value=False)]
    sums = outcomes.drop(columns=["scope", "mixed"]).groupby(["family", "assignor"]).sum()
    found: Mapping[Any, Mapping[Any, float]] = sums.astype(float).to_dict("index")
    for measure, name in itertools.product(OUTCOMES, names):
        chosen = OUTCOMES[measure]
        effects: list[FamilyEffect | None] = []
        for family in families:
            own = found.get((family, name), {})
            groups = int(own.get(chosen.per, 0))
            if chosen.column == "unnecessary_moves":
                rows = gaps[(gaps["family"] == family) & (gaps["assignor"] == name)]
                counts = rows.dropna(subset=["value"]).groupby("value")["groups"].sum()
                effects.append(mean_effect(family, counts))
            elif chosen.column == SumColumn.EXCESS_PPM:
                if groups > 1:
                    total, squares = (
                        chosen.factor * own[SumColumn.EXCESS_PPM],
                        own[SumColumn.EXCESS_SQUARES] / 1e4,
                    )
                    effects.append(moment_effect(family, groups, total, squares))
            elif groups:
                count = own[_SHARES[chosen.column]]
                effects.append(share_effect(family, int(count), groups))
        yield _pool(measure, name, effects, least=0.0)


def _pair_pools(
    results: StudySummary, families: Sequence[str], names: Sequence[str]
) -> Iterable[_Pool]:
    pairs = scope_rows(results.pairs, GENERATED)
    worse = pairs["least_before"].astype(int) - pairs["least_after"].astype(int)
    values = dict(zip(_PAIRED, (pairs["difference"], 100 * worse), strict=True))
    for measure, (one, two) in itertools.product(_PAIRED, itertools.combinations(names, 2)):
        rows = pairs.assign(value=values[measure])
        rows = rows[(rows["before"] == one) & (rows["after"] == two)].dropna(subset=["value"])
        yield _pool(
            measure,
            f"{one} → {two}",
            [
                mean_effect(family, rows[rows["family"] == family].groupby("value")["groups"].sum())
                for family in families
            ],
        )


def _pool(
    measure: str, name: str, effects: Sequence[FamilyEffect | None], *, least: float = -math.inf
) -> _Pool:
    """Combine the known effects. A prediction interval has no values below ``least``."""
    known = tuple(effect for effect in effects if effect is not None)
    combined = combine(known)
    if combined is not None and combined.predicted is not None:
        low, high = combined.predicted
        combined = replace(combined, predicted=(max(least, low), max(least, high)))
    return _Pool(measure=measure, name=name, effects=known, combined=combined)


def _pool_table(
    name: str, pools: Sequence[_Pool], first: str, p_values: Mapping[str, Sequence[float]]
) -> ReportTable:
    """Create the table of combined estimates. ``p_values`` are adjusted, one list per column."""
    rows, data = [], []
    for pool, *adjusted in zip(pools, *p_values.values(), strict=True):
        rows.append((pool.measure, pool.name, *_pool_cells(pool), *map(p_text, adjusted)))
        data.append(
            {"measure": pool.measure, "name": pool.name}
            | ({} if pool.combined is None else asdict(pool.combined))
            | dict(zip(p_values, adjusted, strict=True))
        )
    titles = (_P_COLUMNS[column] for column in p_values)
    return ReportTable.of(name, ("measure", first, *_COLUMNS, *titles), rows, data=data)


def _pool_cells(pool: _Pool) -> tuple[str, ...]:
    found = pool.combined
    if found is None:
        return (f"0 of {len(pool.effects)}", *("–",) * (len(_COLUMNS) - 1))
    predicted = "–"
    if found.predicted is not None:
        predicted = "{} to {}".format(*map(number_text, found.predicted))
    return (
        f"{found.families} of {len(pool.effects)}",
        digits_in_groups(found.groups),
        interval_text(found.value, found.low, found.high),
        predicted,
        *(number_text(found.tau), f"{100 * found.i_squared:.0f} %", number_text(found.q)),
    )


def _forests(single: Sequence[_Pool], pairs: Sequence[_Pool]) -> Iterable[Plot]:
    """Draw one forest plot per measure: each family, then the mean of the families."""
    for pools, kind in ((single, ""), (pairs, "difference of ")):
        for measure in dict.fromkeys(pool.measure for pool in pools):
            data = [
                {
                    "series": pool.name,
                    "family": effect.family,
                    "groups": effect.groups,
                    **dict(zip(("value", "low", "high"), effect.shown, strict=True)),
                }
                for pool in pools
                if pool.measure == measure
                for effect in pool.effects
            ]
            data += [
                {"series": pool.name, "family": "mean", "groups": found.groups}
                | {"value": found.value, "low": found.low, "high": found.high}
                for pool in pools
                if pool.measure == measure and (found := pool.combined) is not None
            ]
            table = pd.DataFrame(data)
            if table.empty:
                continue
            title = f"{kind}{measure}"
            slug = "".join(c if c.isalnum() else " " for c in title)
            yield Plot(
                name="forest-" + "-".join(slug.split()),
                title=title[0].upper() + title[1:],
                caption=f"x: {title}, with 95 % intervals. y: family. The last row is the mean of "
                "the families from the random-effects model.",
                draw=partial(forest_plot, table, label=f"{title}, by family", xlabel=measure),
                csv=table.to_csv(index=False),
            )


def _cells(results: StudySummary, families: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Return the cells of the random groups. The stratum of a family is its name without event."""
    cells = scope_rows(results.cells, GENERATED)
    events = {str(family["name"]): family.get("event") or NO_EVENT for family in families}
    kinds = cells["family"].map(lambda name: events.get(str(name), NO_EVENT))
    strata = [
        str(name).removesuffix(f"-{event}")
        for name, event in zip(cells["family"], kinds, strict=True)
    ]
    return cells.assign(event=kinds, stratum=strata)


def _models(cells: pd.DataFrame, compared: Sequence[str]) -> list[MarginalEffects]:
    return [
        marginal_effects(cells, name, outcome)
        for outcome, name in itertools.product(OUTCOMES, compared)
    ]


def _modelled(model: MarginalEffects) -> str:
    return f"{digits_in_groups(model.modelled)} of {digits_in_groups(model.total)}"


def _effect_text(effect: MarginalEffect, adjusted: float) -> str:
    mark = "*" if adjusted < SIGNIFICANT else ""
    return interval_text(effect.value, effect.low, effect.high, "+") + mark
