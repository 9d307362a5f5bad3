"""Render the report of a study as a self-contained HTML page and a Markdown summary."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kassay.experiments.counterexamples.gallery import worst_groups
from kassay.experiments.plotting.matplotlib_figures import Plot, dot_plot
from kassay.experiments.plotting.page_templates import BLUE, NUMBER, ORANGE, environment
from kassay.experiments.report import TEMPLATES, study_tables
from kassay.experiments.study import schemas
from kassay.experiments.study.cases import IMPORTED
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES, FAMILIES
from kassay.experiments.study.families.event_streams import EventStreamFamily
from kassay.experiments.study.output_reader import StudySummary
from kassay.reference.model.errors import InternalError

_SIZES = ((2, 7), (8, 15), (16, 31), (32, 99), (100, 1000))  # members at the start of a stream
_ALL_SIZES = (2, 1000)
_KINDS = ("equal", "mixed")
_BALANCE = (
    "fullest member above the minimum",
    "sum of squares above the minimum",
    "excess of the fullest member",
)
_MOVES = (
    *("moves", "unnecessary moves", "unnecessary moves per owned partition"),
    *("with unnecessary moves", "moves above the fewest at each rebalance"),
)
PRIMARY_ENDPOINT = "unnecessary moves"
_PAIRED = (PRIMARY_ENDPOINT, "moves", "fullest member above the minimum")
_BY_STRATUM = (_BALANCE[0], "moves", "unnecessary moves", "moves above hindsight")
_BY_POSITION = ("owned", "unnecessary moves", "unnecessary moves per owned partition")
_FEWEST = "fewest moves at each rebalance"


@dataclass(frozen=True)
class Report:
    """Report of a study, which is rendered from the template values on first use."""

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
        """Return figures and tables by name. All have CSV data, and figures also have SVG."""
        return {item.name: item for item in _figures_and_tables(self.template_values)}


def render(results: StudySummary) -> Report:
    """Create the report of a study from its summary."""
    return Report(template_values(results))


def _figures_and_tables(values: object) -> Iterator[Plot | study_tables.ReportTable]:
    """Yield all figures and tables in the nested template values."""
    if isinstance(values, Plot | study_tables.ReportTable):
        yield values
    elif isinstance(values, Mapping | tuple):
        for value in values.values() if isinstance(values, Mapping) else values:
            yield from _figures_and_tables(value)


def template_values(results: StudySummary) -> dict[str, object]:
    """Compute the values for the report's templates from the summary of a study."""
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
    """Return the names of families in a study's manifest, none if the manifest lacks them."""
    return [family["name"] for family in _configuration(results).get("families", [])]


def _configuration(results: StudySummary) -> Mapping[str, Any]:
    found = results.manifest.get("configuration")
    return found if isinstance(found, dict) else {}


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
    """Draw each assignor's results, separately for equal and mixed subscriptions."""
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
    """Create the table that compares assignors in pairs, by numbers of groups."""
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
    """Create the tables for groups with racks and owned partitions. Return None without any."""
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
    """Sum the numbers in the rows of each family and assignor."""
    sums = rows.groupby(["family", "assignor"]).sum(numeric_only=True)
    found: Mapping[Any, Mapping[Any, int]] = sums.astype(int).to_dict("index")
    return {key: {str(name): value for name, value in row.items()} for key, row in found.items()}


def _table(
    name: str, columns: Mapping[str, Callable[[_Row], str]], rows: Mapping[tuple[str, str], _Row]
) -> study_tables.ReportTable:
    """Create a table with one row per family and assignor. Its CSV file has the exact sums."""
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
    """Return a function that formats a row's share, with interval and numbers of groups."""

    def cell(row: _Row) -> str:
        numbers = " of ".join(NUMBER(row[name]) for name in (count, total))
        proportion = study_tables.Proportion(row[count], row[total])
        return f"{proportion.percent_with_interval}, {numbers}"

    return cell


def _mean(value: str, total: str, factor: int = 1) -> Callable[[_Row], str]:
    """Return a function that formats the ratio of two sums of a row."""
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


_STREAM_RESAMPLES = 2000
OPTIMAL_MOVES = "optimal_moves"
"""Column with the moves of the optimum at each rebalance of the same streams."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Ratio of two sums over streams, times a factor.

    The numerator is the sum of a column minus the sum of another column, if there is one.
    """

    column: str
    per: str
    factor: float = 1.0
    minus: str | None = None

    def parts(self, sums: pd.DataFrame) -> tuple["pd.Series[float]", "pd.Series[float]"]:
        """Return numerator (without the factor) and denominator of the rate, per row of sums."""
        above = sums[self.column].astype(float)
        if self.minus is not None:
            above = above - sums[self.minus].astype(float)
        return above, sums[self.per].astype(float)

    def of(self, sums: pd.DataFrame) -> "pd.Series[float]":
        """Return the rate per row of sums, NaN if the denominator is 0."""
        above, below = self.parts(sums)
        return self.factor * above / below.where(below > 0)


ABOVE_HINDSIGHT = "moves above hindsight, relative"
"""Name of the rate of moves above hindsight, in per cent of the hindsight moves."""

RATES: Mapping[str, Rate] = {
    "fullest member above the minimum": Rate("above_least_makespan", "rebalances", 100),
    "sum of squares above the minimum": Rate("above_least_squares", "rebalances", 100),
    "excess of the fullest member": Rate("excess", "least_makespan", 100),
    "owned": Rate("owned", "rebalances"),
    "moves": Rate("moves", "rebalances"),
    "unnecessary moves": Rate("unnecessary_moves", "known"),
    "unnecessary moves per owned partition": Rate("unnecessary_moves", "known_owned", 100),
    "with unnecessary moves": Rate("with_unnecessary_moves", "known", 100),
    "moves above the fewest at each rebalance": Rate("moves", "rebalances", minus=OPTIMAL_MOVES),
    "moves above hindsight": Rate("above_hindsight", "with_hindsight"),
    ABOVE_HINDSIGHT: Rate("above_hindsight", "hindsight_moves", 100),
}
"""Rates of the report by name, in per cent or per rebalance."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Value of a rate or of a difference of rates, with a 95% interval."""

    value: float
    low: float
    high: float


class StreamPair(NamedTuple):
    """Comparison of two assignors on the same streams by one rate."""

    lower: int  # streams in which the second assignor has the lower value
    equal: int
    higher: int
    difference: Estimate | None  # None if an assignor has no result


class StreamTotals:
    """Sums per stream and assignor, and the random weights of streams for the bootstrap."""

    def __init__(self, rows: pd.DataFrame, *, seed: int = 0) -> None:
        """Sum the rows of the summary table ``trajectories`` per stream and assignor."""
        keys = ["family", "seed", "assignor"]
        sums = rows.drop(columns=["mixed", "start_members"]).groupby(keys, sort=True).sum()
        self._streams = sums.index.droplevel("assignor").unique()
        self._columns = {
            str(name): part.droplevel("assignor").reindex(self._streams, fill_value=0)
            for name, part in sums.groupby("assignor")
        }
        if schemas.OPTIMUM in self._columns:
            optimal = self._columns[schemas.OPTIMUM]["moves"]
            for part in self._columns.values():
                part[OPTIMAL_MOVES] = optimal
        count = len(self._streams)
        shares = np.full(count, 1 / max(count, 1))
        self._weights = np.zeros((_STREAM_RESAMPLES, count))
        if count:
            self._weights += np.random.default_rng(seed).multinomial(
                count, shares, _STREAM_RESAMPLES
            )

    @property
    def streams(self) -> int:
        """Return the number of event streams."""
        return len(self._streams)

    def total(self, assignor: str, column: str) -> int:
        """Return the sum of a column over all streams."""
        return int(self._columns[assignor][column].sum())

    def estimate(self, assignor: str, rate: Rate) -> Estimate | None:
        """Estimate a rate of an assignor. Return None if the denominator is 0."""
        above, below = self._parts(assignor, rate)
        if not below.sum():
            return None
        return _estimate(
            rate.factor * above.sum() / below.sum(), self._resampled(rate, above, below)
        )

    def compare(self, before: str, after: str, rate: Rate) -> StreamPair:
        """Compare two assignors by a rate on the same streams."""
        parts = [self._parts(assignor, rate) for assignor in (before, after)]
        (above, below), (above_after, below_after) = parts
        if not below.sum() * below_after.sum():
            return StreamPair(0, 0, 0, None)
        # Products instead of quotients: a stream can have the denominator 0.
        sign = np.sign(above_after * below - above * below_after)
        value = above_after.sum() / below_after.sum() - above.sum() / below.sum()
        one, two = (self._resampled(rate, *part) for part in parts)
        lower, equal, higher = (int((sign == side).sum()) for side in (-1, 0, 1))
        return StreamPair(lower, equal, higher, _estimate(rate.factor * value, two - one))

    def _parts(self, assignor: str, rate: Rate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        above, below = rate.parts(self._columns[assignor])
        return np.asarray(above, np.float64), np.asarray(below, np.float64)

    def _resampled(
        self, rate: Rate, above: NDArray[np.float64], below: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        divisor = self._weights @ below
        ratios = np.full(len(divisor), np.nan)
        np.divide(rate.factor * (self._weights @ above), divisor, out=ratios, where=divisor > 0)
        return ratios


def _estimate(value: float, resampled: NDArray[np.float64]) -> Estimate:
    low, high = np.nanquantile(
        resampled, [1 - study_tables.UPPER_QUANTILE, study_tables.UPPER_QUANTILE]
    )
    return Estimate(float(value), float(low), float(high))


def trajectory_sections(results: StudySummary) -> tuple[Mapping[str, object], ...]:
    """Create the tables of the event streams of a study, one section per family."""
    both = results.trajectories, results.events
    return tuple(
        _section(family, *(table[table["family"] == family] for table in both))
        for family in sorted(set(results.trajectories["family"]))
    )


def _section(family: str, rows: pd.DataFrame, events: pd.DataFrame) -> Mapping[str, object]:
    streams, totals = FAMILIES[family], StreamTotals(rows)
    if not isinstance(streams, EventStreamFamily):
        raise InternalError(f"the family {family} has no event streams")
    names = tuple(
        name
        for name in schemas.assignors_of(rows["assignor"])
        if name not in (schemas.OPTIMUM, schemas.HINDSIGHT)
    )
    compared = schemas.compared_assignors(names)
    mixed = rows[rows["mixed"]]
    primary_rates = () if mixed.empty else (PRIMARY_ENDPOINT,)
    shown = {
        "balance": _rate_table("balance", totals, names, _BALANCE),
        "moves": _rate_table("moves", totals, (*names, schemas.OPTIMUM), _MOVES),
        "hindsight": _hindsight_table(streams, rows, (schemas.OPTIMUM, *compared)),
        "primary": _pair_table("primary-endpoint", StreamTotals(mixed), compared, primary_rates),
        "pairs": _pair_table("pairs", totals, compared, _PAIRED),
        "strata": _strata_table(rows, (*compared, schemas.OPTIMUM)),
        "events": _sums_table("events", events, "event", (*compared, schemas.OPTIMUM), _BY_STRATUM),
        "positions": _sums_table("positions", events, "period", compared, _BY_POSITION),
        "sensitivity": sensitivity_table(rows, events, compared),
    }
    return {
        "family": family,
        "findings": tuple(_findings(totals, compared)),
        "streams": totals.streams,
        "hindsight_size": streams.hindsight_size,
        "hindsight_seeds": streams.hindsight_seeds,
        "primary_endpoint": PRIMARY_ENDPOINT,
        "rebalances": totals.total(schemas.OPTIMUM, "rebalances"),
        "judged": sum(totals.total(name, "rebalances") for name in names),
        "unknown": sum(
            totals.total(name, "rebalances")
            - totals.total(name, "failed")
            - totals.total(name, "known")
            for name in names
        ),
        **{key: replace(table, name=f"{family}-{table.name}") for key, table in shown.items()},
    }


def _findings(totals: StreamTotals, compared: Sequence[str]) -> Iterator[str]:
    for name in filter(schemas.is_own, compared):
        if failed := totals.total(name, "failed"):
            yield f"{name} fails on {failed} of {totals.total(name, 'rebalances')} rebalances."
    for name in compared:
        rates = (PRIMARY_ENDPOINT, _BALANCE[0])
        moves, above = (_text(totals.estimate(name, RATES[rate])) for rate in rates)
        yield (
            f"{name} makes {moves} unnecessary moves per rebalance. The maximum load is above its "
            f"minimum after {above} % of the rebalances."
        )


def _rate_table(
    name: str, totals: StreamTotals, assignors: Sequence[str], rates: Sequence[str]
) -> study_tables.ReportTable:
    columns = ("assignor", "rebalances", "fails", *(_with_unit(rate) for rate in rates))
    rows, data = [], []
    for assignor in assignors:
        counts = [totals.total(assignor, column) for column in ("rebalances", "failed")]
        found = [totals.estimate(assignor, RATES[rate]) for rate in rates]
        rows.append((_label(assignor), *map(str, counts), *map(_text, found)))
        data.append(
            {"assignor": assignor, "rebalances": counts[0], "failed": counts[1]}
            | {
                f"{rate} {part}".removesuffix(" value"): getattr(estimate, part, None)
                for rate, estimate in zip(rates, found, strict=True)
                for part in ("value", "low", "high")
            }
        )
    return study_tables.ReportTable.of(name, columns, rows, data=data)


def _hindsight_table(
    streams: EventStreamFamily, rows: pd.DataFrame, names: Sequence[str]
) -> study_tables.ReportTable:
    """Create a table of the moves above the hindsight optimum, by subscriptions and members.

    A stream has mixed subscriptions if they are mixed at one of its rebalances.
    """
    proven = set(rows.loc[rows["assignor"] == schemas.HINDSIGHT, "seed"])
    found = rows.groupby("seed")[["mixed", "start_members"]].max()
    found = found[[streams.has_hindsight(seed) for seed in found.index]]
    table = []
    for kind, (low, high) in itertools.product(_KINDS, (*_SIZES, _ALL_SIZES)):
        is_in = (found["mixed"] == (kind == "mixed")) & found["start_members"].between(low, high)
        seeds = [seed for seed in found.index[is_in] if seed in proven]
        if seeds:
            totals = StreamTotals(rows[rows["seed"].isin(seeds)])
            size = "all" if (low, high) == _ALL_SIZES else f"{low}–{high} members"
            above = [_text(totals.estimate(name, RATES[ABOVE_HINDSIGHT])) for name in names]
            moves = str(totals.total(schemas.OPTIMUM, "hindsight_moves"))
            table.append((f"{kind}, {size}", f"{len(seeds)} of {is_in.sum()}", moves, *above))
    columns = ("streams", "proven", "moves with hindsight", *map(_label, names))
    return study_tables.ReportTable.of("hindsight", columns, table)


def _pair_table(
    name: str, totals: StreamTotals, compared: Sequence[str], rates: Sequence[str]
) -> study_tables.ReportTable:
    """Create a table that compares all pairs of assignors by each rate."""
    rows = []
    for rate in rates:
        for before, after in itertools.combinations(compared, 2):
            *counts, difference = totals.compare(before, after, RATES[rate])
            names = (f"{before} → {after}", _with_unit(rate))
            rows.append((*names, *map(str, (totals.streams, *counts)), _text(difference, "+")))
    columns = ("from → to", "measure", "streams", "lower", "equal", "higher", "difference (95%)")
    return study_tables.ReportTable.of(name, columns, rows)


def _strata_table(streams: pd.DataFrame, assignors: Sequence[str]) -> study_tables.ReportTable:
    """Create a table of the rates by number of members at the start, and by subscriptions."""
    members = streams["start_members"]
    strata = {f"{low}–{high} members": members.between(low, high) for low, high in _SIZES}
    strata |= {f"{name} subscriptions": streams["mixed"] == (name == "mixed") for name in _KINDS}
    columns = ("stratum", "assignor", "streams", "rebalances", *map(_with_unit, _BY_STRATUM))
    rows = []
    for label, is_in in strata.items():
        if is_in.any():
            totals = StreamTotals(streams[is_in])
            counts = (str(totals.streams), str(totals.total(schemas.OPTIMUM, "rebalances")))
            for name in assignors:
                found = [totals.estimate(name, RATES[rate]) for rate in _BY_STRATUM]
                rows.append((label, _label(name), *counts, *map(_text, found)))
    return study_tables.ReportTable.of("strata", columns, rows)


def _sums_table(
    name: str, rows: pd.DataFrame, key: str, assignors: Sequence[str], rates: Sequence[str]
) -> study_tables.ReportTable:
    """Create a table of the rates per kind of event, or per period of ten rebalances."""
    sums = rows.groupby([key, "assignor"]).sum(numeric_only=True)
    found = _rates(sums, rates)
    title = {"period": "rebalances of the stream"}.get(key, key)
    table = []
    for value in sorted(rows[key].unique()):
        label = value if key == "event" else f"{10 * int(value) + 1}–{10 * int(value) + 10}"
        count = str(sums.loc[value, schemas.OPTIMUM]["rebalances"])
        for assignor in assignors:
            cells = map(study_tables.number_text, found.loc[(value, assignor)])
            table.append((str(label), _label(assignor), count, *cells))
    columns = (title, "assignor", "rebalances", *map(_with_unit, rates))
    return study_tables.ReportTable.of(name, columns, table)


def _rates(sums: pd.DataFrame, rates: Sequence[str]) -> pd.DataFrame:
    """Return one column per rate, for each row of sums."""
    return pd.DataFrame({rate: RATES[rate].of(sums) for rate in rates})


def _label(assignor: str) -> str:
    return _FEWEST if assignor == schemas.OPTIMUM else assignor


def _with_unit(rate: str) -> str:
    return f"{rate}, %" if RATES[rate].factor == 100 else rate


def _text(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return "–"
    return study_tables.interval_text(estimate.value, estimate.low, estimate.high, sign)


_MEASURES = (_BALANCE[2], *_BALANCE[:2], "unnecessary moves")
_LARGE = 32  # members at the start of a stream
_LATE = 4  # period of ten rebalances after which a stream is old


def sensitivity_table(
    streams: pd.DataFrame, events: pd.DataFrame, compared: Sequence[str]
) -> study_tables.ReportTable:
    """Create the table of results under other assumptions, one row per assumption.

    ``streams`` are the sums per stream, ``events`` those per kind of event and per period of ten
    rebalances.
    """
    kind, period = events["event"].astype(str), events["period"]
    is_restart, is_scaling = kind.str.startswith("restart"), kind.str.startswith("scale")
    mixed, large = streams["mixed"].astype(bool), streams["start_members"] >= _LARGE
    parts = {
        "as in the study": streams,
        "all subscriptions equal": streams[~mixed],
        "all subscriptions mixed": streams[mixed],
        f"fewer than {_LARGE} members at the start": streams[~large],
        f"{_LARGE} members or more at the start": streams[large],
        "no rolling restarts": events[~is_restart],
        "no scaling": events[~is_scaling],
        "only the first ten rebalances": events[period == 0],
        f"only later than the first {10 * _LATE} rebalances": events[period >= _LATE],
    }
    sums = {name: part.groupby("assignor").sum(numeric_only=True) for name, part in parts.items()}
    values = {
        name: _rates(part, _MEASURES)
        for name, part in sums.items()
        if schemas.OPTIMUM in part.index
    }
    counts = {name: int(sums[name]["rebalances"][schemas.OPTIMUM]) for name in values}
    equal = "every stream with the same weight"
    per_stream = streams.groupby(["assignor", "seed"]).sum(numeric_only=True)
    # A mean of rates: long streams count like short ones.
    values[equal] = _rates(per_stream, _MEASURES).groupby("assignor").mean()
    counts[equal] = counts["as in the study"]
    columns = ("assumption", "assignor", "rebalances", *map(_with_unit, _MEASURES))
    rows = tuple(
        (name, assignor, str(counts[name]), *map(study_tables.number_text, found.loc[assignor]))
        for name, found in values.items()
        for assignor in compared
    )
    return study_tables.ReportTable.of("sensitivity", columns, rows)
