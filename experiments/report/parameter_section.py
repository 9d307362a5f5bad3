"""The parameters of the families, and what each of them does, as the page shows it."""

from collections.abc import Iterable, Mapping, Sequence

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from kassay.experiments.plotting import svg_figures as figures
from kassay.experiments.report import study_summary as summary
from kassay.experiments.report.statistics_section import COLOURS, COMPARED, DASHES, SectionTable
from kassay.experiments.report.study_summary import Proportion
from kassay.experiments.study.statistics.parameter_effects import (
    MEASURED,
    levels,
    with_parameters,
    within_families,
)

_TITLES = {"missed": "misses the least imbalance", "wasteful": "moves more than it must"}


def parameters(
    rows: pd.DataFrame, families: Sequence[Mapping[str, object]]
) -> Mapping[str, object]:
    """Return what the page tells of the families' parameters.

    Parameters
    ----------
    rows
        Comparisons with what is known of their groups.
    families
        The families, as the manifest records them.
    """
    names = summary.assignors_of(rows)
    compared = [name for name in COMPARED if name in names] or list(names)[:3]
    told = with_parameters(rows, families)
    found = levels(told, assignors=compared)
    return {
        "families": _families(rows, families),
        "levels": _levels(found, compared),
        "within": _within(within_families(told, assignors=compared), compared),
        "effect_plots": tuple(_plots(found)),
    }


def _families(rows: pd.DataFrame, families: Iterable[Mapping[str, object]]) -> SectionTable:
    counts = rows.groupby("family", observed=True)["case"].nunique()
    told = [(str(family["name"]), in_words(family)) for family in families]
    table = pd.DataFrame(
        [(name, int(counts.get(name, 0)), words) for name, words in told],
        columns=["family", "groups", "parameters"],
    )
    return SectionTable(
        name="families",
        columns=tuple(table.columns),
        rows=tuple((name, str(groups), words) for name, groups, words in table.to_numpy()),
        csv=table.to_csv(index=False),
    )


def in_words(family: Mapping[str, object]) -> str:
    """Say the parameters of a family.

    Examples
    --------
    >>> in_words({"name": "demo", "mixed": True, "event": None, "members": [3, 20], "racks": 3})
    'mixed, members 3 to 20, racks 3'
    """
    parts: list[str] = []
    for key, value in family.items():
        words = key.replace("_", " ")
        match value:
            case None | False:
                continue
            case True:
                parts.append(words)
            case [int(low), int(high)] if key in ("members", "topics", "partitions"):
                parts.append(f"{words} {low} to {high}")
            case list():
                parts.append(f"{words} {'/'.join(_one(item) for item in value)}")
            case dict():
                parts.append(in_words(value))
            case _ if key != "name":
                parts.append(f"{words} {value}")
    return ", ".join(part for part in parts if part)


def _one(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _levels(found: pd.DataFrame, names: Sequence[str]) -> SectionTable:
    """Return a row a level, with a cell an assignor and outcome."""
    cells: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    groups: dict[tuple[str, str], int] = {}
    for row in found.to_dict("records"):
        key = (str(row["parameter"]), str(row["level"]))
        groups[key] = max(groups.get(key, 0), int(row["groups"]))
        share = Proportion(int(row["count"]), int(row["groups"]))
        cell = f"{share.percent} ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
        cells.setdefault(key, {})[str(row["outcome"]), str(row["assignor"])] = cell
    columns = [(outcome, name) for outcome in _TITLES for name in names]
    return SectionTable(
        name="levels-of-parameters",
        columns=(
            "parameter",
            "level",
            "groups",
            *(f"{name} {_TITLES[outcome]}" for outcome, name in columns),
        ),
        rows=tuple(
            (*key, str(groups[key]), *(mine.get(column, "–") for column in columns))
            for key, mine in cells.items()
        ),
        csv=found.to_csv(index=False),
    )


def _within(found: pd.DataFrame, names: Sequence[str]) -> SectionTable:
    """Return a row a family and assignor, with a cell a parameter, for missed balance."""
    missed = found[found["outcome"] == "missed"]
    shown = {
        (str(row["family"]), str(row["assignor"]), str(row["parameter"])): (
            f"{row['rho']:.2f}".replace("-", "−") + ("*" if row["p_value"] < 0.001 else "")
        )
        for row in missed.to_dict("records")
    }
    keys = sorted({key[:2] for key in shown}, key=lambda key: (key[0], names.index(key[1])))
    return SectionTable(
        name="effect-within-families",
        columns=("family", "assignor", *MEASURED),
        rows=tuple((*key, *(shown.get((*key, name), "–") for name in MEASURED)) for key in keys),
        csv=found.to_csv(index=False),
    )


def _plots(found: pd.DataFrame) -> Iterable[figures.Plot]:
    for outcome, title in _TITLES.items():
        mine = found[found["outcome"] == outcome]
        for parameter in mine["parameter"].unique():
            table = mine[mine["parameter"] == parameter]
            if len(set(table["level"])) > 1 and table["count"].sum():
                name = f"{outcome}-by-{parameter.replace(' ', '-')}"
                yield figures.Plot(
                    name=name,
                    title=f"{parameter}: {title}",
                    svg=_draw(table, f"{parameter}: {title}"),
                    csv=table.to_csv(index=False),
                )


def _draw(table: pd.DataFrame, title: str) -> str:
    """Draw a line an assignor over the levels, with its intervals as bars."""
    labels = list(dict.fromkeys(table["level"]))
    with mpl.rc_context(figures.STYLE):
        figure = Figure(figsize=(figures.WIDTH, 2.6), layout="constrained")
        axes = figure.subplots()
        for place, (name, mine) in enumerate(table.groupby("assignor", sort=False)):
            x = [labels.index(level) + 0.12 * (place - 1) for level in mine["level"]]
            share = mine["share"].to_numpy(float)
            errors = [share - mine["low"].to_numpy(float), mine["high"].to_numpy(float) - share]
            axes.errorbar(
                x,
                100 * share,
                yerr=[100 * error.clip(0) for error in errors],
                label=str(name),
                color=COLOURS[place % len(COLOURS)],
                linestyle=DASHES[place % len(DASHES)],
                marker="o",
                markersize=3.5,
                linewidth=1.3,
                elinewidth=1,
            )
        axes.set_xticks(range(len(labels)), labels, rotation=30 if len(labels) > 5 else 0)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("% of groups")
        axes.grid(visible=True, axis="y")
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7.5)
        return figures.svg_of(figure, title)
