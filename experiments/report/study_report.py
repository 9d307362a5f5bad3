"""Report of a study as a self-contained HTML page and a Markdown summary."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kassay.experiments.counterexamples.worst_groups import named_groups, worst_groups
from kassay.experiments.plotting.matplotlib_figures import Plot
from kassay.experiments.plotting.page_templates import digits_in_groups, environment
from kassay.experiments.report import TEMPLATES
from kassay.experiments.report.assignor_results import (
    AssignorSummary,
    Halves,
    Summaries,
    assignor_table,
    by_family,
    by_scope,
    by_subscriptions,
    family_results,
    family_table,
    headline_table,
    main_scope,
    scope_rows,
    share_grid,
    subscriptions_table,
)
from kassay.experiments.report.event_stream_section import trajectory_sections
from kassay.experiments.report.measure_section import measure_section
from kassay.experiments.report.report_table import ReportTable, short_number
from kassay.experiments.report.study_sections import (
    rack_section,
    statistics_section,
    subscription_plots,
)
from kassay.experiments.study.cases import IMPORTED
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES
from kassay.experiments.study.output_reader import StudySummary
from kassay.experiments.study.tables import APART, assignors_of, compared_assignors


@dataclass(frozen=True)
class Report:
    """Report of a study: values for the templates, and what is rendered from them on first use."""

    template_values: Mapping[str, object]

    @cached_property
    def html(self) -> str:
        """HTML page with all figures and tables."""
        page = environment(TEMPLATES, autoescape=True)
        return page.get_template("report.html.j2").render(**self.template_values)

    @cached_property
    def markdown(self) -> str:
        """Summary as Markdown."""
        short = environment(TEMPLATES, autoescape=False)
        return short.get_template("report.md.j2").render(**self.template_values)

    @cached_property
    def items(self) -> Mapping[str, Plot | ReportTable]:
        """Figures and tables by name. All of them have CSV, and figures have SVG."""
        return {item.name: item for item in _figures_and_tables(self.template_values)}


def render(results: StudySummary) -> Report:
    """Return the report of a study as HTML and Markdown."""
    return Report(template_values(results))


def _figures_and_tables(values: object) -> Iterator[Plot | ReportTable]:
    """Find all figures and tables in the nested values for the report's templates."""
    if isinstance(values, Plot | ReportTable):
        yield values
    elif isinstance(values, Mapping | tuple):
        for value in values.values() if isinstance(values, Mapping) else values:
            yield from _figures_and_tables(value)


def template_values(results: StudySummary) -> dict[str, object]:
    """Return the values for the report's templates from the summary of a study."""
    trajectories = trajectory_sections(results)
    measures = measure_section(results)
    common = {
        "manifest": results.manifest,
        "counts": group_counts(results),
        "trajectories": trajectories,
        "measures": measures,
    }
    outcomes = results.outcomes
    if outcomes.empty and (trajectories or measures):
        return {**common, "overall": {}, "worst_groups": (), "named_groups": ()}
    scopes = by_scope(outcomes)
    main = main_scope(outcomes)
    names = assignors_of(outcomes["assignor"])
    compared = compared_assignors(names)
    families = by_family(outcomes)
    halves = by_subscriptions(scope_rows(outcomes, main), names)
    return {
        **common,
        "scope": main,
        "overall": scopes.get(main, {}),
        "findings": study_findings(scopes.get(main, {}), halves, compared),
        "assignor_tables": {scope: assignor_table(scope, found) for scope, found in scopes.items()},
        "headline": headline_table(scopes[main], halves) if main in scopes else None,
        "subscriptions_table": subscriptions_table(halves),
        "by_family": family_results(
            families,
            results.families,
            compared,
            weighted=set(scope_rows(outcomes, APART["weights"])["family"]),
        ),
        "imbalance_grid": share_grid("minimum-imbalance-by-family", families, "minimum_imbalance"),
        "moves_grid": share_grid("unnecessary-moves-by-family", families, "with_unnecessary_moves"),
        "subscription_plots": subscription_plots(halves),
        "racks": rack_section(results),
        "statistics": statistics_section(results, names, compared),
        "families": family_table(results.families, described_families(results)),
        "worst_groups": tuple(worst_groups(results, compared)),
        "named_groups": tuple(named_groups(results)),
    }


def described_families(results: StudySummary) -> list[Mapping[str, object]]:
    """Return the families and their parameters from the manifest of a study, if it has them."""
    configuration = results.manifest.get("configuration")
    return configuration.get("families", []) if isinstance(configuration, dict) else []


def group_counts(results: StudySummary) -> dict[str, int]:
    """Count the groups of a study without event streams, and their proven optima."""
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
    summaries: Summaries, halves: Halves, compared: Sequence[str]
) -> tuple[str, ...]:
    """Describe the results of the compared assignors, and the failures of all assignors."""
    found = [(name, summaries[name]) for name in compared if name in summaries]
    found = [(name, one) for name, one in found if one.sums["answered"]]
    sentences = [sentence for name, one in found for sentence in _sentences(name, one, halves)]
    failures = [text for name, one in summaries.items() for text in _failures(name, one)]
    # A share of 0 % in a sample needs an explanation.
    shares = [share for _, one in found for share in (one.missed_maximum, one.missed)]
    zeros = [share for share in shares if share.interval is not None and not share.count]
    if zeros:
        zero = min(zeros, key=lambda share: share.total)
        failures.append(
            f"0\u00a0% of {digits_in_groups(zero.total)} groups does not prove that no such group "
            f"exists: the 95\u00a0% interval is {zero.interval_text}\u00a0% of the groups of these "
            "families."
        )
    return (*sentences, *failures)


def _sentences(name: str, found: AssignorSummary, halves: Halves) -> Iterator[str]:
    above = found.missed_maximum
    parts = " ".join(
        f"{kind} subscriptions: {half.missed_maximum.percent_with_interval}."
        for kind, half in zip(("Equal", "Mixed"), halves[name], strict=True)
        if half.sums["answered"]
    )
    yield (
        f"{name}: the maximum load is above its minimum in {digits_in_groups(above.count)} of "
        f"{digits_in_groups(above.total)} groups, {above.percent_with_interval}. {parts} "
        f"The mean excess is {short_number(found.mean_excess)}\u00a0% of the minimum."
    )
    moves = found.with_unnecessary_moves
    if moves.total:
        mean = short_number(found.ratio("unnecessary_moves", "known"))
        yield (
            f"{name} makes {mean} unnecessary moves per rebalance, in "
            f"{moves.percent_with_interval} of {digits_in_groups(moves.total)} groups with owned "
            "partitions."
        )


def _failures(name: str, found: AssignorSummary) -> Iterator[str]:
    """Name the groups on which an assignor has no result, because its shares ignore them."""
    total, answered = (digits_in_groups(found.sums[one]) for one in ("groups", "answered"))
    for column, text in (("nonterminating", "does not terminate"), ("failed", "fails")):
        if count := found.sums[column]:
            yield (
                f"{name} {text} on {digits_in_groups(count)} of {total} groups. Its other values "
                f"refer to the {answered} groups with a result."
            )
