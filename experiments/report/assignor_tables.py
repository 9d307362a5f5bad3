"""Tables of results per assignor: by scope, subscriptions and family."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

import pandas as pd

from kassay.experiments.plotting.page_templates import digits_in_groups
from kassay.experiments.report.assignor_summary import AssignorSummary, Proportion
from kassay.experiments.report.report_table import ReportTable, short_number
from kassay.experiments.study.summary_columns import APART

_SQUARES = "sum of squares above the minimum"
_COLUMNS: dict[str, Callable[[AssignorSummary], object]] = {
    "groups": lambda found: found.groups,
    "mean excess of the maximum load": lambda found: _percent(found.mean_excess),
    "maximum load above the minimum": lambda found: found.missed_maximum.percent_with_interval,
    "unnecessary moves per rebalance": lambda found: short_number(
        found.unnecessary_moves_per_rebalance
    ),
    "with unnecessary moves": lambda found: found.with_unnecessary_moves.percent_with_interval,
    "does not terminate": lambda found: found.nonterminating,
    "fails": lambda found: found.failed,
    # A page shows the columns above; the CSV file also has those below.
    "with a result": lambda found: found.answered,
    "largest excess": lambda found: _percent(found.largest_excess),
    "unnecessary moves per owned partition": lambda found: _percent(
        found.unnecessary_moves_per_owned, 100
    ),
    _SQUARES: lambda found: found.missed.percent_with_interval,
    "groups with owned partitions": lambda found: found.with_unnecessary_moves.total,
}
_SUBSCRIPTIONS = ("equal", "mixed")


def assignor_table(scope: str, summaries: Mapping[str, AssignorSummary]) -> ReportTable:
    """Create the table of results per assignor on the groups of one scope.

    The sums of squares of groups with weights are not minimised, so their column is missing.
    """
    hidden = {_SQUARES} if scope == APART["weights"] else set()
    columns = [title for title in _COLUMNS if title not in hidden]
    data = [{"assignor": name, **_csv_columns(summary)} for name, summary in summaries.items()]
    return ReportTable.of(
        "assignors" if scope not in APART.values() else f"assignors-{scope.replace(' ', '-')}",
        ("assignor", *columns),
        ((name, *_cells(summary, columns)) for name, summary in summaries.items()),
        data=data,
    )


def headline_table(
    summaries: Mapping[str, AssignorSummary],
    by_subscriptions: Mapping[str, tuple[AssignorSummary, AssignorSummary]],
) -> ReportTable:
    """Create the short table in practical units, with the numbers of groups of each value.

    The cells of the CSV file are those of the table.
    """
    excess, above = "mean excess of the maximum load, %", "maximum load above the minimum, %"
    columns = ["assignor"]
    for kind in _SUBSCRIPTIONS:
        columns += [f"{kind} subscriptions: groups", f"{kind}: {excess}", f"{kind}: {above}"]
    columns += ["groups with owned partitions", "unnecessary moves per rebalance"]
    columns += ["unnecessary moves per owned partition, %"]
    rows = []
    for name, summary in summaries.items():
        cells = [name]
        for found in by_subscriptions[name]:
            share = found.missed_maximum.value
            cells += [str(found.answered), short_number(found.mean_excess)]
            cells += [short_number(None if share is None else 100 * share)]
        owned = summary.unnecessary_moves_per_owned
        cells += [str(summary.with_unnecessary_moves.total)]
        cells += [short_number(summary.unnecessary_moves_per_rebalance)]
        cells += [short_number(None if owned is None else 100 * owned)]
        rows.append(tuple(cells))
    return ReportTable.of("headline", columns, rows)


def subscriptions_table(
    summaries: Mapping[str, tuple[AssignorSummary, AssignorSummary]],
) -> ReportTable:
    """Create the table of results per assignor, for equal and for mixed subscriptions."""
    pairs = [
        (name, kind, summary)
        for name, both in summaries.items()
        for kind, summary in zip(_SUBSCRIPTIONS, both, strict=True)
        if summary.groups
    ]
    data = [
        {"assignor": name, "subscriptions": kind, **_csv_columns(summary)}
        for name, kind, summary in pairs
    ]
    return ReportTable.of(
        "assignors-by-subscriptions",
        ("assignor", "subscriptions", *_COLUMNS),
        ((name, kind, *_cells(summary)) for name, kind, summary in pairs),
        data=data,
    )


def family_results(
    summaries: Mapping[str, Mapping[str, AssignorSummary]],
    counted: pd.DataFrame,
    compared: Sequence[str],
    *,
    weighted: Collection[str],
) -> ReportTable:
    """Create the table of results per family and compared assignor.

    The sums of squares of ``weighted`` families are not minimised, so they have no cells. The CSV
    file has the exact sums of all assignors, and the SHA-256 of the family's results.
    """
    digests = dict(zip(counted["family"], counted["sha256"], strict=True))
    rows = [
        (family, name, summary)
        for family, own in summaries.items()
        for name, summary in own.items()
        if summary.groups
    ]
    data = [
        {"family": family, "assignor": name, **_sums(summary), "sha256": digests.get(family)}
        for family, name, summary in rows
    ]
    cells = (
        (family, name, *_cells(summary, blank={_SQUARES} if family in weighted else ()))
        for family, name, summary in rows
        if name in compared
    )
    columns = ("family", "assignor", *_COLUMNS)
    return ReportTable.of("results-by-family", columns, cells, data=data)


def _sums(summary: AssignorSummary) -> dict[str, int]:
    return {
        "groups": summary.groups,
        "answered": summary.answered,
        "nonterminating": summary.nonterminating,
        "failed": summary.failed,
        "missed": summary.missed.count,
        "missed_maximum": summary.missed_maximum.count,
        "excess_ppm": summary.excess_ppm,
        "known": summary.with_unnecessary_moves.total,
        "wasteful": summary.with_unnecessary_moves.count,
        "owned_partitions": summary.owned_partitions,
        "moves": summary.moves,
        "unnecessary_moves": summary.unnecessary_moves,
    }


def _csv_columns(summary: AssignorSummary) -> dict[str, object]:
    """Return the CSV columns of a summary: counts and interval of each proportion."""
    columns: dict[str, object] = {}
    for name, value in asdict(summary).items():
        share = getattr(summary, name)
        if not isinstance(share, Proportion):
            columns[name] = value
            continue
        columns |= {f"{name}_count": share.count, f"{name}_total": share.total}
        low, high = share.interval or (None, None)
        columns |= {f"{name}_low": low, f"{name}_high": high}
    return columns


def _cells(
    summary: AssignorSummary, columns: Iterable[str] = _COLUMNS, *, blank: Collection[str] = ()
) -> Iterator[str]:
    for column in columns:
        value = "–" if column in blank else _COLUMNS[column](summary)
        yield digits_in_groups(value) if isinstance(value, int) else str(value)


def _percent(value: float | None, factor: float = 1) -> str:
    return "–" if value is None else f"{short_number(factor * value)}\u00a0%"
