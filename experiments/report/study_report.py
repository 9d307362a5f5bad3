"""Render the report of a study as a self-contained HTML page and a Markdown summary."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import pandas as pd

from kassay.experiments.counterexamples.render_gallery import worst_groups
from kassay.experiments.plotting.matplotlib_figures import Plot, dot_plot
from kassay.experiments.plotting.page_templates import BLUE, NUMBER, ORANGE, environment
from kassay.experiments.report import TEMPLATES, study_tables
from kassay.experiments.report.event_stream_section import trajectory_sections
from kassay.experiments.study import schemas
from kassay.experiments.study.cases import IMPORTED
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES
from kassay.experiments.study.output_reader import StudySummary


@dataclass(frozen=True)
class Report:
    """Report of a study, which is rendered on first use."""

    template_values: Mapping[str, object]

    @cached_property
    def html(self) -> str:
        """Return the HTML page with all figures and tables."""
        page = environment(TEMPLATES, autoescape=True)
        return page.get_template("report.html.j2").render(**self.template_values)

    @cached_property
    def markdown(self) -> str:
        """Return the summary as Markdown."""
        short = environment(TEMPLATES, autoescape=False)
        return short.get_template("report.md.j2").render(**self.template_values)

    @cached_property
    def items(self) -> Mapping[str, Plot | study_tables.ReportTable]:
        """Return all figures and tables of the report by name."""
        return {item.name: item for item in _figures_and_tables(self.template_values)}


def render(results: StudySummary) -> Report:
    """Create the report of a study from its summary."""
    return Report(template_values(results))


def _figures_and_tables(values: object) -> Iterator[Plot | study_tables.ReportTable]:
    if isinstance(values, Plot | study_tables.ReportTable):
        yield values
    elif isinstance(values, Mapping | tuple):
        for value in values.values() if isinstance(values, Mapping) else values:
            yield from _figures_and_tables(value)


def template_values(results: StudySummary) -> dict[str, object]:
    """Compute the values that the templates of the report need, from the summary of a study."""
    trajectories = trajectory_sections(results)
    measures = study_tables.measure_section(results)
    common = {
        "manifest": results.manifest,
        "counts": group_counts(results),
        "trajectories": trajectories,
        "measures": measures,
        "run_times": study_tables.run_time_table(results),
        "prices": study_tables.price_table(results),
    }
    outcomes = results.outcomes
    if outcomes.empty and (trajectories or measures):
        return {**common, "overall": {}, "worst_groups": ()}
    scopes = study_tables.by_scope(outcomes)
    main = study_tables.main_scope(outcomes)
    names = schemas.assignors_of(outcomes["assignor"])
    compared = schemas.compared_assignors(names, _configuration(results).get("compared", ()))
    families = study_tables.by_family(outcomes)
    halves = study_tables.by_subscriptions(study_tables.scope_rows(outcomes, main), names)
    return {
        **common,
        "scope": main,
        "overall": scopes.get(main, {}),
        "findings": study_findings(scopes.get(main, {}), halves, compared),
        "assignor_tables": {
            scope: study_tables.assignor_table(scope, found) for scope, found in scopes.items()
        },
        "headline": study_tables.headline_table(scopes[main], halves) if main in scopes else None,
        "subscriptions_table": study_tables.subscriptions_table(halves),
        "by_family": study_tables.family_results(
            families,
            results.families,
            weighted=set(study_tables.scope_rows(outcomes, schemas.APART["weights"])["family"]),
        ),
        "imbalance_grid": study_tables.share_grid(
            "minimum-imbalance-by-family", families, "minimum_imbalance"
        ),
        "moves_grid": study_tables.share_grid(
            "unnecessary-moves-by-family", families, "with_unnecessary_moves"
        ),
        "subscription_plots": subscription_plots(halves),
        "racks": rack_section(results),
        "pairs": pair_table(study_tables.scope_rows(results.pairs, main), compared),
        "families": study_tables.family_table(results.families, studied_families(results)),
        "own": tuple(filter(schemas.is_own, names)),
        "worst_groups": tuple(worst_groups(results, compared)),
    }


def studied_families(results: StudySummary) -> list[str]:
    """Return the names of the families in the manifest of a study."""
    return [family["name"] for family in _configuration(results).get("families", [])]


def _configuration(results: StudySummary) -> Mapping[str, Any]:
    found = results.manifest.get("configuration")
    return found if isinstance(found, dict) else {}


def group_counts(results: StudySummary) -> dict[str, int]:
    """Count the groups and the proven optima of a study, without event streams."""
    families = results.families
    families = families[
        ~families["family"].isin([*results.trajectories["family"], *DOCUMENT_FAMILIES])
    ]
    imported = families["family"] == IMPORTED
    sums = families.drop(columns=["family", "sha256"]).sum()
    return {
        "groups": int(sums["groups"]),
        "families": int((families["groups"] > families["errors"]).sum()),
        "imported": int(families.loc[imported, "groups"].sum()),
        "proven": int(sums["proven"]),
        "unproven": int(sums["unproven"]),
        "errors": int(sums["errors"] + sums["comparison_errors"]),
        "comparisons": int(sums["comparisons"]),
        "unknown_moves": int(sums["unknown_moves"]),
    }


def study_findings(
    summaries: study_tables.Summaries, halves: study_tables.Halves, compared: Sequence[str]
) -> tuple[str, ...]:
    """Describe the results of the compared assignors, and the failures of all assignors."""
    found = {name: summaries[name] for name in compared if name in summaries}
    found = {name: one for name, one in found.items() if one.sums["answered"]}
    # A share of 0% in a sample needs an explanation.
    shares = [share for one in found.values() for share in (one.missed_maximum, one.missed)]
    zeros = [share for share in shares if share.interval is not None and not share.count]
    template = environment(TEMPLATES, autoescape=False).get_template("study_findings.j2")
    text = template.render(
        found=found,
        own={name: one for name, one in summaries.items() if schemas.is_own(name)},
        others={name: one for name, one in summaries.items() if not schemas.is_own(name)},
        halves=halves,
        zero=min(zeros, key=lambda share: share.total, default=None),
        short=study_tables.short_number,
    )
    return tuple(line for line in text.split("\n") if line)


_SUBSCRIPTIONS = {"equal": BLUE, "mixed": ORANGE}


def subscription_plots(halves: study_tables.Halves) -> tuple[Plot, ...]:
    """Draw the results of each assignor for equal and for mixed subscriptions."""
    return tuple(
        _dot_plot(halves, *plot)
        for plot in (
            ("minimum_imbalance", "minimum-imbalance", "Groups with minimum imbalance"),
            ("with_unnecessary_moves", "unnecessary-moves", "Groups with unnecessary moves"),
        )
    )


def _dot_plot(halves: study_tables.Halves, field: str, name: str, title: str) -> Plot:
    rows = []
    for assignor, pair in halves.items():
        for kind, summary in zip(_SUBSCRIPTIONS, pair, strict=True):
            share: study_tables.Proportion = getattr(summary, field)
            low, high = share.interval or (None, None)
            row = {"assignor": assignor, "subscriptions": kind, "groups": share.total}
            rows.append(
                row | {"count": share.count, "share": share.value, "low": low, "high": high}
            )
    table = pd.DataFrame(rows)
    return Plot(
        name=name,
        title=title,
        caption="x: share of groups in %, with its 95% confidence interval if the groups are a "
        "sample. y: assignor.",
        draw=partial(dot_plot, table, _SUBSCRIPTIONS, label=f"{title}, by assignor"),
        csv=table.to_csv(index=False),
    )


_PAIR_COLUMNS = (
    *("from → to", "groups", "minimum imbalance: won", "tied", "lost"),
    *("groups with owned partitions", "unnecessary moves: mean difference (95%)"),
    *("fewer", "same", "more", "families: better", "worse"),
)


def pair_table(counts: pd.DataFrame, compared: Sequence[str]) -> study_tables.ReportTable:
    """Create the table that compares assignors in pairs."""
    pairs = [
        study_tables.compare_pairs(counts, *pair) for pair in itertools.combinations(compared, 2)
    ]
    pairs = [pair for pair in pairs if pair.groups]
    return study_tables.ReportTable.of(
        "migration", _PAIR_COLUMNS, map(_pair_cells, pairs), data=list(map(asdict, pairs))
    )


def _pair_cells(pair: study_tables.PairedComparison) -> tuple[str, ...]:
    difference = "–"
    if pair.mean_difference is not None and pair.interval is not None:
        low, high = pair.interval
        difference = f"{pair.mean_difference:+.3f} ({low:+.3f} to {high:+.3f})".replace("-", "−")
    return (
        f"{pair.before} → {pair.after}",
        *map(str, (pair.groups, pair.only_after, pair.both + pair.neither, pair.only_before)),
        str(pair.moves_known),
        difference,
        *map(str, (pair.fewer, pair.same, pair.more, pair.families_better, pair.families_worse)),
    )


_Row = Mapping[str, int]  # sums of one family and assignor
# How moves are judged, by the prefix of the columns of the table `fronts`.
_MOVES_WITH_RACKS = {
    "same_racks": "no more off-rack reads",
    "any_racks": "any off-rack reads",
    "no_racks": "without racks",
}


def rack_section(results: StudySummary) -> Mapping[str, study_tables.ReportTable] | None:
    """Create the tables for groups with racks, or return None if there are no such groups."""
    if results.fronts.empty:
        return None
    fronts = _by_family(results.fronts)
    outcomes = study_tables.scope_rows(results.outcomes, schemas.APART["racks"])
    totals = _by_family(outcomes[["family", "assignor", "groups", "answered"]])
    rows = {
        (family, assignor): {
            **fronts[family, assignor],
            "without_result": total["groups"] - total["answered"],
        }
        for family in schemas.families_of(family for family, _ in fronts)
        for assignor in schemas.assignors_of(name for other, name in fronts if other == family)
        for total in [totals[family, assignor]]
    }
    return {
        "front": _table("racks-front", _FRONT_COLUMNS, rows),
        "moves": _table("racks-moves", _MOVE_COLUMNS, rows),
    }


def _by_family(rows: pd.DataFrame) -> dict[tuple[str, str], _Row]:
    sums = rows.groupby(["family", "assignor"]).sum(numeric_only=True)
    found: Mapping[Any, Mapping[Any, int]] = sums.astype(int).to_dict("index")
    return {key: {str(name): value for name, value in row.items()} for key, row in found.items()}


def _table(
    name: str, columns: Mapping[str, Callable[[_Row], str]], rows: Mapping[tuple[str, str], _Row]
) -> study_tables.ReportTable:
    return study_tables.ReportTable.of(
        name,
        ("family", "assignor", *columns),
        ((*key, *(cell(row) for cell in columns.values())) for key, row in rows.items()),
        data=[
            {"family": family, "assignor": assignor, **row}
            for (family, assignor), row in rows.items()
        ],
    )


def _share(count: str, total: str) -> Callable[[_Row], str]:

    def cell(row: _Row) -> str:
        numbers = " of ".join(NUMBER(row[name]) for name in (count, total))
        proportion = study_tables.Proportion(row[count], row[total])
        return f"{proportion.percent_with_interval}, {numbers}"

    return cell


def _mean(value: str, total: str, factor: int = 1) -> Callable[[_Row], str]:
    return lambda row: (
        study_tables.number_text(factor * row[value] / row[total]) if row[total] else "–"
    )


def _number(name: str) -> Callable[[_Row], str]:
    return lambda row: NUMBER(row[name])


_FRONT_COLUMNS = {
    "groups": _number("groups"),
    "on the front": _share("on_front", "front_known"),
    "avoidable imbalance": _share("avoidable_imbalance_groups", "avoidable_imbalance_known"),
    "avoidable off-rack reads": _share("avoidable_reads_groups", "avoidable_reads_known"),
    "unnecessary moves": _share("same_racks_groups", "same_racks_known"),
    "off-rack reads, % of partitions": _mean("off_rack", "partitions", 100),
    "avoidable off-rack reads per group": _mean("avoidable_reads", "avoidable_reads_known"),
    "without a result": _number("without_result"),
}
_MOVE_COLUMNS = {
    "groups": _number("groups"),
    "moves per rebalance": _mean("moves", "groups"),
    **{
        f"groups with unnecessary moves: {title}": _share(f"{name}_groups", f"{name}_known")
        for name, title in _MOVES_WITH_RACKS.items()
    },
    **{
        f"unnecessary moves per rebalance: {title}": _mean(name, f"{name}_known")
        for name, title in _MOVES_WITH_RACKS.items()
    },
}
