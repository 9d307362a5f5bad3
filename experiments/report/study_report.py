"""The report: one self-contained HTML page, and a summary in Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import jinja2
import pandas as pd

from kassay.experiments.plotting import svg_figures as figures
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.report import TEMPLATES
from kassay.experiments.report import small_multiples as multiples
from kassay.experiments.report import study_summary as summary
from kassay.experiments.report import worst_groups as worst
from kassay.experiments.report.parameter_section import parameters
from kassay.experiments.report.statistics_section import SectionTable, statistics_tables
from kassay.experiments.report.study_summary import Figures, Proportion
from kassay.experiments.report.table_reader import SPARING, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of shares, families down and assignors across.

    Parameters
    ----------
    name
        File name of its data, without the ending.
    columns
        Assignors.
    rows
        Family, and a share for each assignor.
    csv
        The same as CSV.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Proportion, ...]], ...]
    csv: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A study's report.

    Parameters
    ----------
    html, markdown
        The page and the summary. Equal tables give equal bytes.
    data
        The numbers of every figure and table, by name, as CSV.
    drawings
        The figures by name, as SVG.
    """

    html: str
    markdown: str
    data: Mapping[str, str]
    drawings: Mapping[str, str]


def render(tables: Tables) -> Report:
    """Render everything."""
    facts = context(tables)
    shown = list(_shown(facts))
    return Report(
        html=_environment(autoescape=True).get_template("report.html.j2").render(**facts),
        markdown=_environment(autoescape=False).get_template("report.md.j2").render(**facts),
        data={item.name: item.csv for item in shown},
        drawings={item.name: item.svg for item in shown if isinstance(item, figures.Plot)},
    )


def render_html(tables: Tables) -> str:
    """Render the page. Equal tables give equal bytes."""
    return render(tables).html


def render_markdown(tables: Tables) -> str:
    """Render the summary."""
    return render(tables).markdown


def _shown(facts: object) -> Iterator[figures.Plot | Grid | SectionTable]:
    """Yield every figure and table among what the templates tell."""
    if isinstance(facts, figures.Plot | Grid | SectionTable):
        yield facts
    elif isinstance(facts, Mapping):
        for value in facts.values():
            yield from _shown(value)
    elif isinstance(facts, tuple):
        for value in facts:
            yield from _shown(value)


@pd.option_context(*SPARING)
def context(tables: Tables) -> dict[str, object]:
    """Return everything the templates tell, computed from the tables alone."""
    rows = summary.joined(tables)
    families = summary.by_family(rows)
    counted = summary.drawn(rows)
    overall = summary.by_assignor(counted)
    configuration = tables.manifest.get("configuration")
    described = configuration.get("families", []) if isinstance(configuration, dict) else []
    by_subscriptions = _by_subscriptions(counted, tuple(overall))
    return {
        "tables": tables,
        "manifest": tables.manifest,
        "counts": _counts(tables),
        "overall": overall,
        "assignors_table": _overall(overall),
        "by_subscriptions": by_subscriptions,
        "least_grid": _grid(families, "least", "least-imbalance-by-family"),
        "wasteful_grid": _grid(families, "wasteful", "unnecessary-moves-by-family"),
        "dot_plots": _dot_plots(by_subscriptions),
        "gap_plots": tuple(
            figures.distributions(
                rows, "sum_of_squares_gap", figures.GAP_BINS, name="imbalance-gap"
            )
        ),
        "move_plots": tuple(
            figures.distributions(
                rows.loc[rows["owned"] > 0, ["assignor", "family", "unnecessary_moves"]],
                "unnecessary_moves",
                figures.MOVE_BINS,
                name="unnecessary-moves",
            )
        ),
        "gap_legend": figures.legend(figures.bin_labels(figures.GAP_BINS), figures.STEPS),
        "move_legend": figures.legend(figures.bin_labels(figures.MOVE_BINS), figures.STEPS),
        "family_plots": tuple(multiples.figures_by_family(families)),
        "findings": statistics_tables(counted),
        "parameters": parameters(counted, described),
        "exhibits": tuple(worst.worst_groups(tables, rows)),
        "remarkable": tuple(worst.named(tables, rows)),
    }


def _counts(tables: Tables) -> dict[str, int]:
    optima = tables.optima
    return {
        "groups": len(tables.groups),
        "unbuilt": int(tables.groups["error"].notna().sum()),
        "imported": int((tables.groups["family"] == "imported").sum()),
        "proven": int((optima["status"] == "optimal").sum()),
        "unproven": int((optima["status"] != "optimal").sum()),
        "errors": int((tables.comparisons["ending"] == "error").sum()),
        "comparisons": len(tables.comparisons),
        "unknown_moves": int(
            (
                tables.comparisons["unnecessary_moves"].isna()
                & (tables.comparisons["ending"] == "ok")
            ).sum()
        ),
    }


def _overall(overall: Mapping[str, Figures]) -> SectionTable:
    """Return the first table's figures, whose cells the templates write themselves."""
    rows = [
        {"assignor": name, **asdict(found)}
        | {
            f"{field}_{end}": value
            for field in ("least", "wasteful")
            for end, value in zip(("low", "high"), getattr(found, field).interval, strict=True)
        }
        for name, found in overall.items()
    ]
    table = pd.json_normalize(rows, sep="_")
    return SectionTable(name="assignors", columns=(), rows=(), csv=table.to_csv(index=False))


def _grid(families: Mapping[str, Mapping[str, Figures]], field: str, name: str) -> Grid:
    columns = tuple(next(iter(families.values()), {}))
    rows = tuple(
        (family, tuple(getattr(found[column], field) for column in columns))
        for family, found in families.items()
    )
    table = pd.DataFrame(
        [
            {"family": family, "assignor": column, "count": share.count, "groups": share.total}
            for family, shares in rows
            for column, share in zip(columns, shares, strict=True)
        ]
    )
    return Grid(name=name, columns=columns, rows=rows, csv=table.to_csv(index=False))


def _by_subscriptions(
    rows: pd.DataFrame, names: Sequence[str]
) -> dict[str, tuple[Figures, Figures]]:
    """Figures of each assignor over groups of equal subscriptions, and over the others."""
    found: dict[str, tuple[Figures, Figures]] = {}
    for name in names:
        mine = rows[rows["assignor"] == name]
        equal, mixed = (summary.figures_of(mine[mine["mixed"] == flag]) for flag in (False, True))
        found[name] = equal, mixed
    return found


def _dot_plots(found: Mapping[str, tuple[Figures, Figures]]) -> tuple[figures.Plot, ...]:
    return (
        figures.dots(
            [figures.FigureRow(name, one.least, two.least) for name, (one, two) in found.items()],
            name="least-imbalance",
            title="Groups in which it reaches the least imbalance",
        ),
        figures.dots(
            [
                figures.FigureRow(name, one.wasteful, two.wasteful)
                for name, (one, two) in found.items()
            ],
            name="moves-more-than-needed",
            title="Groups in which it moves more than it must",
        ),
    )


def _environment(*, autoescape: bool) -> jinja2.Environment:
    """Return what renders the report, with its own filter."""
    made = environment(TEMPLATES, autoescape=autoescape)
    made.filters["tint"] = _tint
    return made


def _tint(share: Proportion, good: bool) -> str:
    """Return the background of a cell: none where all is well, stronger the worse."""
    if share.value is None:
        return "transparent"
    bad = 1 - share.value if good else share.value
    return f"rgb(194 82 27 / {0.55 * bad**0.6:.3f})" if bad else "transparent"
